"""robots.txt, by RFC 9309: the longest rule wins, `*` and `$` are known."""

from dataclasses import dataclass, field
from urllib.parse import unquote

MAX_BYTES = 500 << 10


@dataclass(slots=True)
class _Group:
    agents: list[str] = field(default_factory=list[str])
    rules: list[tuple[bool, str]] = field(default_factory=list[tuple[bool, str]])


class Robots:
    """The rules of one site for one crawler."""

    def __init__(self, text: str, agent: str) -> None:
        """Read the rules.

        Args:
            text: The content of robots.txt.
            agent: The crawler's name, without version.
        """
        groups = _groups(text)
        own = [group for group in groups if any(name == agent.lower() for name in group.agents)]
        chosen = own or [group for group in groups if "*" in group.agents]
        self._rules = [rule for group in chosen for rule in group.rules]

    def allows(self, path: str) -> bool:
        """Whether a path (with its query) may be fetched."""
        if path == "/robots.txt":
            return True
        path = unquote(path)
        best, allowed = -1, True
        for allow, pattern in self._rules:
            if len(pattern) >= best and _matches(pattern, path) and (len(pattern) > best or allow):
                best, allowed = len(pattern), allow
        return allowed


def _groups(text: str) -> list[_Group]:
    groups: list[_Group] = []
    naming = False
    for line in text[:MAX_BYTES].splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if not naming:
                groups.append(_Group())
            groups[-1].agents.append(value.lower())
            naming = True
        elif key in ("allow", "disallow"):
            naming = False
            if groups and value:
                groups[-1].rules.append((key == "allow", unquote(value)))
    return groups


def _matches(pattern: str, path: str) -> bool:
    """Whether a rule covers a path. Pieces between `*` are looked for from left to right, which takes linear time."""
    ends = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not rest:
        return not ends or path == first
    position = len(first)
    for piece in rest[:-1]:
        found = path.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    if ends:
        return path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= position
    return path.find(rest[-1], position) >= 0
