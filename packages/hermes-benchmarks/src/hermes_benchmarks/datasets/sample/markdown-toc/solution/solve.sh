#!/bin/bash
set -eu
cat > toc.py <<'PY'
#!/usr/bin/env python3
"""Renew the table of contents of a Markdown file."""

import re
import sys
from pathlib import Path

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6}) +(.*?)(?: +#+)? *$")


def headings(lines):
    """(index, level, text) of every heading outside fenced code."""
    fence = None
    for index, line in enumerate(lines):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line[mark.end() :].strip():
                fence = None
        elif mark:
            fence = mark[1]
        elif found := HEADING.match(line):
            yield index, len(found[1]), found[2]


def contents(lines, end):
    """The lines of the table: one for every heading of level 2 to 4 below `end`."""
    used = {}
    for index, level, text in headings(lines):
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = used.get(anchor, 0)
        used[anchor] = count + 1
        if index > end and 2 <= level <= 4:
            yield "  " * (level - 2) + f"- [{text}](#{anchor}{f'-{count}' if count else ''})"


path = Path(sys.argv[1])
lines = path.read_bytes().decode().split("\n")
start, end = lines.index("<!-- toc -->"), lines.index("<!-- /toc -->")
lines[start + 1 : end] = ["", *contents(lines, end), ""]
path.write_bytes("\n".join(lines).encode())
PY
chmod +x toc.py
./toc.py manual.md
