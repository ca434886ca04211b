"""The same sandbox for callers without an event loop.

Everything runs on one private event loop in a thread of its own, started at the first use. So a `SyncSandbox`
works from any thread, also inside a running loop of the caller's (which it blocks, like any synchronous call).
After a fork the child gets a loop of its own; sandboxes made before belong to the parent.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from hermes_sandbox.process import Process
from hermes_sandbox.registry import attach_sandbox, create_sandbox
from hermes_sandbox.sandbox import Sandbox
from hermes_sandbox.shell import Shell
from hermes_sandbox.spec import SandboxSpec

P = ParamSpec("P")
T = TypeVar("T")
Wrapped = TypeVar("Wrapped")
Wrapped_co = TypeVar("Wrapped_co", covariant=True)


class LoopThread:
    """An event loop on a daemon thread, and the sandboxes to close when the program ends."""

    def __init__(self) -> None:
        self.sandboxes: set[Sandbox] = set()
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hermes-sandbox", daemon=True)
        self._thread.start()
        _at_exit(self._close_all)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end on the loop. An interrupt of the caller cancels it and waits for its clean-up.

        Raises:
            RuntimeError: The call comes from the loop's own thread, or from a child of the process.
        """
        try:
            self._check()
        except RuntimeError:
            work.close()
            raise
        ended = threading.Event()

        async def watched() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(watched(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(30)
            raise

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this sandbox was made before a fork and belongs to the parent; make another one"
            )
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a SyncSandbox cannot be used in a callback of its own loop: it would wait for itself"
            )

    def _close_all(self) -> None:
        if os.getpid() == self._pid and self.sandboxes:
            self.call(_close_each(tuple(self.sandboxes)))


def _at_exit(callback: Callable[[], None]) -> None:
    """Call back before the program ends, while threads can still be used.

    Plain `atexit` comes after the shutdown of `concurrent.futures`, which refuses all work from then on.
    Callbacks are called last in, first out, so that module must have registered its own before.
    """
    import concurrent.futures.thread  # noqa: F401  # pyright: ignore[reportUnusedImport]

    register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
    register(callback)


async def _close_each(sandboxes: Sequence[Sandbox]) -> None:
    await asyncio.wait([asyncio.ensure_future(sandbox.close()) for sandbox in sandboxes], timeout=30)


@functools.cache
def _loop_thread(pid: int) -> LoopThread:
    """The loop thread of the process `pid`, which is the calling one."""
    return LoopThread()


class _OnLoop(Protocol[Wrapped_co]):
    """Something that stands for `wrapped`, which lives on the loop thread."""

    @property
    def wrapped(self) -> Wrapped_co: ...
    @property
    def thread(self) -> LoopThread: ...


def _mirrored(
    method: Callable[Concatenate[Wrapped, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_OnLoop[Wrapped], P], T]:
    """The synchronous twin of an asynchronous method: same arguments, same documentation."""

    @functools.wraps(method)
    def call(self: _OnLoop[Wrapped], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.thread.call(method(self.wrapped, *args, **kwargs))

    return call


class SyncProcess:
    """A background process; see `Process`."""

    def __init__(self, process: Process, thread: LoopThread) -> None:
        self.wrapped, self.thread = process, thread

    poll = _mirrored(Process.poll)
    read = _mirrored(Process.read)
    write = _mirrored(Process.write)
    close_stdin = _mirrored(Process.close_stdin)
    signal = _mirrored(Process.signal)
    wait = _mirrored(Process.wait)

    @property
    def id(self) -> str:
        """Its name in the sandbox."""
        return self.wrapped.id

    @property
    def pid(self) -> int:
        """Its process id inside."""
        return self.wrapped.pid

    @property
    def command(self) -> str:
        """What was started."""
        return self.wrapped.command


class SyncShell:
    """A live bash session; see `Shell`."""

    def __init__(self, shell: Shell, thread: LoopThread) -> None:
        self.wrapped, self.thread = shell, thread

    run = _mirrored(Shell.run)
    close = _mirrored(Shell.close)

    @property
    def cwd(self) -> str:
        """The folder it is in."""
        return self.wrapped.cwd

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SyncSandbox:
    """A sandbox whose methods wait. `with SyncSandbox("docker", SandboxSpec(image=…)) as sandbox: …`.

    The methods are those of `Sandbox`. Callbacks (`on_output`) are called on the private loop's thread.
    """

    def __init__(self, name: str, spec: SandboxSpec | None = None, **options: Any) -> None:
        """Create a sandbox; the arguments and errors are those of `create_sandbox`."""

        async def create() -> Sandbox:
            return await create_sandbox(name, spec, **options)

        self.thread = _loop_thread(os.getpid())
        self._adopt(self.thread.call(create()))

    @classmethod
    def attach(cls, name: str, id: str, **options: Any) -> Self:
        """Find a running sandbox, as `attach_sandbox` does."""
        self = cls.__new__(cls)
        self.thread = _loop_thread(os.getpid())
        self.wrapped = self.thread.call(attach_sandbox(name, id, **options))
        return self

    def _adopt(self, sandbox: Sandbox) -> None:
        self.wrapped = sandbox
        self.thread.sandboxes.add(sandbox)

    exec = _mirrored(Sandbox.exec)
    read_bytes = _mirrored(Sandbox.read_bytes)
    write_bytes = _mirrored(Sandbox.write_bytes)
    read_text = _mirrored(Sandbox.read_text)
    write_text = _mirrored(Sandbox.write_text)
    exists = _mirrored(Sandbox.exists)
    stat = _mirrored(Sandbox.stat)
    list_dir = _mirrored(Sandbox.list_dir)
    mkdir = _mirrored(Sandbox.mkdir)
    remove = _mirrored(Sandbox.remove)
    upload = _mirrored(Sandbox.upload)
    download = _mirrored(Sandbox.download)
    read_outside = _mirrored(Sandbox.read_outside)
    write_outside = _mirrored(Sandbox.write_outside)
    snapshot = _mirrored(Sandbox.snapshot)

    def open_shell(
        self, *, cwd: str | None = None, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> SyncShell:
        """Open a live bash session, as `Sandbox.open_shell` does."""
        return SyncShell(self.thread.call(self.wrapped.open_shell(cwd=cwd, env=env, user=user)), self.thread)

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> SyncProcess:
        """Start a background process, as `Sandbox.spawn` does."""
        process = self.thread.call(self.wrapped.spawn(command, cwd=cwd, env=env, user=user))
        return SyncProcess(process, self.thread)

    def processes(self) -> list[SyncProcess]:
        """The processes started by `spawn`, oldest first."""
        return [SyncProcess(process, self.thread) for process in self.thread.call(self.wrapped.processes())]

    def close(self) -> None:
        """Delete the sandbox. Harmless when done before."""
        self.thread.call(self.wrapped.close())
        self.thread.sandboxes.discard(self.wrapped)

    def detach(self) -> None:
        """Let go of the sandbox without deleting it, as `Sandbox.detach` does."""
        self.thread.call(self.wrapped.detach())
        self.thread.sandboxes.discard(self.wrapped)

    @property
    def id(self) -> str:
        """The backend's name for it."""
        return self.wrapped.id

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self.wrapped.backend

    @property
    def spec(self) -> SandboxSpec:
        """What was asked for."""
        return self.wrapped.spec

    @property
    def workdir(self) -> str:
        """Where commands start."""
        return self.wrapped.workdir

    @property
    def root(self) -> str:
        """What stands before absolute paths; "" for a sandbox with a root of its own."""
        return self.wrapped.root

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The fields of the spec that nothing enforces."""
        return self.wrapped.unenforced

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
