"""The ids of a prompt, read from the history that they belong to."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import cast, overload


class Prefix(Sequence[int]):
    """The first ids of a list that only ever grows: a prompt that copies nothing of a long history.

    Args:
        ids: The list.
        length: How many of its ids belong to the prefix; None takes all that are there now.
    """

    __slots__ = ("_ids", "_length")

    def __init__(self, ids: list[int], length: int | None = None) -> None:
        self._ids = ids
        self._length = len(ids) if length is None else length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        chosen = range(self._length)[index]
        return self._ids[chosen] if isinstance(chosen, int) else [self._ids[at] for at in chosen]

    def __iter__(self) -> Iterator[int]:
        return islice(self._ids, self._length)

    def __eq__(self, other: object) -> bool:
        return (
            list(self) == list(cast("Sequence[int]", other))
            if isinstance(other, list | Prefix)
            else NotImplemented
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Prefix({list(self)!r})"
