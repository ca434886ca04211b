"""Finding the place to go on from after a broken call, so that its siblings survive."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from hermes_parsers.markers import markers
from hermes_parsers.scan import Scan

_BUDGET = 1 << 16


def skip_broken(
    scan: Scan, start: int, stops: Sequence[str], ends: Sequence[str], opening: str = ""
) -> Generator[None, None, str]:
    """Leave a broken call.

    Args:
        scan: The pass; its capture began at or before `start`, with the read position where the call broke.
        start: Where what was read of the call's body begins, in the whole text.
        stops: Markers that begin something new: reading goes on before them.
        ends: Markers that end the call: reading goes on after them.
        opening: A regular expression for what must follow a stop inside the part that was read already, since
            that part may hold a stop as data.

    Returns:
        The marker that was found, or "" at the end of the text.
    """
    src = scan.src
    read = src.captured()
    body = read[len(read) - (src.at - start) :] if src.at > start else ""
    pattern = "|".join(map(re.escape, stops))
    if pattern and src.reread <= _BUDGET + 4 * src.at:
        again = re.search(f"(?:{pattern}){opening}", body)
        if again:
            src.reread += src.at - start
            src.rewind(start + again.start())
            return again.group()
    found = markers((*stops, *ends))
    while True:
        index, word = found.next(src)
        src.pos = index if word in stops else index + len(word)
        if word or src.ended:
            return word
        yield
