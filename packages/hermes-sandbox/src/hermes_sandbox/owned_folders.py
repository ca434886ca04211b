"""Folders on this machine that carry owner labels: working folders of local sandboxes, instances, caches.

A folder `ID` stands beside a record `ID.json` of its labels. The record is written first and removed last, so
that there is never a folder whose owner is not known.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

STALE = 3600.0
"""Seconds after which nobody is still writing a record."""


@dataclass(frozen=True, slots=True)
class OwnedFolder:
    """A folder and the labels it was made with.

    Attributes:
        id: Its name.
        path: Where it is; it may be missing when its maker died early.
        labels: Owner labels and the user's.
        data: What else its maker recorded.
    """

    id: str
    path: Path
    labels: Mapping[str, str]
    data: Mapping[str, Any]


def base_folder(kind: str) -> Path:
    """Where the folders of one `kind` live: in the user's own part of the temporary folder, mode 700."""
    base = Path(tempfile.gettempdir()) / f"hermes-sandbox-{os.getuid()}"
    for folder in (base, base / kind):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if status.st_uid != os.getuid() or not folder.is_dir() or folder.is_symlink():
            raise PermissionError(f"{folder} belongs to somebody else; set TMPDIR to a folder of your own")
    return base / kind


def make_owned_folder(
    base: Path, labels: Mapping[str, str], *, data: Mapping[str, Any] | None = None, mode: int = 0o700
) -> OwnedFolder:
    """Make a new folder in `base` with these labels. Blocks for a moment: two small file operations."""
    id = secrets.token_hex(6)
    folder = OwnedFolder(id, base / id, dict(labels), dict(data or {}))
    record_owned_folder(folder)
    folder.path.mkdir()
    folder.path.chmod(mode)
    return folder


def record_owned_folder(folder: OwnedFolder) -> None:
    """Write a folder's record, anew where its labels or data changed. Without an owner's labels it is never reaped."""
    draft = folder.path.with_suffix(".tmp")
    draft.write_text(json.dumps({"labels": dict(folder.labels), "data": dict(folder.data)}))
    draft.rename(folder.path.with_suffix(".json"))


def owned_folders(base: Path) -> Iterator[OwnedFolder]:
    """Every folder in `base` that has a readable record."""
    if not base.is_dir():
        return
    for draft in base.glob("*.tmp"):  # of a process that was killed while it wrote
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > STALE:
                draft.unlink()
    for record in sorted(base.glob("*.json")):
        if (folder := find_owned_folder(base, record.stem)) is not None:
            yield folder


def find_owned_folder(base: Path, id: str) -> OwnedFolder | None:
    """The folder `id` of `base`; None if there is no record of it."""
    if "/" in id or id in ("", ".", ".."):
        return None
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = cast("dict[str, dict[str, Any]]", json.loads((base / f"{id}.json").read_bytes()))
        labels = {str(key): str(value) for key, value in record["labels"].items()}
        return OwnedFolder(id, base / id, labels, dict(record["data"]))
    return None


def remove_owned_folder(base: Path, id: str) -> None:
    """Remove the folder `id` and its record; harmless when they are gone. Blocks: use a thread.

    Raises:
        OSError: Something in it cannot be removed; the record stays, so that it is tried again.
    """
    if "/" in id or id in ("", ".", ".."):
        raise ValueError(f"{id!r} is no folder's name")
    path = base / id
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        if path.exists():  # something inside went away meanwhile
            shutil.rmtree(path)
    except PermissionError:
        _open_up(path)
        shutil.rmtree(path)
    for name in (f"{id}.json", f"{id}.tmp"):
        (base / name).unlink(missing_ok=True)


def _open_up(path: Path) -> None:
    """Give every folder below `path` its owner's permissions: without them its contents cannot be removed."""
    path.chmod(0o700)
    for folder, below, _ in os.walk(path):
        for name in below:
            if not (inner := Path(folder, name)).is_symlink():
                inner.chmod(0o700)
