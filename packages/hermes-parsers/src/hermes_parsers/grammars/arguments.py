"""The JSON arguments of a call whose name stands before them."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hermes_parsers.grammars.json_object import MESSAGES
from hermes_parsers.json_scan import json_value
from hermes_parsers.json_text import decode
from hermes_parsers.reading import ahead, space
from hermes_parsers.resync import doubtful, skip_broken
from hermes_parsers.scan import Call, Scan, Steps


def read_arguments(scan: Scan, call: Call) -> Generator[None, None, str]:
    """Read the JSON object that comes next; returns "" or the kind of error."""
    src = scan.src
    char = ahead(src) or (yield from space(src))
    if char == "{":
        verdict = yield from json_value(src, call.add)
        if verdict != "ok":
            return "invalid_json" if verdict == "invalid" else verdict
        try:
            decode(call.text())
        except ValueError:
            return "invalid_json"
        return ""
    if not char:
        return "truncated"
    parts: list[str] = []
    verdict = yield from json_value(src, parts.append)
    if verdict != "ok":
        return "invalid_json" if verdict == "invalid" else verdict
    return _unwrap(call, "".join(parts))


def _unwrap(call: Call, text: str) -> str:
    """Accept `null`, and an object that is written as a string."""
    try:
        value = decode(text)
        if isinstance(value, str):
            text = value.strip() or "{}"
            value = decode(text)
    except ValueError:
        return "invalid_json"
    if value is None:
        text, value = "{}", {}
    if not isinstance(value, dict):
        return "invalid_arguments"
    call.add(text)
    return ""


def settle(
    scan: Scan,
    call: Call,
    fault: str,
    stops: Sequence[str],
    ends: Sequence[str],
    opening: str = "",
    *,
    body: int | None = None,
) -> Steps:
    """Close the call, or report its fault and leave it; returns whether it was read.

    `stops`, `ends` and `opening` are those of `resync.skip_broken`; `body` is where the arguments begin, which is
    anywhere after the start of the call by default.
    """
    if not fault:
        call.close()
        return True
    if fault == "invalid_json":
        start = doubtful(scan, scan.src.begun + 1 if body is None else body)
        yield from skip_broken(scan, start, stops, ends, opening)
    call.fail(fault, MESSAGES[fault], scan.src.captured())
    return False
