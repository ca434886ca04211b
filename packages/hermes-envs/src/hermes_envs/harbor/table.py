"""Typed reading of one TOML table, remembering which keys were asked for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from hermes_envs.harbor.errors import TaskError

_MOST = 1e15
_SIZES_MB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


class Table:
    """One table of a `task.toml`; a value of the wrong type is a `TaskError` naming file and key."""

    def __init__(self, values: Mapping[str, Any], path: Path, name: str = "") -> None:
        self.values = values
        self.path = path
        self.name = name
        self._read: set[str] = set()
        self._children: dict[str, Table] = {}

    def key(self, key: str) -> str:
        """The dotted name of `key` as a reader of the file would write it."""
        return f"{self.name}.{key}" if self.name else key

    def error(self, key: str, message: str) -> TaskError:
        """A `TaskError` at `key`."""
        return TaskError(message, path=self.path, key=self.key(key))

    def raw(self, *keys: str) -> object:
        """The value under the first of `keys` that is present; every one counts as known."""
        self._read.update(keys)
        return next((self.values[key] for key in keys if self.values.get(key) is not None), None)

    def table(self, key: str) -> "Table":
        """The sub-table `key`, the same one each time; empty where there is none."""
        if key in self._children:
            return self._children[key]
        value = self.raw(key)
        if value is not None and not isinstance(value, dict):
            raise self.error(key, f"expected a table, found {value!r}")
        child = Table(cast("dict[str, Any]", value or {}), self.path, self.key(key))
        self._children[key] = child
        return child

    def free(self, key: str) -> Mapping[str, Any]:
        """The sub-table `key` whose keys are the author's own: none of them is unknown."""
        return self.table(key).all()

    def all(self) -> Mapping[str, Any]:
        """Every value of this table; none of them counts as unknown."""
        self._read.update(self.values)
        return self.values

    def number(self, key: str) -> float | None:
        """A number of at least 0 and at most 10^15, which is more than any limit means."""
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
            raise self.error(key, f"expected a number of at least 0, found {_shown(value)}")
        return float(value)

    def amount(self, key: str) -> float | None:
        """A number above 0."""
        value = self.number(key)
        if value == 0:
            raise self.error(key, "expected a number above 0; leave it out where there is no limit")
        return value

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.raw(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"expected a string, found {value!r}")
        return value

    def flag(self, key: str) -> bool | None:
        """A boolean."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings, empty where there is none."""
        value = self.raw(key)
        if value is None:
            return ()
        items = cast("list[object]", value) if isinstance(value, list) else None
        if items is None or not all(isinstance(item, str) for item in items):
            raise self.error(key, f"expected an array of strings, found {_shown(cast('object', value))}")
        return tuple(cast("list[str]", items))

    def strings(self, key: str) -> dict[str, str]:
        """A table of strings (numbers are written out), such as an environment: what a process can be given."""
        found = self.free(key)
        for name, value in found.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self.error(f"{key}.{name}", f"expected a string, found {_shown(value)}")
            if not name or set("=\0") & set(name) or "\0" in str(value):
                raise self.error(
                    f"{key}.{name!r}", "no process can be given a variable of this name or value"
                )
        return {name: str(value) for name, value in found.items()}

    def user(self, key: str) -> str | None:
        """A user's name or number."""
        value = self.raw(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key)

    def size_mb(self, new: str, old: str) -> int | None:
        """Megabytes under `new`, or a text such as "2G" under `old`; two that differ are an error."""
        megabytes = self.amount(new)
        written = self.raw(old)
        if written is None:
            return None if megabytes is None else int(megabytes)
        parsed = _parse_size(written)
        if parsed is None or not 1 <= parsed <= _MOST:
            raise self.error(old, f'expected a size such as "2G" or "512M", found {_shown(written)}')
        if megabytes is not None and int(megabytes) != parsed:
            raise self.error(old, f"{written!r} is {parsed} MB, but {new} says {megabytes:g}: keep one")
        return parsed

    def unknown(self) -> Iterator[str]:
        """Dotted names of the keys that nothing asked for, here and below."""
        for key in self.values:
            if key not in self._read:
                yield self.key(key)
        for child in self._children.values():
            yield from child.unknown()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parse_size(written: object) -> int | None:
    if not isinstance(written, str):
        return None
    text = written.strip().upper().removesuffix("B").removesuffix("I")
    unit = _SIZES_MB.get(text[-1:])
    try:
        return None if unit is None else int(float(text[:-1]) * unit)
    except (ValueError, OverflowError):
        return None
