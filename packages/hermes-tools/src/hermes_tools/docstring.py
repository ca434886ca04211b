"""Reads what a tool says of itself from a Google-style docstring."""

import inspect
import re

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?|Attributes):\s*$")
_ENTRY = re.compile(r"^(\w+)(?: \([^)]*\))?:\s*(.*)$")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description (all before the first section) and the descriptions of the parameters.

    Args:
        text: The docstring, or None.
    """
    sections = _sections(text)
    parameters: list[str] = []
    for name in ("Args", "Arguments", "Parameters"):
        parameters += sections.get(name, [])
    return "\n".join(sections[""]).strip(), _entries(parameters)


def read_attributes(text: str | None) -> dict[str, str]:
    """The descriptions in the `Attributes:` section of a docstring.

    Args:
        text: The docstring, or None.
    """
    return _entries(_sections(text).get("Attributes", []))


def _sections(text: str | None) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(text or "").splitlines():
        if header := _SECTION.match(line):
            current = str(header[1])
            sections[current] = []
        else:
            sections[current].append(line)
    return sections


def _entries(lines: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if 0 < depth <= 4 and (entry := _ENTRY.match(line.strip())):
            current = str(entry[1])
            entries[current] = str(entry[2])
        elif current is not None and line.strip():
            entries[current] = f"{entries[current]} {line.strip()}".strip()
    return entries
