"""A command in a Daytona sandbox, as a `ByteProcess` over a session command.

The service's log stream is text, decoded with loss; its input is text too. So both directions carry base64 lines,
made and read by a small relay around the command. What the command writes to standard output goes over the
session's standard output, in large lines; standard error over the session's own, in lines short enough to be written
whole. When the command has ended, the relay writes a mark with the exit code to both: behind everything that the
command wrote, so that the end is never heard of before the last of it. The mark is random and comes over the relay's
input: no process list shows it.
"""

import asyncio
import base64
import functools
import secrets
import shlex
from collections.abc import Awaitable, Callable
from typing import Any

from hermes_sandbox.backends.creation import again
from hermes_sandbox.backends.daytona_errors import translated
from hermes_sandbox.errors import QuotaError

READ_LIMIT = 1 << 18
WRITE_CHUNK = 96_000
PLAIN_ERROR = 2850
"""Bytes of standard error in one line, so that the line stays below PIPE_BUF (4096) with a margin."""
LINE_END = r"\n\n\n"
"""The end of a line on its way out. The SDK keeps a message of one or two bytes until the next one comes, and a log may
be split anywhere: of three newlines the first always arrives."""

_ENCODE = (
    'enc() { while b=$(dd bs="$2" count=1 2>/dev/null | base64 -w0); [ -n "$b" ]; '
    f'do printf "%s%s{LINE_END}" "$1" "$b"; done; printf "%s-{LINE_END}" "$1"; }}'
)
_DECODE = (
    'dec() { while IFS= read -r n && [ "$n" -gt 0 ]; do head -c "$n" | base64 -d; IFS= read -r _; done; }'
)
_SAY = 'printf "\\036%s%s." "$mark" $code'
_RUN = f'{{ sh -c "$1" 4>&- 5>&-; code=$?; {_SAY}; {_SAY} >&2; }} 2>&1 >&3 3>&-'
_RELAY = (
    f"{_ENCODE}; {_DECODE}; IFS= read -r mark; "
    f"{{ dec 2>/dev/null 4>&- 5>&- | {{ {{ {_RUN} | enc E {PLAIN_ERROR} >&5 3>&- 4>&-; }} 3>&1 "
    "| enc O 49152 >&4 5>&-; }; } 4>&1 5>&2"
)


def relay(program: str) -> str:
    """The session command that runs `sh -c program` with base64 lines around it.

    It goes on until its input ends, even when the program has ended: `O-` and `E-` tell that a stream did.
    """
    return f"sh -c {shlex.quote(_RELAY)} relay {shlex.quote(program)}"


class _Gate(asyncio.ReadTransport):
    """Holds the stream back while nobody reads what came."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


class _Lines:
    """Puts pieces of text together to lines."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def add(self, text: str) -> list[str]:
        first, *rest = text.split("\n")
        self._held.append(first)
        if not rest:
            return []
        lines = ["".join(self._held), *rest[:-1]]
        self._held = [rest[-1]]
        return lines


class Ending:
    """Finds the mark of a command's end in what one of its streams carried.

    Attributes:
        code: The exit code, once the mark was found.
    """

    def __init__(self, mark: str) -> None:
        """Takes the mark without its first byte, which few outputs hold."""
        self._mark, self._held = b"\x1e" + mark.encode(), b""
        self.code: int | None = None

    def pass_on(self, data: bytes) -> bytes:
        """The output in `data`; what may be the beginning of the mark is held back."""
        if self.code is not None:
            return data  # of a child in the background
        data, self._held = self._held + data, b""
        begin = data.find(self._mark)
        if begin < 0:
            begin = data.rfind(self._mark[:1])
            if begin < 0 or not self._mark.startswith(data[begin:]):
                return data
            self._held = data[begin:]
            return data[:begin]
        code, end, rest = data[begin + len(self._mark) :].partition(b".")
        if not end:
            self._held = data[begin:]
            return data[:begin]
        self.code = int(code)
        return data[:begin] + rest

    def rest(self) -> bytes:
        """What is held back, when the stream ended."""
        held, self._held = self._held, b""
        return held


class DaytonaProcess:
    """One command of a session of its own.

    Attributes:
        stdout: What the command writes to its standard output.
        stderr: What it writes to its standard error.
        pid: Its process id inside, once known.
        kill: How to signal a process inside, by its id.
    """

    def __init__(self, service: Any, session: str, command: str) -> None:
        """Takes the SDK's `sandbox.process` and the names of a session and a command of it."""
        self.stdout = asyncio.StreamReader(READ_LIMIT)
        self.stderr = asyncio.StreamReader(READ_LIMIT)
        self.pid: int | None = None
        self.kill: Callable[[int, int], Awaitable[None]] | None = None
        self._service, self._session, self._command = service, session, command
        self._mark = secrets.token_hex(16)
        self._endings = {"O": Ending(self._mark), "E": Ending(self._mark)}
        self._opening = f"{self._mark}\n"
        self._gates = {"O": _Gate(), "E": _Gate()}
        self.stdout.set_transport(self._gates["O"])
        self.stderr.set_transport(self._gates["E"])
        self._lines = {"out": _Lines(), "err": _Lines()}
        self._exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._writing = asyncio.Lock()
        self._ended_stdin = False
        self._following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            await self._service.get_session_command_logs_async(
                self._session,
                self._command,
                functools.partial(self._take, "out"),
                functools.partial(self._take, "err"),
            )
        except Exception as error:  # whatever the SDK raises, the streams end here
            for reader in (self.stdout, self.stderr):
                reader.set_exception(ConnectionResetError(str(error)))
        finally:
            self._exit(None)
            self.stdout.feed_eof()
            self.stderr.feed_eof()

    async def _take(self, source: str, text: str) -> None:
        for line in self._lines[source].add(text):
            kind, data = line[:1], line[1:]
            if kind in self._gates:
                await self._take_line(kind, data)

    async def _take_line(self, kind: str, data: str) -> None:
        reader = self.stdout if kind == "O" else self.stderr
        ending = self._endings[kind]
        plain = ending.rest() if data == "-" else ending.pass_on(base64.b64decode(data))
        if plain:
            reader.feed_data(plain)
        if data == "-":
            reader.feed_eof()
        elif all(each.code is not None for each in self._endings.values()):
            self._exit(ending.code)
        await self._gates[kind].open.wait()

    def _exit(self, code: int | None) -> None:
        if not self._exited.done():
            self._exited.set_result(code)

    async def write(self, data: bytes) -> None:
        """Send bytes to the command's input.

        Raises:
            BrokenPipeError: It ended or its input was closed.
        """
        async with self._writing:
            if self._ended_stdin or self._exited.done():
                raise BrokenPipeError("the process does not read its input any more")
            for start in range(0, len(data), WRITE_CHUNK):
                encoded = base64.b64encode(data[start : start + WRITE_CHUNK]).decode()
                await self._send(f"{len(encoded)}\n{encoded}\n")

    async def close_stdin(self) -> None:
        """End the command's input."""
        async with self._writing:
            if not self._ended_stdin and not self._exited.done():
                self._ended_stdin = True
                try:
                    await self._send("0\n")
                except BrokenPipeError:
                    return  # it has ended meanwhile: there is no input to end

    async def _send(self, text: str) -> None:
        text, self._opening = self._opening + text, ""

        async def send() -> None:
            async with translated("write to a command"):
                await self._service.send_session_command_input(self._session, self._command, text)

        try:
            await again(send, (QuotaError,))  # it was refused; after anything else it may have arrived
        except Exception as error:
            raise BrokenPipeError(str(error)) from error

    async def signal(self, signal: int) -> None:
        """Signal the command, by a `kill` inside."""
        if self.kill and self.pid and not self._exited.done():
            await self.kill(self.pid, signal)

    async def wait(self) -> int | None:
        """The exit code (128+n for signal n); None when the connection was lost before it came."""
        return await asyncio.shield(self._exited)

    async def close(self) -> None:
        """Delete the session, which ends what it runs, and stop listening."""
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
        self._exit(None)
        try:
            await self._service.delete_session(self._session)
        except Exception:  # the session or the sandbox is gone already
            return
