"""Keeps the first and the last part of a stream of any length."""


class HeadTail:
    """Bytes of which, beyond a limit, the middle is dropped.

    Attributes:
        total: How many bytes came in all.
    """

    def __init__(self, limit: int | None) -> None:
        """Make an empty one.

        Args:
            limit: Most bytes kept; None keeps all.
        """
        self._half = None if limit is None else max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take more bytes in."""
        self.total += len(data)
        room = len(data) if self._half is None else max(0, self._half - len(self._head))
        self._head += data[:room]
        if self._half is not None and room < len(data):
            self._tail += data[room:]
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    @property
    def kept(self) -> bytes:
        """The head and the tail, together."""
        return bytes(self._head) + (bytes(self._tail[-self._half :]) if self._half else b"")

    @property
    def gap(self) -> int | None:
        """Where in `kept` something was dropped, or None."""
        return (
            len(self._head) if self.total > len(self._head) + min(len(self._tail), self._half or 0) else None
        )

    @property
    def text(self) -> str:
        """What was kept as text, with a mark at the gap."""
        return marked_text(self.kept, self.gap, self.total)


def marked_text(kept: bytes, gap: int | None, total: int) -> str:
    """The text of head and tail, with a mark where bytes are missing.

    Args:
        kept: Head and tail.
        gap: Where the tail begins, or None when nothing is missing.
        total: How many bytes there were.
    """
    if gap is None:
        return kept.decode("utf-8", "replace")
    head, tail = kept[:gap].decode("utf-8", "replace"), kept[gap:].decode("utf-8", "replace")
    return f"{head}\n[... {total - len(kept):,} bytes left out ...]\n{tail}"
