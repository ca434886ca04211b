"""Writing the arguments of a tagged call as JSON text while its values arrive."""

from __future__ import annotations

from json.encoder import encode_basestring

from hermes_parsers.json_text import decode
from hermes_parsers.scan import Call
from hermes_parsers.schema import Typing


class ArgumentWriter:
    """Builds the JSON object of one call.

    Text of string parameters is passed on as it comes; other values wait until they are complete.

    Args:
        call: The call to write to.
        typing: The types of its parameters.
        trim: Drop one line break at each end of a value, which the template put there.

    Attributes:
        read_to: Where the last complete value ended; nothing before it begins a call.
    """

    __slots__ = (
        "_call",
        "_first",
        "_held",
        "_hint",
        "_tail",
        "_text",
        "_trim",
        "keys",
        "last",
        "read_to",
        "typing",
    )

    def __init__(self, call: Call, typing: Typing, *, trim: bool) -> None:
        self._call = call
        self._trim = trim
        self.typing = typing
        self.keys: list[str] = []
        self.last = ""
        self.read_to = 0

    def start(self, key: str, hint: str = "") -> None:
        """A value begins. `hint` is `true` for text and `false` for JSON where the wire says so."""
        self._call.add(("{" if not self.keys else ", ") + encode_basestring(key) + ": ")
        self.keys.append(key)
        self._hint = hint
        self._text = hint == "true" or (hint != "false" and self.typing.is_text(key))
        self._held: list[str] = []
        self._first = True
        self._tail = ""
        self.last = "\n"
        if self._text:
            self._call.add('"')

    def add(self, text: str) -> None:
        """More text of the value."""
        if not text:
            return
        self.last = text[-1]
        if self._trim:
            if self._first and text[0] == "\n":
                text = text[1:]
            self._first = False
            text = self._tail + text
            self._tail = "\n" if text[-1:] == "\n" else ""
            if self._tail:
                text = text[:-1]
        if self._text:
            self._call.add(encode_basestring(text)[1:-1])
        else:
            self._held.append(text)

    def end(self) -> None:
        """The value is complete."""
        if self._text:
            self._call.add('"')
            return
        text = "".join(self._held)
        self._held.clear()
        self._call.add(self._json(text))

    def _json(self, text: str) -> str:
        if self._hint == "false":
            try:
                decode(text)
            except ValueError:
                pass
            else:
                return text.strip()
        return self.typing.json(self.keys[-1], text)

    def close(self) -> None:
        """The arguments are complete."""
        self._call.add("}" if self.keys else "{}")

    def satisfied(self) -> bool:
        """Whether a call that ends here, without saying so, can be taken for complete."""
        typing = self.typing
        if not self.keys:
            return typing.declared and typing.known is None and not typing.required
        return all(key in self.keys for key in typing.required)
