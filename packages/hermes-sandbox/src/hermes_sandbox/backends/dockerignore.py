"""The patterns of a `.dockerignore` file (https://docs.docker.com/build/concepts/context/#dockerignore-files)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path


def ignored(file: Path) -> Callable[[str], bool]:
    """Whether a path relative to the context is left out; the last pattern that matches it decides."""
    rules: list[tuple[bool, re.Pattern[str]]] = []
    if file.is_file():
        for line in file.read_text(errors="replace").splitlines():
            pattern = line.strip()
            if not pattern or pattern.startswith("#"):
                continue
            keep = pattern.startswith("!")
            pattern = pattern.lstrip("!").strip().strip("/").removeprefix("./")
            if pattern and pattern != ".":
                rules.append((keep, re.compile(_translate(pattern) + r"(?:/.*)?\Z", re.DOTALL)))

    def skip(name: str) -> bool:
        left_out = False
        for keep, pattern in rules:
            if pattern.match(name):
                left_out = not keep
        return left_out

    return skip


def _translate(pattern: str) -> str:
    """A regular expression for one pattern: `*` and `?` stay within a name, `**` crosses folders."""
    result, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*" and pattern.startswith("*", at):
            at += 1
            if pattern.startswith("/", at):
                at += 1
                result += "(?:.*/)?"
            else:
                result += ".*"
        elif char == "*":
            result += "[^/]*"
        elif char == "?":
            result += "[^/]"
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            inner = pattern[at:end].replace("\\", "\\\\")
            result += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            at = end + 1
        else:
            result += re.escape(char)
    return result
