"""Lenient reading of text whose special tokens a server has skipped, so that calls stand bare at the start of a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from hermes_parsers.format import Format
from hermes_parsers.grammars.arguments import read_arguments, settle
from hermes_parsers.grammars.bare_json import read_bare
from hermes_parsers.reading import ahead, literal, one_of, run, space
from hermes_parsers.scan import Scan, Steps

RECOVERY = "skipped_special_tokens"
BRACKETS = ("{", "[")
_NUMBERED = re.compile(r"[\w.\-:]*").match
_NUMBER = re.compile(r"[\w.\-]+:\d+").fullmatch
_BLANKS = re.compile(r"[ \t]*").match
_NAME = re.compile(r"[\w.\-]*").match


def read_numbered(scan: Scan) -> Steps:
    """Read what is left of a Kimi call: `functions.NAME:0{…}`."""
    src = scan.src
    id = "functions." + (yield from run(src, _NUMBERED))
    if not _NUMBER(id) or (ahead(src) or (yield from space(src))) != "{":
        return False
    yield from _finish(scan, id.removeprefix("functions.").rpartition(":")[0], id)
    return True


def read_fenced(scan: Scan) -> Steps:
    """Read what is left of a DeepSeek V3 call: `functionNAME`, a fence, arguments."""
    src = scan.src
    yield from run(src, _BLANKS)
    name = yield from run(src, _NAME)
    yield from space(src)
    if not name or not (yield from literal(src, "```json")):
        return False
    yield from _finish(scan, name, None)
    return True


def _finish(scan: Scan, name: str, id: str | None) -> Generator[None, None, None]:
    src = scan.src
    call = scan.call()
    call.open(name, id)
    fault = yield from read_arguments(scan, call)
    if not fault:
        after = src.at
        yield from space(src)
        if not (yield from one_of(src, ("```",))):
            src.rewind(after)
    yield from settle(scan, call, fault, (), ("\n",))


HEADS: dict[str, Callable[[Scan], Steps]] = {"functions.": read_numbered, "function": read_fenced}


@dataclass(frozen=True, slots=True)
class Skipped:
    """Reads bare calls, and leaves everything else to the format's own grammar.

    Attributes:
        read: The format's own grammar.
        again: Openers that are part of what that grammar reads.
        names: The name of a tool and `{` begin a call.
        bare: Reads what a bracket begins.
    """

    read: Callable[[Scan, str], Steps]
    again: tuple[str, ...]
    names: bool
    bare: Callable[[Scan, str], Steps]

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read what follows `marker`."""
        name = marker[:-1] if self.names and marker not in BRACKETS and marker.endswith("{") else ""
        if not name and marker not in BRACKETS and marker not in HEADS and marker not in self.again:
            return (yield from self.read(scan, marker))
        if not scan.fresh:
            return False
        found = len(scan.calls)
        if marker in BRACKETS:
            read = yield from self.bare(scan, marker)
        elif marker in HEADS:
            read = yield from HEADS[marker](scan)
        elif name:
            scan.src.pos -= 1
            yield from _finish(scan, name, None)
            read = True
        else:
            scan.src.rewind(scan.src.begun)
            read = yield from self.read(scan, marker)
        if len(scan.calls) > found:
            scan.recover(RECOVERY)
        return read


def with_skipped(
    format: Format,
    *heads: str,
    again: tuple[str, ...] = (),
    names: bool = False,
    bare: Callable[[Scan, str], Steps] = read_bare,
) -> Format:
    """The format, reading under `lenient` also calls that begin with one of `heads` at the start of a line.

    `again`, `names` and `bare` are those of `Skipped`.
    """
    read = format.read
    if read is None:
        return format
    openers = (*format.lenient_openers, *heads, *again)
    return replace(
        format,
        read=Skipped(read, again, names, bare),
        lenient_openers=openers,
        bare_names=names,
    )
