"""Calls written as JSON objects in the open, without tags (Llama 3, xLAM, and damaged text of other formats)."""

from __future__ import annotations

from collections.abc import Generator

from hermes_parsers.grammars.json_object import MESSAGES, NO_OBJECT, ObjectCall
from hermes_parsers.reading import space
from hermes_parsers.resync import doubtful, skip_broken, skip_entry
from hermes_parsers.scan import Scan, Steps

_REREAD = 1 << 16


def read_bare(scan: Scan, marker: str, *, separator: str = "") -> Steps:
    """Read the object or the array of objects that `marker`, a bracket, begins, if it holds a call.

    What turns out to be no call is shown as text, all of it: an object inside another one is never a call.

    Args:
        scan: The pass; the source's capture begins at the bracket.
        marker: `{` or `[`.
        separator: A character that may follow a call and is not content.
    """
    src = scan.src
    if marker == "{":
        src.pos -= 1
        return (yield from _objects(scan, separator, ""))
    if (yield from space(src)) != "{":
        return False
    return (yield from _objects(scan, separator, "]"))


def _objects(scan: Scan, separator: str, end: str) -> Steps:
    src = scan.src
    count, entry = 0, "{"
    while True:
        verdict = yield from (_object(scan, end, sibling=count > 0) if entry == "{" else _junk(scan))
        if verdict == "text":
            if end and not count:
                return False
            scan.text(src.captured())
            if not end:
                return True
        count += 1
        after = src.at
        src.capture(src.pos)
        char = yield from space(src)
        separated = bool(char) and char in ("," if end else separator)
        if separated:
            src.pos += 1
            after = src.at
            char = yield from space(src)
        if (char == "{" and (end or separated)) or (end and separated and char not in ("", end)):
            entry = char
            src.capture(src.pos)
            continue
        if char and char == end:
            src.pos += 1
        elif not (separated and not char):
            src.rewind(after)
        return True


def _object(scan: Scan, end: str, *, sibling: bool) -> Generator[None, None, str]:
    """Read one object: `call`, `broken` (and reported), or `text` when it is no call.

    What stands in an array of calls is meant for one, even when no call can be read out of it.
    """
    src = scan.src
    first = src.at
    call = scan.call()
    fault = yield from ObjectCall(scan, call, tentative=True).read()
    if not call.opened and not (fault and sibling and end):
        if fault == "invalid_json":
            _back_to_line(scan, first)
        return "text"
    if not fault:
        call.close()
        return "call"
    if fault == "invalid_json" and end:
        yield from skip_entry(scan, first, (), ())
    elif fault == "invalid_json":
        yield from skip_broken(scan, doubtful(scan, first + 1), ('{"name"', "\n", ";"), ())
    call.fail(fault, MESSAGES[fault], src.captured())
    return "broken"


def _junk(scan: Scan) -> Generator[None, None, str]:
    """Report an entry of an array of calls that is no object."""
    yield from skip_entry(scan, scan.src.at, (), ())
    scan.fail("malformed", NO_OBJECT, scan.src.begun, scan.src.captured())
    return "broken"


def _back_to_line(scan: Scan, first: int) -> None:
    """After text that is no JSON, go on at the next line: what follows there may be a call."""
    src = scan.src
    if src.reread > _REREAD + 4 * src.at:
        return
    read = src.captured()
    line = read.find("\n", max(0, first - src.begun))
    if line >= 0:
        src.reread += len(read) - line
        src.rewind(src.begun + line)
