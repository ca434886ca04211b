"""The text being read: what has not been consumed yet, and what a call under way may need again."""

from __future__ import annotations

_BLOCK = 256


class Source:
    """A growing text with a read position.

    Consumed text is dropped as soon as more arrives, unless a capture is on: then it is kept, in amortised
    constant time per character, so that a call can give its raw text or be read again.

    Attributes:
        text: The text in hand. Indexes into it are valid until the next `push`.
        pos: Index of the next character to read.
        offset: Position of `text[0]` in the whole text.
        ended: No more text will come.
        begun: Where the capture began in the whole text.
        reread: How many characters were read again after broken calls.
    """

    __slots__ = ("_blocks", "_kept", "_mark", "begun", "ended", "offset", "pos", "reread", "text")

    def __init__(self) -> None:
        self.text = ""
        self.pos = 0
        self.offset = 0
        self.ended = False
        self.begun = 0
        self.reread = 0
        self._mark = -1
        self._kept: list[str] = []
        self._blocks: list[str] = []

    def push(self, chunk: str) -> None:
        """Append `chunk` and drop what was consumed."""
        pos = self.pos
        if self._mark >= 0:
            if pos > self._mark:
                self._kept.append(self.text[self._mark : pos])
                if len(self._kept) >= _BLOCK:
                    self._blocks.append("".join(self._kept))
                    self._kept.clear()
            self._mark = 0
        self.text = self.text[pos:] + chunk
        self.offset += pos
        self.pos = 0

    @property
    def at(self) -> int:
        """Position of the next character in the whole text."""
        return self.offset + self.pos

    def capture(self, index: int) -> None:
        """Keep everything from `text[index]` on."""
        self._mark = index
        self.begun = self.offset + index
        self._kept.clear()
        self._blocks.clear()

    def release(self) -> None:
        """Stop keeping text."""
        self._mark = -1
        self._kept.clear()
        self._blocks.clear()

    def captured(self) -> str:
        """The text from the start of the capture to the read position."""
        return "".join((*self._blocks, *self._kept, self.text[self._mark : self.pos]))

    def rewind(self, start: int) -> None:
        """Read again from `start`, a position in the whole text that lies within the capture.

        Costs time in proportion to the distance, not to the size of the capture.
        """
        pieces = [self.text]
        while self.offset > start:
            pieces.append(self._kept.pop() if self._kept else self._blocks.pop())
            self.offset -= len(pieces[-1])
        if len(pieces) > 1:
            self.text = "".join(reversed(pieces))
        self.pos = start - self.offset
