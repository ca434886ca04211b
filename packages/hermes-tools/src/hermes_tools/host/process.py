"""A background process on this machine."""

import asyncio
import contextlib
import os
import signal as signals
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from hermes_tools.host.run import exit_status, kill_tree, start


@dataclass(frozen=True, slots=True)
class HostOutput:
    """A piece of output; see `hermes_tools.workspace.ProcessOutput`."""

    data: bytes
    next_offset: int


class HostProcess:
    """A process started by `HostWorkspace.spawn`. Its output goes to a nameless file, its input through a pipe."""

    def __init__(
        self, name: str, command: str, process: asyncio.subprocess.Process, log: IO[bytes], stdin: int
    ):
        self.id = name
        self.command = command
        self._process = process
        self._log = log
        self._stdin: int | None = stdin
        os.set_blocking(stdin, False)

    @classmethod
    async def spawn(
        cls, name: str, command: str | Sequence[str], cwd: str, env: Mapping[str, str] | None
    ) -> "HostProcess":
        """Start it."""
        log: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the process
        reader, writer = os.pipe()
        try:
            process = await start(command, cwd, env, reader, log.fileno(), log.fileno())
        except BaseException:
            log.close()
            os.close(writer)
            raise
        finally:
            os.close(reader)
        text = command if isinstance(command, str) else " ".join(command)
        return cls(name, text, process, log, writer)

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    async def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        code = self._process.returncode
        return None if code is None else exit_status(code)[0]

    async def read(self, offset: int = 0, limit: int | None = None) -> HostOutput:
        """Output from a byte offset on, what is there now."""
        size = os.fstat(self._log.fileno()).st_size
        count = max(0, size - offset) if limit is None else limit
        data = os.pread(self._log.fileno(), count, offset)
        return HostOutput(data, offset + len(data))

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input.

        Raises:
            BrokenPipeError: Its input is closed.
        """
        while data:
            if self._stdin is None:
                raise BrokenPipeError("the standard input of this process is closed")
            try:
                data = data[os.write(self._stdin, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.02)

    async def close_stdin(self) -> None:
        """End its standard input."""
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    async def signal(self, sig: int | str) -> None:
        """Send a signal to it and its children."""
        number = sig if isinstance(sig, int) else signals.Signals[f"SIG{sig.upper().removeprefix('SIG')}"]
        if self._process.returncode is None:
            kill_tree(self.pid, number)

    async def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None when it still runs after `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._process.wait()
        return await self.poll()

    async def close(self) -> None:
        """Kill it and free what it holds."""
        await self.signal(signals.SIGKILL)
        await self._process.wait()
        await self.close_stdin()
        self._log.close()
