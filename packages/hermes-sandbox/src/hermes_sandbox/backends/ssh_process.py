"""A process on the other side of an SSH channel, with exact byte streams and its exit code."""

import asyncio
import signal as signals
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, cast

import asyncssh
from asyncssh.constants import EXTENDED_DATA_STDERR

from hermes_sandbox.errors import SandboxError

READ_LIMIT = 1 << 18
"""Bytes held of a stream before the channel stops granting window; twice that are held at most."""

LEAVING = 0.5
"""Seconds for a process to end after its input did."""
CLOSING = 5.0
"""Seconds to wait for the server to close a channel."""


class _Channel(Protocol):
    """The part of asyncssh's channel that is used, with types."""

    def write(self, data: bytes) -> None: ...
    def write_eof(self) -> None: ...
    def close(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class _Gate:
    """Lets two streams share one channel: it is paused while either of them is full."""

    def __init__(self) -> None:
        self.channel: _Channel | None = None
        self.full: set[int] = set()

    def set(self, stream: int, full: bool) -> None:
        before = bool(self.full)
        (self.full.add if full else self.full.discard)(stream)
        if self.channel and bool(self.full) != before:
            (self.channel.pause_reading if full else self.channel.resume_reading)()


class _Side(asyncio.ReadTransport):
    """What a `StreamReader` needs of a transport, for one of the two streams."""

    def __init__(self, gate: _Gate, stream: int) -> None:
        super().__init__()
        self._gate, self._stream = gate, stream

    def pause_reading(self) -> None:
        self._gate.set(self._stream, True)

    def resume_reading(self) -> None:
        self._gate.set(self._stream, False)


class SshProcess(asyncssh.SSHClientSession[bytes]):
    """A `ByteProcess` over one channel; also the session that asyncssh reports the channel's events to.

    Attributes:
        stdout: What the process writes to its standard output.
        stderr: What it writes to its standard error.
        pid: Its process id on the host, once known.
    """

    def __init__(self) -> None:
        self._gate = _Gate()
        self.stdout = asyncio.StreamReader(READ_LIMIT)
        self.stderr = asyncio.StreamReader(READ_LIMIT)
        self.stdout.set_transport(_Side(self._gate, 1))
        self.stderr.set_transport(_Side(self._gate, 2))
        self.pid: int | None = None
        self.kill: Callable[[int, int], Awaitable[None]] | None = None
        self._channel: _Channel | None = None
        self._exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self._broken = False
        self._ended_stdin = False

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is open."""
        self._channel = self._gate.channel = cast(_Channel, chan)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Output came."""
        reader = self.stderr if datatype == EXTENDED_DATA_STDERR else self.stdout
        reader.feed_data(data)

    def eof_received(self) -> bool:
        """Both outputs are at their end; input stays open."""
        self._end_output()
        return True

    def exit_status_received(self, status: int) -> None:
        """The process ended by itself."""
        self._exit(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """A signal ended the process."""
        number = getattr(signals, f"SIG{signal}", None)
        self._exit(-int(number) if number else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, at the end of the process or before it."""
        self._broken = True
        self._closed.set()
        self._end_output()
        self._exit(None)
        self._writable.set()

    def pause_writing(self) -> None:
        """The process does not read its input."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    def _end_output(self) -> None:
        self.stdout.feed_eof()
        self.stderr.feed_eof()

    def _exit(self, code: int | None) -> None:
        if not self._exited.done():
            self._exited.set_result(code)

    async def write(self, data: bytes) -> None:
        """Send bytes to the process's input, waiting while it does not read.

        Raises:
            BrokenPipeError: It ended or its input was closed.
        """
        if self._broken or self._ended_stdin or self._channel is None:
            raise BrokenPipeError("the process does not read its input any more")
        try:
            self._channel.write(data)
        except OSError as error:
            raise BrokenPipeError(str(error)) from error
        await self._writable.wait()

    async def close_stdin(self) -> None:
        """End the process's input."""
        if not self._ended_stdin and not self._broken and self._channel is not None:
            self._ended_stdin = True
            self._channel.write_eof()

    async def signal(self, signal: int) -> None:
        """Signal the process, by a `kill` on the host: OpenSSH refuses signal requests of root's sessions."""
        if self.kill and self.pid and not self._exited.done():
            await self.kill(self.pid, signal)

    async def wait(self) -> int | None:
        """The exit code, -n for signal n; None when the connection was lost before it came."""
        return await asyncio.shield(self._exited)

    async def close(self) -> None:
        """End the process, by the end of its input or else by SIGKILL, and close the channel.

        sshd keeps a session, which counts against its MaxSessions, for as long as its process lives.
        """
        if self._channel is None:
            return
        if not self._exited.done() and self.kill and self.pid:
            await self.close_stdin()
            await asyncio.wait({self._exited}, timeout=LEAVING)
            if not self._exited.done():
                with suppress(SandboxError, OSError):  # out of reach: nothing can be ended there
                    await self.kill(self.pid, signals.SIGKILL)
        self._channel.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await self._closed.wait()
