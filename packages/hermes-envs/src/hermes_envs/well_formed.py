"""Text without halves of surrogate pairs, which JSON can spell but UTF-8 cannot: nothing could write or send it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")


def well_formed(value: T) -> T:
    """The value, with every half of a surrogate pair in its texts replaced by U+FFFD, and halves that meet joined.

    Args:
        value: Text, or plain data and frozen dataclasses that hold texts; itself where nothing is to be changed.
    """
    return cast("T", _cleaned(value))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        cleaned = {_cleaned(key): _cleaned(inner) for key, inner in entries.items()}
        return entries if cleaned == entries else cleaned
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        made = [_cleaned(item) for item in items]
        return value if made == list(items) else type(items)(made)  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(value) and not isinstance(value, type):
        texts = {field.name: getattr(value, field.name) for field in fields(value)}
        cleaned = _cleaned(texts)
        return value if cleaned is texts else replace(value, **cleaned)
    return value


def _text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
