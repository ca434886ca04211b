"""Live bash sessions: folder, variables, functions, aliases and jobs persist from command to command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from hermes_sandbox.errors import SandboxError
from hermes_sandbox.execute import OnOutput, check_input_and_callback, drain, uncancelled
from hermes_sandbox.output import OutputBuffer
from hermes_sandbox.result import ExecResult, Reason
from hermes_sandbox.runner.programs import shell_lines
from hermes_sandbox.shell_session import INTERRUPTED, Session, ShellSource

WRITE = 15.0
"""Seconds within which a shell must take in a command that is to be aborted."""


class Shell:
    """A live bash session. Commands run one after the other; several shells run beside each other.

    Attributes:
        cwd: The folder it is in.
    """

    def __init__(self, source: ShellSource, cwd: str, env: Mapping[str, str]) -> None:
        """`Sandbox.open_shell` makes these."""
        self.cwd = cwd
        self._source = source
        self._env = dict(env)
        self._exports = ""
        self._status = 0
        self._session: Session | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def open(self) -> Shell:
        """Start its bash, where the first command would."""
        async with self._turn:
            await self._ready()
        return self

    async def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        output_limit: int | None = 1 << 20,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run a command in the session; both its streams come as stdout, in true order.

        A command that ends the shell (`exit`, `exec`, `kill -9 $$`) gives its exit code, and the next one finds a
        fresh shell in the same folder with the same exported variables. `$?` is at first the exit code of the command
        before. A timeout kills the command; the shell and its state stay, but where bash itself hangs it is replaced
        in the same way.

        Args:
            command: Bash code.
            timeout: Seconds until it is killed.
            cwd: A folder for this command alone; afterwards the shell is back where it was, unless the command
                itself went elsewhere.
            env: Variables exported for this command alone.
            stdin: Bytes for its standard input; empty when None.
            output_limit: How many bytes of output to keep; None for all.
            on_output: Called with output as it comes.

        Raises:
            SandboxGone: The sandbox is gone.
        """
        check_input_and_callback(stdin, on_output)
        with self._source.use():
            async with self._turn:
                session = await self._ready()
                turn = session.expect()
                lines = shell_lines(command, cwd=cwd, env=env or {}, stdin=stdin, turn=turn)
                run = _Run(session, lines, output_limit, on_output)
                try:
                    result = await run.to_end(timeout)
                except BaseException:
                    await uncancelled(run.abort())
                    self._remember(session)
                    raise
                self._remember(session)
                self._status = INTERRUPTED if result.exit_code is None else result.exit_code
                if result.reason == "lost":
                    await self._source.check()
                return result

    async def _ready(self) -> Session:
        if self._closed:
            raise SandboxError("this shell was closed; open another")
        session = self._session
        if session is not None and not session.ended:
            return session
        if session is not None:
            self._session = None
            await drain(session.job)
            session.last_words()
            self._remember(session)
            await session.close()
        session = await Session.open(self._source, self.cwd, self._env, self._exports, self._status)
        self._session = session
        self._remember(session)
        return session

    def _remember(self, session: Session) -> None:
        if session.cwd:
            self.cwd, self._exports = session.cwd, session.exports

    async def close(self) -> None:
        """End the shell and the command that runs in it; its background jobs end with the sandbox."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await uncancelled(session.close())

    async def __aenter__(self) -> Shell:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Run:
    """One command in a session."""

    def __init__(self, session: Session, lines: bytes, limit: int | None, on_output: OnOutput | None) -> None:
        self._session, self._on_output = session, on_output
        self._writing = asyncio.ensure_future(session.job.write(lines))
        self._buffer = OutputBuffer(limit)
        self._waiting: asyncio.Timeout | None = None
        self._failure: Exception | None = None

    async def to_end(self, timeout: float | None) -> ExecResult:
        session = self._session
        session.output = self._take
        clock = asyncio.get_running_loop().time
        begin = clock()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout) as self._waiting:
                    await session.idle.wait()
            self._waiting = None
            timed_out = not session.idle.is_set()
            if timed_out:
                await uncancelled(self.abort())
            if session.ended:
                await drain(session.job)
                self._take(session.last_words())
        finally:
            session.output = None
        if self._failure is not None:
            raise self._failure
        return self._result(timed_out, clock() - begin)

    async def abort(self) -> None:
        """End the command, once bash was told of all of it: half of it would make nonsense of what follows."""
        await asyncio.wait({self._writing}, timeout=WRITE)
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)
        await self._session.abort()

    def _take(self, data: bytes) -> None:
        if data:
            self._buffer.add(data)
            if self._on_output is not None:
                try:
                    self._on_output("stdout", data)
                except Exception as error:  # the caller's own: it ends the command, not the shell
                    self._failure, self._on_output = error, None
                    if self._waiting is not None:
                        self._waiting.reschedule(0)

    def _result(self, timed_out: bool, duration: float) -> ExecResult:
        session = self._session
        code = session.code
        reason: Reason = "exit"
        if timed_out:
            code, reason = None, "timeout"
        elif session.ended and session.code is None:
            ending = session.job.ended.result()
            code = ending.exit_code
            killed = ending.signaled or (not session.told and (code or 0) > 128)
            reason = "lost" if code is None else "signal" if killed else "exit"
        stdout, head = self._buffer.kept()
        return ExecResult(
            exit_code=code,
            reason=reason,
            stdout=stdout,
            stderr=b"",
            stdout_total=self._buffer.total,
            stderr_total=0,
            duration=duration,
            stdout_head=head,
            stderr_head=0,
            cwd=session.cwd,
            restarted=session.ended,
        )
