"""Keep the head and the tail of a stream within a limit, and count all of it."""

from __future__ import annotations

from collections import deque


class OutputBuffer:
    """The bytes of one stream: all of them, or its first and last halves of `limit`.

    Attributes:
        total: How many bytes were added.
    """

    def __init__(self, limit: int | None) -> None:
        """Keep at most `limit` bytes; everything when None."""
        if limit is not None and limit < 0:
            raise ValueError(f"output_limit must be None or at least 0, not {limit}")
        self.total = 0
        self._head_room = None if limit is None else limit - limit // 2
        self._tail_room = 0 if limit is None else limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def add(self, data: bytes) -> None:
        """Take the stream's next bytes."""
        self.total += len(data)
        if self._head_room is None:
            self._head += data
            return
        if self._head_room > 0:
            part = data[: self._head_room]
            self._head += part
            self._head_room -= len(part)
            data = data[len(part) :]
        if data and self._tail_room:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._tail_room:
                self._tail_size -= len(self._tail.popleft())

    def kept(self) -> tuple[bytes, int]:
        """The bytes kept, and how many of them come before the gap (all of them without one)."""
        tail = b"".join(self._tail)
        if len(tail) > self._tail_room:
            tail = tail[len(tail) - self._tail_room :]
        data = bytes(self._head) + tail
        return data, len(data) if len(data) == self.total else len(self._head)


class RecentOutput:
    """The last bytes of a stream, read by offset from its beginning."""

    def __init__(self, limit: int) -> None:
        """Keep at least the last `limit` bytes."""
        self._limit = limit
        self._data = bytearray()
        self._start = 0

    @property
    def start(self) -> int:
        """The offset of the first byte still kept."""
        return self._start

    @property
    def total(self) -> int:
        """The offset after the last byte."""
        return self._start + len(self._data)

    def add(self, data: bytes) -> None:
        """Take the stream's next bytes."""
        self._data += data
        if len(self._data) > 2 * self._limit:
            surplus = len(self._data) - self._limit
            del self._data[:surplus]
            self._start += surplus

    def read(self, offset: int, limit: int | None) -> tuple[int, bytes]:
        """The bytes from `offset` on, or from the first one still kept; with the offset they begin at."""
        begin = min(max(offset, self._start), self.total) - self._start
        end = None if limit is None else begin + max(limit, 0)
        return self._start + begin, bytes(self._data[begin:end])
