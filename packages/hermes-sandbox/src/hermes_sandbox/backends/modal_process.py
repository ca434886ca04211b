"""A command in a Modal sandbox, as a `ByteProcess` over the SDK's streams."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

READ_LIMIT = 1 << 18
WRITE_CHUNK = 1 << 20
LATEST_OUTPUT = 3.0
"""Seconds of silence after which the end of a command is believed although something holds its output open."""
LISTEN = 0.3
"""Seconds of it at a time: where the machine stands still meanwhile, they count as so many at most."""

LATEST_END = 15.0
"""Seconds in which the end of a command is still heard of when the SDK has given up on its output. The SDK itself asks for it
for ever, also where the service is gone."""


class _Gate(asyncio.ReadTransport):
    """Holds the SDK's stream back while nobody reads what came."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


class ModalProcess:
    """One exec of the SDK.

    Attributes:
        stdout: What the command writes to its standard output.
        stderr: What it writes to its standard error.
        pid: Its process id inside, once known.
        kill: How to signal a process inside, by its id.
    """

    def __init__(self, process: Any) -> None:
        """Takes the SDK's `ContainerProcess`, opened with `text=False`."""
        self.stdout = asyncio.StreamReader(READ_LIMIT)
        self.stderr = asyncio.StreamReader(READ_LIMIT)
        self.pid: int | None = None
        self.kill: Callable[[int, int], Awaitable[None]] | None = None
        self._process = process
        self._received = 0
        self._broken = asyncio.Event()
        self._writing = asyncio.Lock()
        self._ended_stdin = False
        self._readers = [
            asyncio.create_task(self._pump(process.stdout, self.stdout)),
            asyncio.create_task(self._pump(process.stderr, self.stderr)),
        ]
        self._waiter = asyncio.create_task(self._code())

    async def _pump(self, source: Any, target: asyncio.StreamReader) -> None:
        gate = _Gate()
        target.set_transport(gate)
        try:
            async for data in source:
                self._received += len(data)
                target.feed_data(data)
                await gate.open.wait()
        except (
            Exception
        ) as error:  # whatever the SDK raises, the stream ends here and `wait` says what is known
            target.set_exception(ConnectionResetError(str(error)))
            self._broken.set()
        finally:
            target.feed_eof()

    async def _code(self) -> int | None:
        waiting = asyncio.ensure_future(self._process.wait.aio())
        breaking = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait({waiting, breaking}, return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(LATEST_END if self._broken.is_set() else None):
                code: int = await waiting
        except Exception:  # the SDK has given up on it, or would never: nobody knows how it ended
            return None
        finally:
            waiting.cancel()
            breaking.cancel()
        await self._last_output()
        return code if code >= 0 else None

    async def _last_output(self) -> None:
        """Wait for what was written before the end: its streams and its end come over connections of their own."""
        silence = 0.0
        while silence < LATEST_OUTPUT:
            before = self._received
            _, open_still = await asyncio.wait(self._readers, timeout=LISTEN)
            if not open_still:
                return
            silence = silence + LISTEN if self._received == before else 0.0

    async def write(self, data: bytes) -> None:
        """Send bytes to the command's input.

        Raises:
            BrokenPipeError: It ended or its input was closed.
        """
        async with self._writing:
            if self._ended_stdin or self._waiter.done():
                raise BrokenPipeError("the process does not read its input any more")
            try:
                for start in range(0, len(data), WRITE_CHUNK):
                    self._process.stdin.write(data[start : start + WRITE_CHUNK])
                    await self._process.stdin.drain.aio()
            except Exception as error:
                raise BrokenPipeError(str(error)) from error

    async def close_stdin(self) -> None:
        """End the command's input."""
        async with self._writing:
            if self._ended_stdin:
                return
            self._ended_stdin = True
            if self._waiter.done():
                return
            try:
                self._process.stdin.write_eof()
                await self._process.stdin.drain.aio()
            except Exception:  # it has ended meanwhile: there is no input to end
                return

    async def signal(self, signal: int) -> None:
        """Signal the command, by a `kill` inside."""
        if self.kill and self.pid and not self._waiter.done():
            await self.kill(self.pid, signal)

    async def wait(self) -> int | None:
        """The exit code (128+n for signal n); None when it was lost."""
        return await asyncio.shield(self._waiter)

    async def close(self) -> None:
        """End the input, and stop listening."""
        if not self._waiter.done():
            try:
                async with asyncio.timeout(5):
                    await self.close_stdin()
            except TimeoutError:
                pass  # the service does not answer: stop listening all the same
        tasks: list[asyncio.Task[Any]] = [*self._readers, self._waiter]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
