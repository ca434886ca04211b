"""A process of this machine, as a `ByteProcess`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE, SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from typing import Any, cast

STREAM_LIMIT = 1 << 18


class _Protocol(SubprocessStreamProtocol):
    """Tells of the process's end at once, even while a child of it holds the pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=STREAM_LIMIT, loop=loop)
        self.exited: asyncio.Future[int] = loop.create_future()

        self._process: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._process = cast("asyncio.SubprocessTransport", transport)

    def process_exited(self) -> None:
        if self._process is not None and not self.exited.done():
            self.exited.set_result(self._process.get_returncode() or 0)
        super().process_exited()


class LocalProcess:
    """A child process with pipes."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self._transport, self._protocol = transport, protocol
        assert protocol.stdout is not None and protocol.stderr is not None
        self.stdout: asyncio.StreamReader = protocol.stdout
        self.stderr: asyncio.StreamReader = protocol.stderr

    @classmethod
    async def spawn(
        cls,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: bool = True,
        user: str | None = None,
    ) -> LocalProcess:
        """Start a process in a session of its own."""
        loop = asyncio.get_running_loop()
        identity: dict[str, Any] = {}
        if user is not None:
            identity = {"user": user, "group": _group_of(user), "extra_groups": []}
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *argv,
            stdin=PIPE if stdin else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            **identity,
        )
        return cls(transport, protocol)

    @property
    def pid(self) -> int | None:
        """The process id, which is its session's and group's too."""
        return self._transport.get_pid()

    async def write(self, data: bytes) -> None:
        """Write to its standard input, as fast as it reads."""
        writer = self._protocol.stdin
        if writer is None or writer.is_closing():
            raise BrokenPipeError("the command's standard input is closed")
        writer.write(data)
        await writer.drain()

    async def close_stdin(self) -> None:
        """End its standard input."""
        if self._protocol.stdin is not None:
            self._protocol.stdin.close()

    async def signal(self, signal: int) -> None:
        """Signal the process, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.send_signal(signal)

    async def wait(self) -> int | None:
        """Its exit code; -n when signal n killed it."""
        return await asyncio.shield(self._protocol.exited)

    async def close(self) -> None:
        """Kill it if it runs, and close the pipes."""
        running = self._transport.get_returncode() is None
        self._transport.close()  # kills it
        if running:
            await self.wait()


class FailedProcess:
    """What stands for a process that could not be started: a message and an exit code, as a shell gives them."""

    pid = None

    def __init__(self, message: str, code: int) -> None:
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self.stdout.feed_eof()
        self.stderr.feed_data(message.encode(errors="surrogateescape") + b"\n")
        self.stderr.feed_eof()
        self._code = code

    async def write(self, data: bytes) -> None:
        """Nothing reads."""
        raise BrokenPipeError("the command was not started")

    async def close_stdin(self) -> None:
        """Nothing to close."""

    async def signal(self, signal: int) -> None:
        """Nothing to signal."""

    async def wait(self) -> int | None:
        """126 or 127."""
        return self._code

    async def close(self) -> None:
        """Nothing to close."""


def _group_of(user: str) -> int:
    import pwd

    try:
        return pwd.getpwnam(user).pw_gid
    except KeyError:
        return pwd.getpwuid(int(user)).pw_gid if user.isdigit() else os.getgid()
