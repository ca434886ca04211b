"""Calls whose arguments are plain text between tags (Qwen3-Coder, GLM, MiniMax, DeepSeek's DSML, Step 3)."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from hermes_parsers.grammars.argument_writer import ArgumentWriter
from hermes_parsers.grammars.arguments import read_arguments
from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.grammars.json_object import MESSAGES
from hermes_parsers.grammars.spelling import Spelling
from hermes_parsers.grammars.tagged_value import ValueReader
from hermes_parsers.markers import Markers, markers
from hermes_parsers.reading import ahead, literal, one_of, run, space
from hermes_parsers.resync import skip_broken
from hermes_parsers.scan import Call, Scan, Steps
from hermes_parsers.schema import Typing

_NONE = Spelling(())
_LONGEST_HEADER = 512
_LONGEST_TAG = 64
_MOST_FILLER = 8
_UNTIL_BRACKET = re.compile(r"[^<>\n]*").match
_LINE = re.compile(r"[^<\n{]*").match
_QUOTED = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)')(.*)""", re.DOTALL).fullmatch
_ATTRIBUTE = re.compile(r"\s\w+\s*=").search
_PLAIN_HEADER = re.compile(
    r"""(?:([^\s<>"']{1,512}+)|"([^"<>\n]{1,400}+)"(?: string="(true|false)")?)>"""
).match
_STRING_HINT = re.compile(r"""\bstring\s*=\s*["']?(true|false)""").search
_NAME = re.compile(r"[^\s<>{}\[\]\"'`]+").fullmatch

Header = tuple[str, str]
"""What a start tag holds: a name, and a hint on the type of the value."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The tags of a format, and the reader of its blocks.

    Attributes:
        call: Start of a call, up to its name.
        call_end: End of a call.
        param: Start of a parameter, up to its name.
        param_end: End of a parameter.
        block: Start of a block of calls; none where every call stands alone.
        block_end: End of a block.
        line_name: A name ends with its line or at the next tag, rather than with `>`.
        key_end: Between the name and the value of a parameter; none where `>` is.
        value: After `key_end`, the start of the value.
        name_end: Tags that may follow the name of a call.
        filler: What may stand between the parts of a block and means nothing.
        trim: Values begin and end with one line break that is not theirs.
        words: The tags that may follow a value, that may follow a call, and that mean something in a value; each for
            strict and for lenient reading.
        bare: Calls may stand without a block: `line` at the start of a line, `any` anywhere.
        plain_key: Matches the rest of a parameter's start tag, up to its value, where all of it is in hand.
    """

    call: Spelling
    call_end: Spelling
    param: Spelling
    param_end: Spelling
    block: Spelling = _NONE
    block_end: Spelling = _NONE
    line_name: bool = False
    key_end: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    name_end: tuple[str, ...] = ()
    filler: tuple[str, ...] = ()
    trim: bool = False
    bare: str = "any"
    words: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    plain_key: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out which tags matter where."""
        object.__setattr__(self, "words", (_words(self, lenient=False), _words(self, lenient=True)))
        ends, values = ("|".join(map(re.escape, words)) for words in (self.key_end, self.value))
        plain = rf"([^\s<>]{{1,{_LONGEST_HEADER}}}+)(?:{ends})\s*(?:{values})"
        object.__setattr__(self, "plain_key", re.compile(plain))

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read what follows `marker`, the start of a block or of a call."""
        inside = marker in self.block.every
        if inside:
            if (yield from literal(scan.src, marker)):
                return False
            yield from self._skip(scan)
            word = yield from one_of(scan.src, self.call.of(scan))
            if not word:
                return scan.options.lenient and (yield from self._json_body(scan, marker))
            self.block.note(scan, marker)
        elif self.bare == "line" and not scan.fresh and not scan.options.lenient:
            return False
        else:
            word = marker
        if not (yield from self._call(scan, word, inside=inside)):
            return False
        if not inside and self.bare == "line" and scan.options.lenient:
            scan.recover("bare_call")
        yield from self._rest(scan)
        return True

    def _json_body(self, scan: Scan, marker: str) -> Steps:
        """A block that holds JSON, as other formats do."""
        if (yield from space(scan.src)) not in ("{", "["):
            return False
        scan.recover("json_body")
        end = self.block_end.strict or self.call_end.strict
        return (yield from JsonBlock((marker,), end[0])(scan, marker))

    def _skip(self, scan: Scan) -> Generator[None, None, None]:
        yield from space(scan.src)
        for _ in range(_MOST_FILLER if self.filler else 0):
            if not (yield from one_of(scan.src, self.filler)):
                return
            yield from space(scan.src)

    def _rest(self, scan: Scan) -> Generator[None, None, None]:
        """Read the further calls of a block and its end; other text is left to the text loop."""
        src = scan.src
        while self.block.strict:
            after = src.at
            src.capture(src.pos)
            yield from self._skip(scan)
            start = src.at
            word = yield from one_of(src, (*self.call.of(scan), *self.block_end.of(scan)))
            if word in self.block_end.every:
                return
            if word:
                src.rewind(start)
                src.capture(src.pos)
                src.pos += len(word)
                if (yield from self._call(scan, word, inside=True)):
                    continue
            src.rewind(start if word else after)
            scan.open_blocks.update(self.block_end.of(scan))
            return

    def _call(self, scan: Scan, marker: str, *, inside: bool) -> Steps:
        """Read one call; False, with nothing shown, when it is none."""
        body = scan.src.at
        name = yield from self._name(scan)
        if name is None or not (inside or (yield from self._goes_on(scan))):
            if self.line_name or not inside:
                return False
            yield from self._broken(scan, scan.call(), "malformed", body)
            return True
        self.call.note(scan, marker)
        call = scan.call()
        call.open(name)
        writer = ArgumentWriter(call, typing_of(scan, name), trim=self.trim)
        fault = yield from self._body(scan, call, writer)
        if fault in ("malformed", "invalid_json"):
            yield from self._broken(scan, call, fault, max(body, writer.read_to))
        elif fault:
            call.fail(fault, MESSAGES[fault], scan.src.captured())
        else:
            call.close()
        return True

    def _body(self, scan: Scan, call: Call, writer: ArgumentWriter) -> Generator[None, None, str]:
        """Read the parameters and the end of the call; returns "" or the kind of error."""
        src = scan.src
        words = self.after_value(scan)
        while True:
            char = ahead(src) or (yield from space(src))
            here = src.at
            word = yield from one_of(src, words)
            if word in self.param.every:
                header = yield from self.key(scan)
                if header is None:
                    return "truncated" if src.ended and src.pos >= len(src.text) else "malformed"
                writer.start(*header)
                if (yield from ValueReader(scan, self, writer).read()) == "truncated":
                    return "truncated"
                writer.end()
                writer.read_to = src.at
            elif word:
                if word not in self.call_end.every:
                    src.rewind(here)
                writer.close()
                return ""
            elif char == "{" and not writer.keys:
                fault = yield from read_arguments(scan, call)
                if fault:
                    return fault
                yield from space(src)
                yield from one_of(src, self.call_end.of(scan))
                return ""
            else:
                return (yield from self._unended(scan, writer, here))

    def _unended(self, scan: Scan, writer: ArgumentWriter, here: int) -> Generator[None, None, str]:
        """The call does not go on: complete all the same where the text ends, else malformed."""
        src = scan.src
        rest = src.text[src.pos :] if src.ended and len(src.text) - src.pos < _LONGEST_TAG else ""
        if rest and any(word.startswith(rest) for word in self.after_value(scan)):
            here = src.at + len(rest)
            src.pos = len(src.text)
            if any(word.startswith(rest) for word in self.param.every):
                return "truncated"
        while (yield from one_of(src, scan.format.end_of_turn)):
            yield from space(src)
        if src.pos < len(src.text):
            return "malformed"
        if not writer.satisfied():
            return "truncated"
        src.rewind(here)
        writer.close()
        return ""

    def _broken(self, scan: Scan, call: Call, fault: str, body: int) -> Generator[None, None, None]:
        stops = (*self.block.of(scan), *self.call.of(scan))
        ends = (*self.call_end.of(scan), *self.block_end.of(scan))
        yield from skip_broken(scan, body, stops, ends)
        call.fail(fault, MESSAGES[fault], scan.src.captured())

    def _name(self, scan: Scan) -> Generator[None, None, str | None]:
        src = scan.src
        if self.line_name:
            name = (yield from run(src, _LINE, _LONGEST_HEADER)).strip()
            if self.name_end:
                yield from one_of(src, self.name_end)
            if not _NAME(name):
                return None
            return name if (yield from self._goes_on(scan)) else None
        header = yield from self._bracketed(scan)
        return header[0] if header else None

    def _goes_on(self, scan: Scan) -> Steps:
        """Whether what follows the name makes a call of it."""
        src = scan.src
        char = ahead(src) or (yield from space(src))
        if not char:
            return not self.line_name or scan.options.tools is not None
        here = src.at
        word = yield from one_of(src, self.after_value(scan))
        ended = bool(word) or (yield from one_of(src, scan.format.end_of_turn)) != ""
        src.rewind(here)
        return ended or char == "{"

    def is_call(self, scan: Scan) -> Steps:
        """Whether a name follows, and then a parameter or the end of a call."""
        name = yield from self._name(scan)
        if name is None:
            return False
        yield from space(scan.src)
        return (yield from one_of(scan.src, (*self.param.of(scan), *self.call_end.of(scan)))) != ""

    def key(self, scan: Scan) -> Generator[None, None, Header | None]:
        """Read the rest of a parameter's start tag; None when it is none."""
        if not self.key_end:
            return (yield from self._bracketed(scan))
        src = scan.src
        plain = self.plain_key.match(src.text, src.pos)
        if plain:
            src.pos = plain.end()
            return plain.group(1), ""
        key = (yield from run(src, _UNTIL_BRACKET, _LONGEST_HEADER)).strip()
        if not key:
            return None
        if (yield from one_of(src, (*self.key_end, *self.value))) in self.value:
            return key, ""
        if src.pos >= len(src.text) and src.ended:
            return None
        after = src.at
        yield from space(src)
        if not (yield from one_of(src, self.value)):
            src.rewind(after)
        return key, ""

    def _bracketed(self, scan: Scan) -> Generator[None, None, Header | None]:
        src = scan.src
        plain = _PLAIN_HEADER(src.text, src.pos)
        if plain:
            src.pos = plain.end()
            return plain.group(1) or plain.group(2), plain.group(3) or ""
        inner = yield from run(src, _UNTIL_BRACKET, _LONGEST_HEADER)
        if not inner.strip() or src.text[src.pos : src.pos + 1] != ">":
            return None
        src.pos += 1
        name, more = _split_header(inner)
        hint = _STRING_HINT(more)
        return name, hint.group(1) if hint else ""

    def after_value(self, scan: Scan) -> tuple[str, ...]:
        """The tags that may follow a value."""
        return self.words[scan.options.lenient][0]

    def after_call(self, scan: Scan) -> tuple[str, ...]:
        """The tags that may follow the end of a call."""
        return self.words[scan.options.lenient][1]

    def inside(self, scan: Scan) -> Markers:
        """The tags that mean something inside a value."""
        return self.words[scan.options.lenient][2]


def _split_header(inner: str) -> tuple[str, str]:
    """The name in a start tag, which may hold blanks and quotes, and the attributes after it."""
    if quoted := _QUOTED(inner):
        return quoted.group(1) or quoted.group(2) or "", quoted.group(3)
    more = _ATTRIBUTE(inner)
    end = more.start() if more else len(inner)
    return inner[:end].strip().strip("\"'"), inner[end:]


def _words(tags: Tagged, *, lenient: bool) -> tuple[tuple[str, ...], tuple[str, ...], Markers]:
    def of(*tags: Spelling) -> tuple[str, ...]:
        return tuple(word for tag in tags for word in (tag.every if lenient else tag.strict))

    starts = of(tags.block, tags.call)
    ends = of(tags.call_end, tags.block_end)
    after_value = tuple(dict.fromkeys((*of(tags.param), *ends, *starts)))
    after_call = tuple(dict.fromkeys((*of(tags.block_end), *starts)))
    return after_value, after_call, markers((*of(tags.param_end, tags.param), *ends, *of(tags.call)))


def typing_of(scan: Scan, tool: str) -> Typing:
    """The types of a tool's parameters, worked out once per pass."""
    found = scan.typings.get(tool)
    if found is None:
        found = scan.typings[tool] = Typing(scan.options, tool)
    return found
