"""File name patterns, as regular expressions that grep understands.

A pattern without `/` is matched with the file's name, at any depth; one with `/` with the path below the folder searched.
`*` and `?` do not cross `/`, `**` does; `[abc]`, `[!abc]` and `{a,b}` are known; a `!` in front means all others.
"""

import re

_SPECIAL = frozenset(r".^$+()|\{}[]*?")


def glob_to_regex(glob: str) -> str:
    """An extended POSIX regular expression for paths that begin with `./`. `glob` has no leading `!`."""
    pattern = glob.removeprefix("./")
    anchored = "/" in pattern.rstrip("/")
    pattern = pattern.lstrip("/")
    body = "".join(_pieces(pattern))
    return rf"^\./{body}$" if anchored else rf"^(.*/)?{body}$"


def _pieces(pattern: str) -> list[str]:
    out: list[str] = []
    position = depth = 0
    while position < len(pattern):
        char = pattern[position]
        step = 1
        if pattern.startswith("**/", position) and (position == 0 or pattern[position - 1] == "/"):
            out.append("(.*/)?")
            step = 3
        elif pattern.startswith("**", position):
            out.append(".*" if position and pattern[position - 1] == "/" else "[^/]*")
            step = 2
        elif char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (found := re.match(r"\[([!^]?)(\]?[^\]]*)\]", pattern[position:])):
            inside = found[2]
            out.append(f"[{'^/' if found[1] else ''}{inside}]")
            step = found.end()
        elif char == "{" and "}" in pattern[position:]:
            out.append("(")
            depth += 1
        elif char == "}" and depth:
            out.append(")")
            depth -= 1
        elif char == "," and depth:
            out.append("|")
        elif char == "\\" and position + 1 < len(pattern):
            out.append(_literal(pattern[position + 1]))
            step = 2
        else:
            out.append(_literal(char))
        position += step
    return [*out, ")" * depth]


def _literal(char: str) -> str:
    return "\\" + char if char in _SPECIAL else char
