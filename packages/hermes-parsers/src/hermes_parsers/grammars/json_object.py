"""A call written as one JSON object with a name and arguments."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from hermes_parsers.json_scan import Verdict, json_value, string_in_hand
from hermes_parsers.json_text import decode, decode_string, encode
from hermes_parsers.reading import ahead, space
from hermes_parsers.scan import Call, Scan

NAMES = ("name",)
ARGUMENTS = ("arguments", "parameters")
_BESIDES = ("id", "type", "index")
_LENIENT_NAMES = ("tool", "tool_name", "function_name", "function", "action")
_LENIENT_ARGUMENTS = ("args", "input", "tool_input", "action_input", "kwargs", "params")

MESSAGES = {
    "invalid_json": "the call is not valid JSON",
    "truncated": "the text ends inside the call",
    "too_deep": "the arguments are nested too deeply",
    "missing_name": "the call does not name a tool",
    "invalid_arguments": "the arguments are not a JSON object",
    "malformed": "the call does not follow the format",
}
NO_OBJECT = "an entry of the array of calls is not an object"


class ObjectCall:
    """Reads one object and reports the call in it.

    Args:
        scan: The pass.
        call: The call to report to.
        key: The one member that holds the arguments; "" where the format has both.
        late_ids: The id may come last, so that nothing is shown before the end.
        tentative: Only an object with both a name and arguments is a call; until then nothing is shown.
    """

    __slots__ = ("call", "extra", "key", "late", "name", "scan", "seen", "tentative")

    def __init__(
        self, scan: Scan, call: Call, *, key: str = "", late_ids: bool = False, tentative: bool = False
    ) -> None:
        self.key = key
        self.tentative = tentative
        self.scan = scan
        self.call = call
        self.late = late_ids
        self.name = ""
        self.seen: set[str] = set()
        self.extra: dict[str, Any] = {}

    def read(self) -> Generator[None, None, str]:
        """Read the object that comes next; returns "" or the kind of error.

        After `invalid_json` the read position may be anywhere inside the call, after any other at its end.
        """
        src = self.scan.src
        src.pos += 1
        fault = ""
        first = True
        while True:
            char = ahead(src) or (yield from space(src))
            if char == "}":
                src.pos += 1
                return fault or self._finish()
            if not first:
                if char != ",":
                    return "invalid_json" if char else "truncated"
                src.pos += 1
                char = ahead(src) or (yield from space(src))
            first = False
            if char != '"':
                return "invalid_json" if char else "truncated"
            fault = (yield from self._member()) or fault
            if fault in ("invalid_json", "truncated"):
                return fault

    def _member(self) -> Generator[None, None, str]:
        src = self.scan.src
        text = string_in_hand(src)
        if not text:
            parts: list[str] = []
            verdict = yield from json_value(src, parts.append)
            if verdict != "ok":
                return _kind(verdict)
            text = "".join(parts)
        key = decode_string(text)
        if key is None:
            return "invalid_json"
        if (ahead(src) or (yield from space(src))) != ":":
            return "truncated" if src.ended and src.pos >= len(src.text) else "invalid_json"
        src.pos += 1
        if not (ahead(src) or (yield from space(src))):
            return "truncated"
        role = self._role(key)
        if role == "arguments":
            return (yield from self._arguments())
        return (yield from self._other(key, role))

    def _role(self, key: str) -> str:
        if key in NAMES:
            return "name"
        if key in ARGUMENTS:
            if self.scan.options.lenient and self.key not in ("", key):
                self.scan.recover("alias_key")
            return "arguments"
        if self.scan.options.lenient:
            if key in _LENIENT_ARGUMENTS and "arguments" not in self.seen:
                self.scan.recover("alias_key")
                return "arguments"
            if key in _LENIENT_NAMES and "name" not in self.seen:
                return "alias"
        return ""

    def _arguments(self) -> Generator[None, None, str]:
        src = self.scan.src
        again = "arguments" in self.seen
        self.seen.add("arguments")
        direct = src.text[src.pos] == "{" and not again
        if direct and self.tentative:
            self._open()
        parts: list[str] = []
        verdict = yield from json_value(src, self.call.add if direct else parts.append)
        if verdict != "ok":
            return _kind(verdict)
        if direct:
            return _check(self.call.text())
        return self._indirect("".join(parts), again)

    def _indirect(self, text: str, again: bool) -> str:
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
        if again:
            return "" if decode(self.call.text() or "{}") == value else "malformed"
        if self.tentative:
            self._open()
        self.call.add(text)
        return ""

    def _other(self, key: str, role: str) -> Generator[None, None, str]:
        text = string_in_hand(self.scan.src)
        if not text:
            parts: list[str] = []
            verdict = yield from json_value(self.scan.src, parts.append)
            if verdict != "ok":
                return _kind(verdict)
            text = "".join(parts)
        value: Any = decode_string(text)
        if value is None:
            try:
                value = decode(text)
            except ValueError:
                return "invalid_json"
        if role == "alias" and isinstance(value, str):
            self.scan.recover("alias_key")
            role = "name"
        if role != "name":
            self.extra[key] = value
            return ""
        if not isinstance(value, str) or not value.strip():
            return "missing_name"
        if self.name:
            return "" if self.name == value.strip() else "malformed"
        self.name = value.strip()
        self.seen.add("name")
        if not self.late and (not self.tentative or self.call.parts):
            self._open()
        return ""

    def _open(self) -> None:
        tools = self.scan.options.tools
        if not self.name or self.call.opened:
            return
        if self.tentative and self.scan.options.known_only and tools is not None and self.name not in tools:
            return
        native = self.extra.get("id")
        self.call.open(self.name, native if isinstance(native, str) and native else None)

    def _finish(self) -> str:
        if not self.name:
            wrapped = self.extra.get("function")
            if not self.scan.options.lenient or not isinstance(wrapped, dict):
                return "missing_name"
            return self._wrapped(wrapped)  # pyright: ignore[reportUnknownArgumentType]
        if "arguments" not in self.seen:
            if any(key not in _BESIDES for key in self.extra):
                return "malformed"  # the arguments stand elsewhere: a call without them is not the one that was written
            self.call.add("{}")
        if self.late:
            self._open()
        return ""

    def _wrapped(self, function: dict[str, Any]) -> str:
        name = function.get("name")
        if not isinstance(name, str) or not name or "arguments" in self.seen:
            return "missing_name"
        self.scan.recover("openai_object")
        self.call.open(name)
        return self._indirect(encode(function.get("arguments", function.get("parameters"))), again=False)


def _kind(verdict: Verdict) -> str:
    return "invalid_json" if verdict == "invalid" else verdict


def _check(text: str) -> str:
    try:
        decode(text)
    except ValueError:
        return "invalid_json"
    return ""
