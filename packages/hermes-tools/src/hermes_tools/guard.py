"""Tells a workspace that is gone from a tool that failed.

Tools see the workspace through these thin shells. What the workspace raises beyond ordinary failures
(`ToolError`, `OSError`, `ValueError`, `TimeoutError`) is remembered, so that `call_tool` lets exactly that pass
whatever a tool made of it.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from hermes_tools.errors import ToolError
from hermes_tools.workspace import CommandResult, ProcessOutput, Workspace, WorkspaceProcess, WorkspaceShell

ORDINARY = (ToolError, OSError, ValueError, TimeoutError)


class Failures:
    """The extraordinary errors one session's workspace raised."""

    def __init__(self) -> None:
        self._seen: list[BaseException] = []

    @contextmanager
    def watch(self) -> Generator[None]:
        """Remember what is raised inside, unless it is ordinary."""
        try:
            yield
        except ORDINARY:
            raise
        except Exception as error:
            self._seen = [*self._seen[-7:], error]
            raise

    def behind(self, error: BaseException | None) -> BaseException | None:
        """The workspace's error that this one is or came from, or None."""
        for _ in range(20):
            if error is None or any(error is seen for seen in self._seen):
                return error
            error = error.__cause__ or error.__context__
        return None


class GuardedWorkspace:
    """A workspace seen by tools."""

    def __init__(self, inner: Workspace, failures: Failures) -> None:
        self.inner = inner
        self._failures = failures

    @property
    def workdir(self) -> str:
        """The absolute folder that relative paths start from."""
        return self.inner.workdir

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
    ) -> CommandResult:
        """Run one command; see `Workspace.exec`."""
        with self._failures.watch():
            return await self.inner.exec(
                command,
                cwd=cwd,
                env=env,
                stdin=stdin,
                timeout=timeout,
                merge=merge,
                output_limit=output_limit,
            )

    async def open_shell(
        self, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> WorkspaceShell:
        """Start a shell."""
        with self._failures.watch():
            return _GuardedShell(await self.inner.open_shell(cwd=cwd, env=env), self._failures)

    async def spawn(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> WorkspaceProcess:
        """Start a process in the background."""
        with self._failures.watch():
            return _GuardedProcess(await self.inner.spawn(command, cwd=cwd, env=env), self._failures)

    async def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file."""
        with self._failures.watch():
            return await self.inner.read_bytes(path, offset=offset, limit=limit)

    async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file whole and at once."""
        with self._failures.watch():
            await self.inner.write_bytes(path, data, mode=mode)


class _GuardedShell:
    def __init__(self, inner: WorkspaceShell, failures: Failures) -> None:
        self._inner = inner
        self._failures = failures

    @property
    def cwd(self) -> str:
        return self._inner.cwd

    async def run(
        self, command: str, *, timeout: float | None = None, output_limit: int | None = 1 << 20
    ) -> CommandResult:
        with self._failures.watch():
            return await self._inner.run(command, timeout=timeout, output_limit=output_limit)

    async def close(self) -> None:
        with self._failures.watch():
            await self._inner.close()


class _GuardedProcess:
    def __init__(self, inner: WorkspaceProcess, failures: Failures) -> None:
        self._inner = inner
        self._failures = failures

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def pid(self) -> int:
        return self._inner.pid

    @property
    def command(self) -> str:
        return self._inner.command

    async def poll(self) -> int | None:
        with self._failures.watch():
            return await self._inner.poll()

    async def read(self, offset: int = 0, limit: int | None = None) -> ProcessOutput:
        with self._failures.watch():
            return await self._inner.read(offset, limit)

    async def write(self, data: bytes) -> None:
        with self._failures.watch():
            await self._inner.write(data)

    async def close_stdin(self) -> None:
        with self._failures.watch():
            await self._inner.close_stdin()

    async def signal(self, sig: int | str) -> None:
        with self._failures.watch():
            await self._inner.signal(sig)

    async def wait(self, timeout: float | None = None) -> int | None:
        with self._failures.watch():
            return await self._inner.wait(timeout)
