"""One bash process that serves as a shell, and what it writes: output, and a report at the end of each command."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hermes_sandbox.backend import Command, Tree
from hermes_sandbox.errors import SandboxError
from hermes_sandbox.execute import TERM_GRACE, kill_tree, launch
from hermes_sandbox.jobs import MARK, Job, Launcher
from hermes_sandbox.result import StreamName
from hermes_sandbox.runner.programs import COMMAND, Turn, encode, quote, shell_program

START = 60.0
"""Seconds within which a new shell must answer."""
ABORT = (0.5, 1.0, 4.0)
"""Seconds within which a shell must give up a command whose processes are dead, each time that it is interrupted;
after the last it is replaced."""
BEGIN = 15.0
"""Seconds within which it must begin a command that is then to be aborted."""
REPORT = 5.0
"""Seconds within which the rest of a report follows its first part, unless bash was interrupted in it."""
LEAVE = 5.0
"""Seconds within which it must end after its input, or when it is killed."""
INTERRUPTED = 130
"""The exit code of a command that was interrupted."""
_STATUS = re.compile(rb"(\d+) (\d+) (/.*)", re.DOTALL)
_EXIT = b"\0hermes exit\0"


@dataclass(frozen=True, slots=True)
class ShellSource:
    """Where a shell comes from.

    Attributes:
        launcher: Starts its bash.
        signals: Signals what runs in it.
        check: Raises `SandboxGone` when the sandbox is gone.
        use: Entered while a command runs, so that the sandbox is not idle.
        bash: The program.
        marks: The beginning of this shell's marks.
        user: Who runs it.
    """

    launcher: Launcher
    signals: Launcher
    check: Callable[[], Awaitable[None]]
    use: Callable[[], AbstractContextManager[None]]
    bash: str
    marks: str
    user: str | None


class Session:
    """A running bash.

    Attributes:
        job: Its process.
        pid: Its process id inside the sandbox.
        cwd: Its folder after the last command.
        exports: Its exported variables after the last command, as `declare -px` writes them, soon after its end.
        code: The exit code of the last command; None while one runs, or when bash ended in it.
        told: Whether an ended bash ended by itself, telling its state; else something ended it.
        idle: Set when no command runs: the last one reported its end, or bash itself ended.
        output: Receives the output of the running command.
    """

    job: Job

    def __init__(self, source: ShellSource) -> None:
        self.pid = 0
        self.cwd = ""
        self.exports = ""
        self.told = False
        self.code: int | None = None
        self.idle = asyncio.Event()
        self._told_all = asyncio.Event()
        self.output: Callable[[bytes], None] | None = None
        self._source = source
        self._number = 0
        self._jobs: tuple[int, ...] = ()
        self._word = self._telling = b""
        self._turn: Turn | None = None
        self._pending = bytearray()

    @classmethod
    async def open(
        cls, source: ShellSource, cwd: str, env: Mapping[str, str], exports: str, status: int
    ) -> Session:
        """Start a bash in a folder, with these variables added, then `exports` restored, and `status` as its `$?`."""
        session = cls(source)
        argv = (source.bash, "--norc", "--noprofile", "--noediting", "-i")
        command = Command(argv, cwd=cwd, env={**env, MARK: session.mark}, user=source.user)
        session.job = await launch(source.launcher, command, session._take, merge=False, feed=True)
        session.job.ended.add_done_callback(session._bash_ended)
        turn = session.expect()
        # The mark is exported too, and the one of the shell before may be this one's next.
        restore = f"{exports}\n{MARK}={session.mark}\nbuiltin cd -- {quote(cwd)}\n" if exports else ""
        end = f"export {MARK}\n{turn.ending(status)}\n"
        try:
            async with asyncio.timeout(START):
                with contextlib.suppress(ConnectionError):
                    await session.job.write(encode(shell_program() + restore + end))
                await session.idle.wait()
            if session.code is None:
                await source.check()
                who = f" as user {source.user!r}" if source.user else ""
                raise SandboxError(f"no shell could be started with {source.bash} in {cwd}{who}")
        except BaseException:
            await session.close()
            raise
        return session

    def _bash_ended(self, _: object) -> None:
        self.idle.set()
        self._told_all.set()

    @property
    def mark(self) -> str:
        """The mark of the running command, or of the next one."""
        return f"{self._source.marks}{self._number}"

    @property
    def ended(self) -> bool:
        """Whether bash itself ended."""
        return self.job.ended.done()

    def expect(self) -> Turn:
        """Begin a command's turn."""
        # Short, for bash reads a line byte by byte.
        turn = Turn(f"@{secrets.token_urlsafe(16)}", self._number + 1)
        self._word = turn.end.encode()
        self.code, self._turn = None, turn
        if not self.ended:
            self.idle.clear()
            self._told_all.clear()
        return turn

    def _take(self, stream: StreamName, data: bytes) -> None:
        """The command's output, then the word, the report, and the word again.

        The command is over with the first part of its report; nobody waits for the rest, which comes before anything
        of the next command.
        """
        if stream == "stderr":
            return  # what bash says before it has read the first line
        pending = self._pending
        pending += data
        while pending:
            if self._telling:
                if (end := pending.find(self._telling)) < 0:
                    return
                self._note_state(bytes(pending[:end]))
                del pending[: end + len(self._telling)]
                self._telling = b""
                continue
            word = self._word
            at = pending.find(word) if word else -1
            if at < 0:
                self._emit(len(pending) - _overlap(pending, word))
                return
            self._emit(at)
            size = len(word)
            if (end := pending.find(b"\0", size)) < 0:
                return
            if (status := _STATUS.fullmatch(pending[size:end])) is None:
                self._emit(size)  # bash showed what it does, as with BASH_XTRACEFD
                continue
            self._reported(*status.groups())
            del pending[: end + 1]
            self._telling, self._word = word, b""

    def _emit(self, count: int) -> None:
        if count and self.output is not None:
            self.output(bytes(self._pending[:count]))
        del self._pending[:count]

    def _reported(self, code: bytes, pid: bytes, cwd: bytes) -> None:
        self.code, self.pid, self.cwd = int(code), int(pid), cwd.decode("utf-8", "surrogateescape")
        if self._turn is not None:
            self._number = self._turn.next
        self.idle.set()

    def _note_state(self, state: bytes) -> None:
        lines = state.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        first = len(lines)
        while first and lines[first - 1].strip().isdigit():
            first -= 1
        self.exports, self._jobs = "".join(lines[:first]), tuple(map(int, lines[first:]))
        self._told_all.set()

    def last_words(self) -> bytes:
        """The rest of an ended bash's output, without the state it told on its way out, which is noted."""
        left = b"" if self._telling else bytes(self._pending)
        self._pending.clear()
        output, found, state = left.rpartition(_EXIT)
        if found:
            self.told = True
            self.cwd, _, self.exports = state.decode("utf-8", "surrogateescape").partition("\0")
        return output if found else left

    async def abort(self) -> None:
        """Kill what the running command started and have bash give it up; else kill bash too."""
        signals, user = self._source.signals, self._source.user
        pid = self.pid or self.job.pid or 0
        await self._begun()  # by then the report before is complete, with the jobs that are to be spared
        tree = Tree(self.mark, pid, self._source.marks, self._jobs)
        for patience in ABORT:
            if self.idle.is_set():
                return
            if self.pid:
                await signals.signal_one(self.job, pid, signal.SIGUSR1, user=user)
            await kill_tree(signals, tree, user=user, grace=TERM_GRACE)
            if await self._settled(patience) and not await self._settled(REPORT, self._told_all):
                # It was interrupted in its report, and will tell all of it again. What it told is no output.
                self._word, self._telling, self.output = self._telling, b"", None
                self._pending.clear()
                self.idle.clear()
            told = self.idle.is_set()
            await self._say_end(patience)
            if told or (await self._settled(patience) and await self._settled(REPORT, self._told_all)):
                return
        if pid:
            await signals.signal_one(self.job, pid, signal.SIGKILL, user=user)
        await self._settled(LEAVE)

    async def _begun(self) -> None:
        """Wait until bash runs the command: interrupted while it reads a line it may crash."""
        clock = asyncio.get_running_loop().time
        end, pause = clock() + BEGIN, 0.01
        while self.pid and not self.idle.is_set() and clock() < end:
            with contextlib.suppress(OSError):
                if await self._source.signals.holds(self.job, self.pid, COMMAND, user=self._source.user):
                    return
            await self._settled(pause)
            pause = min(2 * pause, 0.2)

    async def _say_end(self, patience: float) -> None:
        """Have bash report the end, if the line that does was given up too.

        Else this does nothing there; but an interrupt that came too late then meets this line, not the next command.
        """
        if self._turn is not None and not self.ended:
            end = f"{self._turn.ending(INTERRUPTED)}\n"
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(patience):
                    await self.job.write(end.encode())

    async def _settled(self, patience: float, event: asyncio.Event | None = None) -> bool:
        event = event or self.idle
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await event.wait()
        return event.is_set()

    async def close(self) -> None:
        """End bash and the command that runs in it."""
        self.output = None
        if not self.ended:
            if self.pid:  # else it runs no command yet
                await self.abort()
            with contextlib.suppress(ConnectionError):
                await self.job.close_stdin()
            await asyncio.wait({self.job.ended}, timeout=LEAVE)
        await self._source.launcher.release(self.job)


def _overlap(data: bytearray, word: bytes) -> int:
    """How many bytes at the end of `data`, or from the last NUL of an exit report on, may belong to what follows."""
    hold = 0
    for size in range(min(len(word) - 1, len(data)), 0, -1):
        if data.endswith(word[:size]):
            hold = size
            break
    at = data.rfind(b"\0")
    if at >= 0:
        rest = bytes(data[at:])
        start = data.find(_EXIT)
        if start >= 0:
            hold = max(hold, len(data) - start)
        elif _EXIT.startswith(rest):
            hold = max(hold, len(rest))
    return hold
