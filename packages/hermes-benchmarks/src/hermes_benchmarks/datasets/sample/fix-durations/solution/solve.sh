#!/bin/bash
set -eu
cat > clock/durations.py <<'PY'
"""Durations as people write them."""

import re

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
PATTERN = re.compile(r"\s*(-?)\s*(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+)s)?\s*", re.ASCII)


def parse(text):
    """Seconds in a duration such as "1h30m", "2d 4h", "45s" or "-1h30m", as an int.

    Units d, h, m, s come in this order, each at most once; spaces may stand between the parts, and around
    the whole. A leading minus sign negates the whole duration. Anything else, an empty text included, is a
    ValueError.
    """
    found = PATTERN.fullmatch(text)
    if not found or not any(found.groups()[1:]):
        raise ValueError(f"not a duration: {text!r}")
    sign, *counts = found.groups()
    total = sum(int(count or 0) * size for count, size in zip(counts, UNITS.values()))
    return -total if sign else total


def format(seconds):
    """The shortest text that `parse` reads back: "1h30m", "-2d4h", "45s"; "0s" for zero.

    Units that are zero are left out.
    """
    parts = []
    rest = abs(seconds)
    for unit, size in UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 else "") + "".join(parts) if parts else "0s"
PY
