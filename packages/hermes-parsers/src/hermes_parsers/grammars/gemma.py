"""Gemma's calls: `call:NAME{key:value}` with strings between delimiters of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from hermes_parsers.grammars.json_object import MESSAGES
from hermes_parsers.json_scan import json_value
from hermes_parsers.json_text import MAX_DEPTH, decode_string
from hermes_parsers.markers import markers
from hermes_parsers.python_text import json_inside
from hermes_parsers.reading import ahead, literal, one_of, peek, run, space
from hermes_parsers.resync import skip_broken
from hermes_parsers.scan import Call, Scan, Steps
from hermes_parsers.schema import child, typed, types_of
from hermes_parsers.source import Source

_NAME = re.compile(r"[\w.\-:/]*").match
_BARE = re.compile(r"[^,{}\[\]<\"]*").match
_BARE_KEY = re.compile(r"[^:,{}\[\]<\"]*").match
_WORD = re.compile(r"\w*").match
_GUESS = ("integer", "number", "boolean", "null")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Gemma:
    """Reads one call after its start tag.

    Attributes:
        opener: The start tag.
        close: The end tag.
        quote: What stands on both sides of a string.
        guess: A bare value without a schema is read as JSON where it is.
    """

    opener: str
    close: str
    quote: str
    guess: bool

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read the call after `marker`."""
        src = scan.src
        name = yield from _header(src)
        if not name:
            return False
        call = scan.call()
        call.open(name)
        members = _Members(self, scan, call, name)
        fault = yield from members.read()
        if fault:
            if fault == "invalid_json":
                yield from skip_broken(scan, members.read_to, (self.opener,), (self.close,))
            call.fail(fault, MESSAGES[fault], src.captured())
            return True
        call.close()
        after = src.at
        yield from space(src)
        if not (yield from literal(src, self.close)):
            scan.open_blocks.add(self.close)
            src.rewind(after)
        return True


def _header(src: Source) -> Generator[None, None, str]:
    """Read up to the brace of a call; returns its name, or "" when it is none."""
    yield from space(src)
    yield from literal(src, "call")
    if not (yield from literal(src, ":")):
        return ""
    name = (yield from run(src, _NAME, _LONGEST)).strip()
    return name if (ahead(src) or (yield from space(src))) == "{" else ""


class _Members:
    """Turns the braces after a name into JSON text.

    Attributes:
        read_to: Where the last complete string ended; nothing before it begins a call.
    """

    def __init__(self, tags: Gemma, scan: Scan, call: Call, name: str) -> None:
        self.tags = tags
        self.scan = scan
        self.src = scan.src
        self.read_to = scan.src.at
        self.emit = call.add
        self.root: Any = (scan.options.tools or {}).get(name)
        self.guess = tags.guess or scan.options.untyped == "json"
        self.stack: list[tuple[str, Any]] = []
        self.deepest = 0

    def read(self) -> Generator[None, None, str]:
        """Read the object that comes next; returns "" or the kind of error."""
        src, stack = self.src, self.stack
        node: Any = self.root if self.root is not None else None
        wanted, comma = True, False
        while True:
            char = ahead(src) or (yield from space(src))
            if not char:
                return "truncated"
            if stack and char == stack[-1][0]:
                src.pos += 1
                self.emit(stack.pop()[0])
                wanted = comma = False
                if not stack:
                    return "too_deep" if self.deepest > MAX_DEPTH else ""
                continue
            if not wanted:
                if char != ",":
                    return "invalid_json"
                src.pos += 1
                wanted = comma = True
                continue
            if comma:
                self.emit(", ")
                comma = False
            if stack:
                node = stack[-1][1]
                if stack[-1][0] == "}":
                    key = yield from self._key()
                    if key is None:
                        return "truncated" if src.ended and src.pos >= len(src.text) else "invalid_json"
                    node = child(node, key, self._definitions())
                    char = ahead(src) or (yield from space(src))
                else:
                    node = child(node, None, self._definitions())
            if char and char in "{[":
                src.pos += 1
                self.emit(char)
                stack.append(("}" if char == "{" else "]", node))
                self.deepest = max(self.deepest, len(stack))
                continue
            fault = yield from self._scalar(char, node)
            if fault:
                return fault
            wanted = False

    def _definitions(self) -> Any:
        return self.root or {}

    def _key(self) -> Generator[None, None, str | None]:
        """Read a key and its colon; emits it."""
        src = self.src
        char = ahead(src) or (yield from space(src))
        held: list[str] = []
        if char == '"':
            if (yield from json_value(src, held.append)) != "ok":
                return None
            key = decode_string("".join(held))
            if key is None:
                return None
        elif (yield from literal(src, self.tags.quote)):
            if (yield from self._string(held.append, ":,}]")):
                return None
            key = "".join(held)
        else:
            key = (yield from run(src, _BARE_KEY, _LONGEST)).strip()
        if (ahead(src) or (yield from space(src))) != ":":
            return None
        src.pos += 1
        self.emit(encode_basestring(key) + ": ")
        return key

    def _scalar(self, char: str, node: Any) -> Generator[None, None, str]:
        """Read a string, quoted in either way, or a bare word; returns "" or the kind of error."""
        src = self.src
        types, words = types_of(node, self._definitions())
        if char == '"':
            quoted: list[str] = []
            if (yield from json_value(src, quoted.append)) != "ok":
                return "truncated"
            value = decode_string("".join(quoted))
            if value is None:
                return "invalid_json"
            self.emit(typed(value, types, words))
            return ""
        if (yield from literal(src, self.tags.quote)):
            if not types or types == ("string",):
                self.emit('"')
                fault = yield from self._string(self._emit_text, ",}]")
                self.emit('"')
                return fault
            held: list[str] = []
            fault = yield from self._string(held.append, ",}]")
            self.emit(typed("".join(held), types, words))
            return fault
        text = (yield from run(src, _BARE, 1 << 62)).strip()
        if not (ahead(src) or (yield from space(src))):
            return "truncated"
        if src.text[src.pos] not in ",}]" or not text:
            return "invalid_json"
        if not types and (self.guess or node is not None):
            types = _GUESS
        self.emit(typed(text, types, words))
        return ""

    def _emit_text(self, text: str) -> None:
        self.emit(json_inside(text))

    def _string(self, put: Callable[[str], None], followers: str) -> Generator[None, None, str]:
        """Read up to the closing delimiter, which is one where the value can end, or where the call does not go on.

        A whole call inside a string is part of it. A string that holds the end of this call, and then a delimiter that
        ends nothing or the start of another call, was never closed.
        """
        src, quote, close = self.src, self.tags.quote, self.tags.close
        found = markers((quote, close, self.tags.opener))
        inner = ended = False
        calls = 0  # inside the string and open
        while True:
            index, word = found.next(src)
            put(src.text[src.pos : index])
            src.pos = index + len(word)
            if not word:
                if src.ended:
                    return "truncated"
                yield
                continue
            after = src.at
            if word == self.tags.opener:
                begins = (yield from _header(src)) != ""
                src.rewind(after)
                if begins and ended:
                    return "invalid_json"
                calls += begins
            elif word == close:
                ended = ended or not (inner or calls)
                calls -= calls > 0
            if word != quote or calls:
                put(word)
                continue
            char = ahead(src) or (yield from space(src))
            over = not char or char in followers or (yield from self._breaks(inner=inner))
            src.rewind(after)
            if over:
                self.read_to = after
                return ""
            if ended:
                return "invalid_json"
            put(quote)
            inner = not inner

    def _breaks(self, *, inner: bool) -> Generator[None, None, bool]:
        """Whether the call ends, or its next member begins, though nothing closes the braces or separates the two."""
        tags, src = self.tags, self.src
        if (
            yield from one_of(
                src, (tags.close, tags.opener) if inner else (tags.close, tags.opener, tags.quote)
            )
        ):
            return True
        if inner:
            return False
        return (yield from run(src, _WORD, _LONGEST)) != "" and (yield from peek(src)) == ":"
