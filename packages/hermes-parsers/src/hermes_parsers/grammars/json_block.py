"""Blocks of calls written as JSON objects, alone or in an array, between tags."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from hermes_parsers.grammars.json_object import MESSAGES, NO_OBJECT, ObjectCall
from hermes_parsers.reading import ahead, literal, space
from hermes_parsers.resync import skip_broken, skip_entry
from hermes_parsers.scan import Scan, Steps

_BRACKETS = re.compile(r"[\s}\]]*").match


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """Reads a block after its start tag.

    Attributes:
        openers: The start tags.
        close: The end tag; "" where the format has none.
        lead: What must stand between the start tag and the JSON; "" for nothing.
        single: A single object in place of an array is a block: `always`, or to be `named` as a recovery under `lenient`,
            or read under `lenient` only.
        key: The member that holds the arguments; under `lenient` another is named as a recovery.
        late_ids: An object may end with its id, so that its call is shown only when it is complete.
    """

    openers: tuple[str, ...]
    close: str = ""
    lead: str = ""
    single: Literal["always", "named", "lenient"] = "always"
    key: str = "arguments"
    late_ids: bool = False

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read the block after `marker`."""
        src = scan.src
        char = ahead(src) or (yield from space(src))
        if self.lead and char:
            if not (yield from literal(src, self.lead)):
                return False
            char = ahead(src) or (yield from space(src))
        if char == "[":
            src.pos += 1
            char = ahead(src) or (yield from space(src))
            if char != "{":
                return False
            yield from self._objects(scan, "]")
        elif char == "{" and (scan.options.lenient or self.single != "lenient"):
            if scan.options.lenient and self.single != "always":
                scan.recover("single_object")
            yield from self._objects(scan, "")
        else:
            return False
        return True

    def _objects(self, scan: Scan, end: str) -> Generator[None, None, None]:
        src = scan.src
        entry = "{"
        while (yield from (self._object(scan, end) if entry == "{" else self._junk(scan))):
            after = src.at
            src.capture(src.pos)
            char = ahead(src) or (yield from space(src))
            separated = char == ","
            if separated:
                src.pos += 1
                char = ahead(src) or (yield from space(src))
            if char == "{" or (separated and end and char not in ("", end)):
                entry = char
                src.capture(src.pos)
                continue
            if char and char == end:
                src.pos += 1
                after = src.at
            yield from self._close(scan, after)
            return

    def _object(self, scan: Scan, end: str) -> Steps:
        """Read one object; False when the block is over with it."""
        src = scan.src
        first = src.at
        call = scan.call()
        fault = yield from ObjectCall(scan, call, key=self.key, late_ids=self.late_ids).read()
        if not fault:
            call.close()
            return True
        goes_on = fault != "truncated"
        if fault == "invalid_json":
            goes_on = yield from self._skip(scan, first, end)
        call.fail(fault, MESSAGES[fault], src.captured())
        return goes_on

    def _junk(self, scan: Scan) -> Steps:
        """Report an entry of the array that is no object; False when the block is over with it."""
        src = scan.src
        goes_on = yield from self._skip(scan, src.at, "]")
        scan.fail("malformed", NO_OBJECT, src.begun, src.captured())
        return goes_on

    def _skip(self, scan: Scan, first: int, end: str) -> Steps:
        """Leave a broken entry that began at `first`; False when the block is over with it."""
        ends = (self.close,) if self.close else ()
        leave = skip_entry if end else skip_broken
        found = yield from leave(scan, first, self.openers, ends, rf"\s*{re.escape(self.lead)}\s*[{{\[]")
        return found in (",", "]")

    def _close(self, scan: Scan, after: int) -> Generator[None, None, None]:
        """Read the end tag, over brackets too many; else leave the rest to the text."""
        src = scan.src
        if not self.close:
            return
        while True:
            found = _BRACKETS(src.text, src.pos)
            src.pos = found.end() if found else src.pos
            if src.pos < len(src.text) or src.ended:
                break
            yield
        if not (yield from literal(src, self.close)):
            scan.open_blocks.add(self.close)
            src.rewind(after)
