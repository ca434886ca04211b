"""Mistral: an array of objects (old), or a name before its arguments (new), after `[TOOL_CALLS]`."""

from __future__ import annotations

import random
import re
import string

from hermes_parsers.grammars.arguments import read_arguments, settle
from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.reading import ahead, one_of, run, space
from hermes_parsers.scan import Scan, Steps

MARKER, ARGS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_ARRAY = JsonBlock((MARKER,), late_ids=True)
_NAME = re.compile(r"[^\s\[\]{}\"<]*").match
_WORDS = re.compile(r"[^\[\]{}<\n]*").match
_LONGEST = 256


def mistral_id() -> str:
    """Nine letters and digits, the only ids that Mistral's API takes."""
    return "".join(random.choices(string.ascii_letters + string.digits, k=9))


def read_mistral(scan: Scan, marker: str) -> Steps:
    """Read what follows `[TOOL_CALLS]`."""
    src = scan.src
    start = src.at
    char = ahead(src) or (yield from space(src))
    if char and char in "[{":
        return (yield from _array(scan))
    spaced = src.at > start
    name = yield from run(src, _NAME, _LONGEST)
    if not name or len(name) > _LONGEST:
        return False
    after = src.at
    char = ahead(src) or (yield from space(src))
    id, word = None, ""
    if char == "[":
        word = yield from one_of(src, (ARGS, CALL_ID, MARKER))
        if word == CALL_ID:
            id = (yield from run(src, _NAME)).strip()
            word = yield from one_of(src, (ARGS,))
    if word == ARGS or (char == "{" and not word):
        call = scan.call()
        call.open(name, id)
        fault = yield from read_arguments(scan, call)
        yield from settle(scan, call, fault, (MARKER,), (), r"\s*[\w\[{]")
        return True
    known = scan.options.tools is not None and name in scan.options.tools
    if word == MARKER or (known and char in ("", "<")):
        src.rewind(after)
        call = scan.call()
        call.open(name)
        call.add("{}")
        call.close()
        return True
    if not char and not spaced:
        call = scan.call()
        call.fail("truncated", "the text ends before the arguments", src.captured())
        return True
    return (yield from _words_before_array(scan, start))


def _array(scan: Scan) -> Steps:
    """The old form, which has one array; the calls of a second are reported rather than made."""
    again = scan.state.get("array", False)
    if again and not scan.options.lenient:
        scan.refusal = "unexpected_call"
    before = len(scan.calls)
    read = yield from _ARRAY(scan, MARKER)
    scan.refusal = ""
    if len(scan.calls) > before:
        scan.state["array"] = True
        if again:
            scan.recover("repeated_marker")
    return read


def _words_before_array(scan: Scan, start: int) -> Steps:
    src = scan.src
    src.rewind(start)
    words = yield from run(src, _WORDS, _LONGEST)
    if len(words) > _LONGEST or src.pos >= len(src.text) or src.text[src.pos] != "[":
        return False
    src.pos += 1
    if (ahead(src) or (yield from space(src))) != "{":
        return False
    scan.text(words)
    src.rewind(start + len(words))
    return (yield from _array(scan))
