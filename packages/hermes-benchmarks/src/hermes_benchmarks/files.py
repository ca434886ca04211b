"""Writing files that survive a crash: whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, flush it to the disk and rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        error.filename = str(path)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(value: object, *, indent: int | None = 2) -> bytes:
    """JSON text in UTF-8, ending in a newline; lone surrogates are replaced, NaN is refused."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON, atomically."""
    write_atomic(path, to_json(value))


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in `path`, or None where there is no whole one."""
    try:
        value: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def write_lines(path: Path, values: Iterable[object]) -> None:
    """Write a JSONL file, atomically."""
    write_atomic(path, b"".join(to_json(value, indent=None) for value in values))


def append_line(path: Path, value: object) -> None:
    """Append one JSONL line in a single write."""
    with path.open("ab") as file:
        file.write(to_json(value, indent=None))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file; a torn line is passed over."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                value: object = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield cast("dict[str, Any]", value)
