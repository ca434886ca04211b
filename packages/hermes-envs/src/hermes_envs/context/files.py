"""Read and copy files and trees of a sandbox, whatever the policy has put in their place."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

from hermes_sandbox import Sandbox, UnsafeArchive

READ_LIMIT = 256 << 20
"""Bytes of a file that are read into the host's memory: how large its files are is the policy's choice."""


async def read(sandbox: Sandbox, path: str) -> bytes:
    """A file's bytes, whole.

    Raises:
        OSError: There is no regular file, it may not be read, or it is larger than `READ_LIMIT`.
    """
    size = await _regular(sandbox, path)
    if size > READ_LIMIT:
        raise OSError(errno.EFBIG, f"File of {size} bytes: more than is read at once, download it", path)
    return await sandbox.read_bytes(path, limit=READ_LIMIT)


async def upload_file(sandbox: Sandbox, local: Path, remote: str) -> dict[str, Any]:
    """Copy one file in.

    Raises:
        FileNotFoundError: The local file is missing: the verifier's own mistake, not the policy's.
    """
    size = (await asyncio.to_thread(_file_of_host, local)).stat().st_size
    await sandbox.upload(local, remote)
    return {"success": True, "path": remote, "bytes": size}


async def upload_dir(sandbox: Sandbox, local: Path, remote: str) -> list[dict[str, Any]]:
    """Copy a tree in; one entry per file, sorted.

    Raises:
        NotADirectoryError: The local folder is missing.
    """
    if not await asyncio.to_thread(local.is_dir):
        raise NotADirectoryError(f"no such folder on this machine: {local}")
    await sandbox.upload(local, remote)
    entries = await asyncio.to_thread(_tree, local)
    return [
        {"success": True, "path": f"{remote.rstrip('/')}/{name}", "bytes": size} for name, size in entries
    ]


async def download_file(sandbox: Sandbox, remote: str, local: Path) -> dict[str, Any]:
    """Copy one file out; what the policy failed to leave is `success: False` with an `error`."""
    try:
        await _regular(sandbox, remote)
    except OSError as error:
        return _not_left(remote, error)
    await asyncio.to_thread(local.parent.mkdir, parents=True, exist_ok=True)
    try:
        await sandbox.download(remote, local)
    except OSError as error:
        return _not_left(remote, error)
    return {"success": True, "path": remote, "bytes": (await asyncio.to_thread(local.stat)).st_size}


async def download_dir(sandbox: Sandbox, remote: str, local: Path) -> list[dict[str, Any]]:
    """Copy a tree out; one entry per file, sorted, or one with `success: False`."""
    try:
        if (await sandbox.stat(remote)).kind != "folder":
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", remote)
        await sandbox.download(remote, local)
    except OSError as error:
        return [_not_left(remote, error)]
    except UnsafeArchive as error:
        return [{"success": False, "path": remote, "error": str(error)}]
    entries = await asyncio.to_thread(_tree, local)
    return [
        {"success": True, "path": f"{remote.rstrip('/')}/{name}", "bytes": size} for name, size in entries
    ]


def _not_left(remote: str, error: OSError) -> dict[str, Any]:
    return {"success": False, "path": remote, "error": f"{error.strerror or error}: {remote}"}


async def _regular(sandbox: Sandbox, path: str) -> int:
    """The size of a regular file; pipes and devices, which never end, are refused."""
    info = await sandbox.stat(path)
    if info.kind == "folder":
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    if info.kind != "file":
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return info.size


def _file_of_host(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"no such file on this machine: {path}")
    return path


def _tree(folder: Path) -> list[tuple[str, int]]:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted((path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths)
