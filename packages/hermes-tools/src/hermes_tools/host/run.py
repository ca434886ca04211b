"""Runs one command on this machine: output caps, deadlines, killing of whole trees."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hermes_tools.headtail import HeadTail, marked_text

DRAIN_SECONDS = 0.1
MAX_SCRIPT_ARGUMENT = 100_000


@dataclass(frozen=True, slots=True)
class HostResult:
    """The end of a command on this machine; see `hermes_tools.workspace.CommandResult`.

    Attributes:
        exit_code: Exit code, 128+n after signal n, None after a timeout.
        reason: exit, signal or timeout.
        stdout: Head and tail of standard output, or of both streams when merged.
        stderr: Head and tail of standard error.
        stdout_total: Bytes written to standard output.
        stderr_total: Bytes written to standard error.
        duration: Seconds.
        gap: Where in `stdout` something was left out, or None.
    """

    exit_code: int | None
    reason: str
    stdout: bytes
    stderr: bytes
    stdout_total: int
    stderr_total: int
    duration: float
    gap: int | None = None

    @property
    def output(self) -> str:
        """Text of both streams, with a mark where something was left out."""
        text = marked_text(self.stdout, self.gap, self.stdout_total)
        return text + self.stderr.decode("utf-8", "replace")

    @property
    def timed_out(self) -> bool:
        """Whether the deadline ended it."""
        return self.reason == "timeout"

    @property
    def truncated(self) -> bool:
        """Whether more was written than was kept."""
        return self.stdout_total > len(self.stdout) or self.stderr_total > len(self.stderr)

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0


class _Capture(asyncio.Protocol):
    """Keeps head and tail of what a pipe brings."""

    def __init__(self, limit: int | None) -> None:
        self.stream = HeadTail(limit)
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.stream.add(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


class _Pipe:
    """A pipe whose writing end goes to a child and whose reading end fills a capture."""

    def __init__(self, capture: _Capture) -> None:
        self.capture = capture
        reader, self.write_end = os.pipe()
        self._file: IO[bytes] = os.fdopen(reader, "rb", buffering=0)
        self._transport: asyncio.ReadTransport | None = None

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self.capture, self._file)

    def child_started(self) -> None:
        os.close(self.write_end)
        self.write_end = -1

    def close(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
        if self._transport is not None:
            self._transport.close()
        else:
            self._file.close()


async def run(
    command: str | Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    merge: bool = False,
    output_limit: int | None = 1 << 20,
) -> HostResult:
    """Run a command; see `Workspace.exec`. A cancelled call kills what it started."""
    started = time.perf_counter()
    out = _Pipe(_Capture(output_limit))
    err = out if merge else _Pipe(_Capture(output_limit))
    pipes = [out] if merge else [out, err]
    try:
        for pipe in pipes:
            await pipe.connect()
        process = await start(command, cwd, env, stdin, out.write_end, err.write_end)
        for pipe in pipes:
            pipe.child_started()
        exit_code, reason = await _finish(process, timeout)
        # What the command left in the background may hold the pipes open; it does not hold us up.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for pipe in pipes:
                    await pipe.capture.closed.wait()
    finally:
        for pipe in pipes:
            pipe.close()
    stdout = out.capture.stream
    stderr = HeadTail(0) if merge else err.capture.stream
    took = time.perf_counter() - started
    return HostResult(
        exit_code, reason, stdout.kept, stderr.kept, stdout.total, stderr.total, took, stdout.gap
    )


async def start(
    command: str | Sequence[str],
    cwd: str,
    env: Mapping[str, str] | None,
    stdin: bytes | int | None,
    stdout: int,
    stderr: int,
) -> asyncio.subprocess.Process:
    """Start a command in a session of its own.

    Args:
        command: A bash script of any length, or words.
        cwd: Folder to run in.
        env: Variables added to this process's own.
        stdin: Bytes to read, a descriptor, or None for nothing.
        stdout: Descriptor to write to.
        stderr: Descriptor to write to.
    """
    with contextlib.ExitStack() as files:
        extra: dict[str, Any] = {}
        if not isinstance(command, str):
            argv = list(command)
        elif len(command) < MAX_SCRIPT_ARGUMENT:
            argv = ["bash", "-c", command]
        else:
            # One argument may not exceed 128 KiB, so a long script is read from a nameless file.
            script = files.enter_context(_holding(command.encode()))
            argv, extra = ["bash", f"/dev/fd/{script.fileno()}"], {"pass_fds": (script.fileno(),)}
        source: int = asyncio.subprocess.DEVNULL
        if isinstance(stdin, int):
            source = stdin
        elif stdin is not None:
            source = files.enter_context(_holding(stdin)).fileno()
        variables = {**os.environ, **env} if env else None
        creating = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=variables,
                stdin=source,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                **extra,
            )
        )
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:
            # Cancelled itself, asyncio would kill the first process alone, not what that has begun.
            with contextlib.suppress(Exception):
                process = await creating
                kill_tree(process.pid)
                await process.wait()
            raise


def _holding(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(data)
    file.seek(0)
    return file


async def _finish(process: asyncio.subprocess.Process, timeout: float | None) -> tuple[int | None, str]:
    try:
        async with asyncio.timeout(timeout):
            code = await process.wait()
    except TimeoutError:
        kill_tree(process.pid)
        await process.wait()
        return None, "timeout"
    except asyncio.CancelledError:
        kill_tree(process.pid)
        await asyncio.shield(process.wait())
        raise
    return exit_status(code)


def exit_status(code: int) -> tuple[int, str]:
    """A return code as shells count it (128+n after signal n), and how it came about."""
    return (code, "exit") if code >= 0 else (128 - code, "signal")


def kill_tree(pid: int, sig: int = signal.SIGKILL) -> None:
    """Signal a process, its session and all its living descendants.

    What a descendant left behind when it exited (a daemon) is beyond reach: this machine is no sandbox.
    """
    for target in _descendants(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(target, sig)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [pid], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
