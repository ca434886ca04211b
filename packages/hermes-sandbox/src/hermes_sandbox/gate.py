"""Do something one at a time, or a few at a time, among all processes of this user on this machine."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hermes_sandbox.owned_folders import base_folder


@asynccontextmanager
async def slot(name: str, count: int = 1) -> AsyncGenerator[None]:
    """Hold one of `count` slots with this name, waiting while all are taken.

    The slots are locked files, which a process that dies lets go of, and which are removed after use.
    """
    folder = base_folder("locks")
    held: int | None = None
    path = folder
    pause = 0.005
    try:
        while held is None:
            for number in range(count):
                path = folder / f"{name}-{number}"
                held = _try_lock(path)
                if held is not None:
                    break
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.1)
        yield
    finally:
        if held is not None:
            path.unlink(missing_ok=True)  # before the lock goes: who finds another file there tries again
            os.close(held)


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None
