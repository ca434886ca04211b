"""A program on this machine, seen as a `ByteProcess`: the client of a container, or a housekeeping tool."""

import asyncio
import os
import signal as signals
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self, cast

READ_LIMIT = 1 << 18


class ClientProcess(asyncio.SubprocessProtocol):
    """Unlike asyncio's own `Process`, `wait` returns when the program ends, whoever still holds its output.

    Attributes:
        stdout: What the program writes to its standard output.
        stderr: What it writes to its standard error.
        pid: The process id where it matters: of the command inside, once known.
        kill: How to signal that command; the program itself is signalled when None.
    """

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader(READ_LIMIT)
        self.stderr = asyncio.StreamReader(READ_LIMIT)
        self.pid: int | None = None
        self.kill: Callable[[int, int], Awaitable[None]] | None = None
        self._exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Self:
        """Start a program in a session of its own, with pipes on all three streams.

        Raises:
            FileNotFoundError: There is no such program.
        """
        _, process = await asyncio.get_running_loop().subprocess_exec(
            cls, *argv, env=None if env is None else dict(env), start_new_session=True
        )
        return process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The program runs."""
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()
        for descriptor, reader in ((1, self.stdout), (2, self.stderr)):
            pipe = self._transport.get_pipe_transport(descriptor)
            if pipe is not None:
                reader.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output came."""
        (self.stdout if fd == 1 else self.stderr).feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A stream ended."""
        if fd == 0:
            self._writable.set()
        else:
            (self.stdout if fd == 1 else self.stderr).feed_eof()

    def process_exited(self) -> None:
        """The program ended."""
        if self._transport and not self._exited.done():
            self._exited.set_result(self._transport.get_returncode())
        self._writable.set()

    def pause_writing(self) -> None:
        """The program does not read its input."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    async def write(self, data: bytes) -> None:
        """Send bytes to the program's input, waiting while it does not read.

        Raises:
            BrokenPipeError: It ended or its input was closed.
        """
        pipe = self._input()
        if pipe is None or pipe.is_closing() or self._exited.done():
            raise BrokenPipeError("the process does not read its input any more")
        pipe.write(data)
        await self._writable.wait()

    async def close_stdin(self) -> None:
        """End the program's input, once everything written has been passed on."""
        pipe = self._input()
        if pipe is not None and not pipe.is_closing():
            pipe.write_eof() if pipe.can_write_eof() else pipe.close()

    async def signal(self, signal: int) -> None:
        """Signal the command inside, or else the program."""
        if self._exited.done() or self.pid is None:
            return
        if self.kill:
            await self.kill(self.pid, signal)
        elif self._transport:
            with suppress(ProcessLookupError):
                self._transport.send_signal(signal)

    async def wait(self) -> int | None:
        """The exit code, -n for signal n."""
        return await asyncio.shield(self._exited)

    async def close(self) -> None:
        """End the program with everything in its session, and let go of its streams."""
        if self._transport is None:
            return
        if not self._exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signals.SIGKILL)
        self._transport.close()
        await self.wait()

    def _input(self) -> asyncio.WriteTransport | None:
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        return cast("asyncio.WriteTransport | None", pipe)


async def run_program(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Run a program to its end without input: exit code, output, errors.

    Raises:
        FileNotFoundError: There is no such program.
        TimeoutError: It ran longer than `timeout` seconds and was killed.
    """
    process = await ClientProcess.start(argv, env)
    try:
        async with asyncio.timeout(timeout):
            await process.close_stdin()
            out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
            code = await process.wait()
            return -1 if code is None else code, out, err
    finally:
        await process.close()
