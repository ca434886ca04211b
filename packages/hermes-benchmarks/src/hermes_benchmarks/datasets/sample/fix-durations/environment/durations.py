"""Durations as people write them."""

import re

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse(text):
    """Seconds in a duration such as "1h30m", "2d 4h", "45s" or "-1h30m", as an int.

    Units d, h, m, s come in this order, each at most once; spaces may stand between the parts, and around
    the whole. A leading minus sign negates the whole duration. Anything else, an empty text included, is a
    ValueError.
    """
    total = 0
    for number, unit in re.findall(r"(-?\d+)([dhms])", text):
        total = int(number) * UNITS[unit]
    return total


def format(seconds):
    """The shortest text that `parse` reads back: "1h30m", "-2d4h", "45s"; "0s" for zero.

    Units that are zero are left out.
    """
    parts = []
    for unit, size in UNITS.items():
        count = seconds // size
        if count > 1:
            parts.append(f"{count}{unit}")
            seconds -= count * size
    return "".join(parts)
