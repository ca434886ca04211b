"""Turning Python literals into JSON text while they arrive.

Reads what models write, which is a little more than Python: `true`, `false` and `null`, raw line breaks and unescaped
quotes inside strings, and integers with leading zeros. Nothing is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from json.encoder import encode_basestring
from typing import Any, Literal

from hermes_parsers.json_text import MAX_DEPTH, decode
from hermes_parsers.reading import ahead, literal, peek, run, space
from hermes_parsers.source import Source

Verdict = Literal["ok", "invalid", "truncated", "too_deep"]
Closes = Callable[[Source], Generator[None, None, Literal["closed", "broken", ""]]]
"""Tells, from what follows a quote, whether the quote ends the string: `broken` if so, but nothing goes on from there."""

_CLOSERS = {"list": "]", "tuple": ")", "brace": "}", "dict": "}", "set": "}", "pair": ""}
_OPENERS = {"[": "list", "(": "tuple", "{": "brace"}
_FOLLOWERS = {"list": ",]", "tuple": ",)", "set": ",}", "pair": ",}"}
_QUOTES = ("'", '"')
_SCALAR = re.compile(r"[0-9A-Za-z_.+\-]*").match
_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?").fullmatch
_BASED = re.compile(r"[+-]?0(?:[xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)").fullmatch
_PREFIX = re.compile(r"[rRbBuUfF]{1,2}\Z").match
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPE = re.compile(
    r"\\(?:(\n)|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_OTHER_ESCAPE = re.compile(r"\\(?![nrtbf])").search
_CONTROL = re.compile("[\x00-\x1f]").search
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"',
}  # fmt: skip
_LONGEST_ESCAPE = 10
_LONGEST_NUMBER = 4000


def json_inside(text: str) -> str:
    """The inside of a JSON string that stands for `text`."""
    return encode_basestring(text)[1:-1]


def read_literal(text: str) -> Any:
    """The value of a Python literal; None also when `text` is none."""
    src = Source()
    src.push(text)
    src.ended = True
    src.capture(0)
    parts: list[str] = []
    steps = PythonValue(src, parts.append).read()
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        if stop.value != "ok" or src.text[src.pos :].strip():
            return None
    return decode("".join(parts))


class PythonValue:
    """Reads one Python literal and emits it as JSON text.

    Args:
        src: The text; a capture must be on.
        emit: Takes the JSON text in pieces.
        closes: Whether a quote ends a string that is the whole value; by default every one does. A quotation inside
            the string hides what follows its end, but for what closes the string.
        bare_words: Called when a word that is no literal was taken for a string; None where that is an error.
    """

    __slots__ = ("_bare", "_closes", "_comma", "_deepest", "_emit", "_src", "_stack")

    def __init__(
        self,
        src: Source,
        emit: Callable[[str], None],
        closes: Closes | None = None,
        bare_words: Callable[[], None] | None = None,
    ) -> None:
        self._src = src
        self._emit = emit
        self._closes = closes
        self._bare = bare_words
        self._stack: list[str] = []
        self._deepest = 0
        self._comma = False

    def read(self) -> Generator[None, None, Verdict]:
        """Read the value that comes next; the verdicts are those of `json_scan.json_value`."""
        src, stack = self._src, self._stack
        wanted = True
        while True:
            char = ahead(src) or (yield from space(src))
            top = stack[-1] if stack else ""
            if not char:
                return "truncated"
            if top and char == _CLOSERS[top]:
                src.pos += 1
                self._close()
            elif not wanted:
                if char != ",":
                    return "invalid"
                src.pos += 1
                self._comma = wanted = True
                continue
            elif top in ("brace", "dict"):
                verdict = yield from self._key()
                if verdict != "ok":
                    return verdict
                if stack[-1] == "pair":
                    continue
            elif char in _OPENERS:
                src.pos += 1
                self._open(char)
                continue
            else:
                self._separate()
                verdict = yield from self._scalar(self._emit, _FOLLOWERS[top] if top else "")
                if verdict != "ok":
                    return verdict
            if not stack:
                return "too_deep" if self._deepest > MAX_DEPTH else "ok"
            if stack[-1] == "pair":
                stack[-1] = "dict"
            wanted = False

    def _open(self, char: str) -> None:
        self._separate()
        self._stack.append(_OPENERS[char])
        self._deepest = max(self._deepest, len(self._stack))
        if char != "{":
            self._emit("[")

    def _close(self) -> None:
        kind = self._stack.pop()
        self._comma = False
        self._emit("{}" if kind == "brace" else "}" if kind == "dict" else "]")

    def _separate(self) -> None:
        if self._comma:
            self._emit(", ")
            self._comma = False

    def _key(self) -> Generator[None, None, Verdict]:
        """Read a dict's key and its colon, or the first element of what turns out to be a set."""
        src, stack = self._src, self._stack
        undecided = stack[-1] == "brace"
        held: list[str] = []
        verdict = yield from self._scalar(held.append, ":,}" if undecided else ":")
        if verdict != "ok":
            return verdict
        key = "".join(held)
        char = ahead(src) or (yield from space(src))
        self._separate()
        if char == ":":
            src.pos += 1
            stack[-1] = "pair"
            key = key if key[0] == '"' else encode_basestring(key)
            self._emit(f"{{{key}: " if undecided else f"{key}: ")
            return "ok"
        if not undecided or not char:
            return "invalid" if char else "truncated"
        stack[-1] = "set"
        self._emit("[" + key)
        return "ok"

    def _scalar(self, emit: Callable[[str], None], followers: str) -> Generator[None, None, Verdict]:
        src = self._src
        word = yield from run(src, _SCALAR, _LONGEST_NUMBER)
        char = yield from peek(src)
        if char in _QUOTES and (not word or _PREFIX(word)):
            return (yield from self._string(emit, followers, raw="r" in word.lower()))
        if not word:
            return "invalid" if char else "truncated"
        if word in ("-", "+") and char == " ":
            yield from space(src)
            word += yield from run(src, _SCALAR, _LONGEST_NUMBER)
        value = _scalar_json(word)
        if value is None and self._bare is not None and word[0].isalpha():
            self._bare()
            value = encode_basestring(word)
        if value is None:
            return "invalid"
        emit(value)
        return "ok"

    def _string(
        self, emit: Callable[[str], None], followers: str, *, raw: bool
    ) -> Generator[None, None, Verdict]:
        src = self._src
        quote = src.text[src.pos]
        if (yield from literal(src, quote * 3)):
            quote *= 3
        else:
            src.pos += 1
        emit('"')
        # The last character, and the one before a quotation inside the string: what `=` or `(` introduces must end.
        before, inner = "", ""
        while True:
            text, start = src.text, src.pos
            end = _quote_at(text, start, quote)
            if end < 0:
                src.pos = len(text) if src.ended else _safe_end(text, start, quote)
                before = text[src.pos - 1] if src.pos > start else before
                emit(_inside(text[start : src.pos], raw=raw))
                if src.ended:
                    return "truncated"
                yield
                continue
            before = text[end - 1] if end > start else before
            emit(_inside(text[start:end], raw=raw))
            src.pos = end + len(quote)
            ends = yield from self._ends(followers)
            if ends == "closed" and inner not in ("=", "("):
                emit('"')
                return "ok"
            if ends == "closed" or (ends and not inner):
                return "invalid"
            emit(json_inside(quote))
            if inner:
                inner = ""
            elif not before.isalnum():
                inner = before or quote
            before = quote

    def _ends(self, followers: str) -> Generator[None, None, str]:
        """Whether a quote just read ends its string: what follows must make sense after a string."""
        src = self._src
        if not followers:
            return "closed" if self._closes is None else (yield from self._closes(src))
        start = src.at
        char = ahead(src) or (yield from space(src))
        src.rewind(start)
        return "closed" if not char or char in followers else ""


def _scalar_json(word: str) -> str | None:
    """JSON text of a number or a keyword."""
    if word in _WORDS:
        return _WORDS[word]
    if len(word) > _LONGEST_NUMBER:
        return None
    if _NUMBER(word):
        plain = word.replace("_", "").lstrip("+")
        if plain.lstrip("-").isdigit():
            return str(int(plain))
        value = float(plain)
        return repr(value) if value - value == 0 else None
    return str(int(word, 0)) if _BASED(word) else None


def _quote_at(text: str, start: int, quote: str) -> int:
    """Index of the next quote that no backslash escapes; -1 when there is none."""
    pos = text.find(quote, start)
    while pos > start and text[pos - 1] == "\\":
        first = pos - 1
        while first > start and text[first - 1] == "\\":
            first -= 1
        if (pos - first) % 2 == 0:
            break
        pos = text.find(quote, pos + 1)
    return pos


def _safe_end(text: str, start: int, quote: str) -> int:
    """Where reading may stop in a string that goes on: not inside an escape or a run of quotes."""
    end = len(text)
    if len(quote) > 1:
        end = max(start, end - 2)
    slash = text.rfind("\\", max(start, end - _LONGEST_ESCAPE), end)
    if slash < 0:
        return end
    before = text[start:slash]
    escaped = (len(before) - len(before.rstrip("\\"))) % 2
    return end if escaped else slash


def _inside(text: str, *, raw: bool) -> str:
    if raw or "\\" not in text:
        inside = json_inside(text)
    else:
        inside = _same_escapes(text) or json_inside(_ESCAPE.sub(_unescape, text))
    # Two halves of a pair may come from two escapes; only as escapes do they make one character in JSON.
    return inside if inside.isascii() else _SURROGATE.sub(_escape, inside)


def _same_escapes(text: str) -> str | None:
    """The inside of a JSON string, when all escapes in `text` mean the same there; in a few fast passes."""
    if "\0" in text:
        return None
    # Many matches of two characters are replaced twice as fast by splitting and joining.
    held = "'".join("\0".join(text.split("\\\\")).split("\\'")).replace('\\"', '"')
    if "\n" in held:
        held = held.replace("\\\n", "")
    if _OTHER_ESCAPE(held):
        return None
    plain = held.replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    plain = plain.replace("\0", "\\\\")
    return plain if plain.isprintable() or not _CONTROL(plain) else None


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _unescape(found: re.Match[str]) -> str:
    newline, short, long, longest, octal, other = found.groups()
    if newline:
        return ""
    digits = short or long or longest
    if digits:
        code = int(digits, 16)
        return chr(code) if code < 0x110000 else found.group()
    if octal:
        return chr(int(octal, 8))
    return _SIMPLE.get(other, found.group())
