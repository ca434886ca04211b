"""`HostWorkspace`: the workspace protocol on this machine."""

import asyncio
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from hermes_tools.host.process import HostProcess
from hermes_tools.host.run import HostResult, run
from hermes_tools.host.shell import HostShell


class HostWorkspace:
    """This machine, starting in a folder. Nothing keeps commands inside that folder.

    An async context manager; leaving it kills the background processes and shells it started.
    """

    def __init__(self, root: str | Path = ".") -> None:
        """Make the workspace.

        Args:
            root: The folder that relative paths start from; it must exist.
        """
        self._root = Path(root).resolve(strict=True)
        if not self._root.is_dir():
            raise NotADirectoryError(f"{self._root} is no folder")
        self._started: list[HostProcess | HostShell] = []
        self._count = 0

    @property
    def workdir(self) -> str:
        """The absolute folder that relative paths start from."""
        return str(self._root)

    def _path(self, path: str | None) -> Path:
        return self._root / path if path else self._root

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        merge: bool = False,
        output_limit: int | None = 1 << 20,
    ) -> HostResult:
        """Run one command; see `Workspace.exec`."""
        return await run(
            command,
            cwd=str(self._path(cwd)),
            env=env,
            stdin=stdin,
            timeout=timeout,
            merge=merge,
            output_limit=output_limit,
        )

    async def open_shell(self, *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> HostShell:
        """Start a shell."""
        shell = HostShell(str(self._path(cwd)), env)
        self._started.append(shell)
        return shell

    async def spawn(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> HostProcess:
        """Start a process in the background."""
        self._count += 1
        process = await HostProcess.spawn(f"p{self._count}", command, str(self._path(cwd)), env)
        self._started.append(process)
        return process

    async def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file."""
        return await asyncio.to_thread(_read, self._path(path), offset, limit)

    async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file whole and at once; see `Workspace.write_bytes`."""
        await asyncio.to_thread(_write, self._path(path), data, mode)

    async def close(self) -> None:
        """Kill the background processes and shells it started."""
        while self._started:
            await self._started.pop().close()

    async def __aenter__(self) -> "HostWorkspace":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _read(path: Path, offset: int, limit: int | None) -> bytes:
    if not path.is_file() and not path.is_dir() and path.exists():
        raise OSError(f"not a regular file: {path}")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read() if limit is None else file.read(limit)


def _write(path: Path, data: bytes, mode: int | None) -> None:
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        draft.write_bytes(data)
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
