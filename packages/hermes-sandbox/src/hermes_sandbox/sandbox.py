"""A sandbox, as its users see it. The same calls mean the same on every backend."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import posixpath
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from hermes_sandbox.backend import Backend, Command, Machine, RunsOnce, Snapshots
from hermes_sandbox.direct import DirectLauncher
from hermes_sandbox.errors import (
    CommandFailed,
    ImageError,
    SandboxError,
    SandboxGone,
    Unavailable,
    Unsupported,
)
from hermes_sandbox.execute import (
    OnOutput,
    Request,
    check_bytes,
    check_input_and_callback,
    execute,
    uncancelled,
)
from hermes_sandbox.files import Unpacker
from hermes_sandbox.jobs import MARK, Launcher
from hermes_sandbox.lifetime import Lifetime
from hermes_sandbox.ownership import owner_labels
from hermes_sandbox.paths import FileInfo, Paths, RemotePath
from hermes_sandbox.process import Process
from hermes_sandbox.programs import bash_argv, program_argv, trusted_command
from hermes_sandbox.resident import NEEDS_BASH, ResidentLauncher
from hermes_sandbox.result import ExecResult
from hermes_sandbox.shell import Shell
from hermes_sandbox.shell_session import ShellSource
from hermes_sandbox.spec import SandboxSpec, Snapshot, check_variables
from hermes_sandbox.transfer import Transfers

logger = logging.getLogger(__name__)

REMEMBERED = 256
"""How many processes are listed; beyond that, those that ended are forgotten, oldest first."""


class Sandbox:
    """A place where commands run and files live. Made by `create_sandbox` and `attach_sandbox`.

    An asynchronous context manager: leaving it deletes the sandbox.

    Attributes:
        id: The backend's name for it; `attach_sandbox` takes it.
        backend: The backend's name.
        spec: What was asked for.
        workdir: Where commands start, as they see it.
        root: What stands before the absolute paths of a sandbox without a root of its own; "" for others.
        unenforced: The fields of the spec that nothing enforces, accepted by `strict=False`.
    """

    def __init__(self, backend: Backend, machine: Machine, spec: SandboxSpec) -> None:
        """`create_sandbox` makes these."""
        self.id = machine.id
        self.backend = backend.name
        self.spec = spec
        self.workdir = machine.workdir
        self.root = machine.root
        self.unenforced = machine.unenforced
        self._backend = backend
        self._machine = machine
        self._marks = f"{machine.id}/{secrets.token_hex(4)}"
        self._numbers = itertools.count(1)
        self._direct = DirectLauncher(backend, machine)
        self._launcher: Launcher = ResidentLauncher(backend, machine) if machine.resident else self._direct
        self._parts = (self._launcher, self._direct, self._backend)
        self._paths = Paths(self._run_program)
        self._transfers = Transfers(backend, machine)
        self._processes: list[Process] = []
        self._lifetime = Lifetime(spec, self.close)
        self._closing: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Find out that commands can run, before anybody asks for one; its lifetime begins then."""
        if isinstance(self._launcher, ResidentLauncher):
            try:
                await self._launcher.prepare()
            except SandboxGone as error:
                raise ImageError(
                    f"the sandbox ended as soon as it started ({error}); {NEEDS_BASH}"
                ) from error
        self._lifetime.start()

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        merge: bool = False,
        check: bool = False,
        output_limit: int | None = 1 << 20,
        on_output: OnOutput | None = None,
        trusted: bool = False,
    ) -> ExecResult:
        """Run a command to its end, in an environment that is fresh for each.

        A timeout or cancellation kills everything the command started, also what left its session. A child that it
        leaves in the background lives on and holds nothing up.

        Args:
            command: Bash code, or a program with its arguments.
            cwd: Where to run; relative to `workdir`. A folder that is not there is exit code 126.
            env: Variables added to the sandbox's.
            user: Who runs it, where the backend can switch users.
            stdin: Bytes for its standard input; empty when None.
            timeout: Seconds until it is killed: a result with `reason="timeout"`, no exception.
            merge: Both streams through one pipe, as stdout, in true order.
            check: Raise `CommandFailed` unless it exits with 0.
            output_limit: Bytes to keep of each stream, half from the head and half from the tail; None for all.
            on_output: Called with the stream's name and bytes as they come, without limit; a plain function.
            trusted: Past the resident runner, with absolute paths and a pinned environment; for verifiers that
                share a sandbox with what they verify. No protection against root inside.

        Raises:
            SandboxGone: The sandbox is gone.
            CommandFailed: It failed, with `check=True`.
        """
        check_input_and_callback(stdin, on_output)
        marked = self._command(command, cwd, env, user)
        launcher = self._launcher
        if trusted:
            marked, launcher = trusted_command(self._machine, marked), self._direct
        with self._lifetime.use():
            if isinstance(self._backend, RunsOnce):
                result = await self._backend.run_once(
                    self._machine,
                    marked,
                    stdin=stdin,
                    timeout=timeout,
                    output_limit=output_limit,
                    on_output=on_output,
                )
            else:
                request = Request(marked, stdin, timeout, output_limit, merge, on_output)
                result = await execute(launcher, request)
            if result.reason == "lost":
                await self._check()
        if check and not result.ok:
            raise CommandFailed(command if isinstance(command, str) else shlex.join(command), result)
        return result

    async def open_shell(
        self, *, cwd: str | None = None, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> Shell:
        """Open a live bash session; several live beside each other, and end with the sandbox."""
        launcher = self._launcher if self._machine.single else self._direct
        check_variables(env or {})
        number = next(self._numbers)
        source = ShellSource(
            launcher=launcher,
            signals=self._launcher,
            check=self._check,
            use=self._lifetime.use,
            bash=self._machine.shell,
            marks=f"{self._marks}.s{number}.",
            user=user,
        )
        shell = Shell(source, posixpath.join(self.workdir, cwd) if cwd else self.workdir, env or {})
        with self._lifetime.use():
            return await shell.open()

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process:
        """Start a command in the background. Arguments as for `exec`; it ends with the sandbox at the latest."""
        number = next(self._numbers)
        text = command if isinstance(command, str) else shlex.join(command)
        with self._lifetime.use():
            request = self._command(command, cwd, env, user)
            process = Process(f"p{number}", text, self._launcher, request, self._lifetime.busy)
            await process.start()
        self._processes.append(process)
        while len(self._processes) > REMEMBERED:
            ended = next((old for old in self._processes if old.ended), None)
            if ended is None:
                break
            self._processes.remove(ended)
        return process

    async def processes(self) -> list[Process]:
        """The processes started by `spawn`, running and ended, oldest first."""
        return list(self._processes)

    async def read_bytes(self, path: RemotePath, *, offset: int = 0, limit: int | None = None) -> bytes:
        """A file's bytes, from `offset` on and at most `limit` of them.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a folder.
            PermissionError: The sandbox's user may not read it.
        """
        return await self._paths.read(os.fspath(path), offset, limit)

    async def write_bytes(self, path: RemotePath, data: bytes, *, mode: int | None = None) -> None:
        """Write a file, making its folders: whole or not at all.

        Args:
            path: Where; relative to `workdir`.
            data: Its content.
            mode: Permission bits. Default: those of the file replaced, or the sandbox's umask.
        """
        check_bytes("data", data)
        await self._paths.write(os.fspath(path), data, mode)

    async def read_text(self, path: RemotePath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """A file's text."""
        return (await self.read_bytes(path)).decode(encoding, errors)

    async def write_text(
        self, path: RemotePath, text: str, *, mode: int | None = None, encoding: str = "utf-8"
    ) -> None:
        """Write a text file, as `write_bytes` does."""
        await self.write_bytes(path, text.encode(encoding), mode=mode)

    async def exists(self, path: RemotePath) -> bool:
        """Whether something is there."""
        return await self._paths.exists(os.fspath(path))

    async def stat(self, path: RemotePath, *, follow_symlinks: bool = True) -> FileInfo:
        """Kind, size, mode, owner and time of an entry."""
        return await self._paths.stat(os.fspath(path), follow=follow_symlinks)

    async def list_dir(self, path: RemotePath = ".") -> list[FileInfo]:
        """A folder's entries, sorted by name."""
        return await self._paths.list(os.fspath(path))

    async def mkdir(self, path: RemotePath, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Make a folder."""
        await self._paths.mkdir(os.fspath(path), parents=parents, exist_ok=exist_ok)

    async def remove(self, path: RemotePath, *, recursive: bool = False) -> None:
        """Remove a file or an empty folder; with `recursive` a folder with all it holds."""
        await self._paths.remove(os.fspath(path), recursive=recursive)

    async def upload(self, local: str | Path, remote: RemotePath) -> None:
        """Copy a local file to the path `remote`, or a local folder's contents into the folder `remote`.

        A file goes into `remote` under its own name where that is a folder or ends with "/". Folders are made,
        modes, links and empty folders kept; files that are there are replaced.
        """
        source = Path(local)
        target = posixpath.join(self.workdir, remote)
        with self._lifetime.use():
            if await asyncio.to_thread(source.is_dir):
                return await self._transfers.upload(source, target, None)
            if not await asyncio.to_thread(source.is_file):
                raise FileNotFoundError(2, "No such file or directory", str(local))
            if os.fspath(remote).endswith("/") or (
                await self.exists(target) and (await self.stat(target)).kind == "folder"
            ):
                return await self._transfers.upload(source, target, source.name)
            folder, name = posixpath.split(target)
            return await self._transfers.upload(source, folder, name)

    async def download(
        self, remote: RemotePath, local: str | Path, *, unsafe: Literal["refuse", "skip"] = "refuse"
    ) -> tuple[str, ...]:
        """Copy a file to the local path `local`, or a folder's contents into the local folder `local`.

        A file goes into `local` under its own name where that is a folder or ends with "/". Nothing is written
        outside of `local`, whatever the sandbox sends.

        Args:
            remote: What to copy.
            local: Where to.
            unsafe: What to do about a link that leads out of the folder (a virtual environment has one to its Python),
                a pipe or a device: raise `UnsafeArchive`, or leave it out.

        Returns:
            The names left out.
        """
        source = posixpath.join(self.workdir, remote)
        with self._lifetime.use():
            if (await self.stat(source)).kind == "folder":
                async with Unpacker(local, unsafe=unsafe) as unpacker:
                    await self._transfers.download(source, ".", unpacker)
                return tuple(unpacker.skipped)
            folder, name = posixpath.split((await self._resolved(source)).rstrip("/"))
            target: Path = Path(local)
            if str(local).endswith("/") or await asyncio.to_thread(target.is_dir):
                target = target / posixpath.basename(source)
            async with Unpacker(target, single=True) as unpacker:
                await self._transfers.download(folder, f"./{name}", unpacker)
        return ()

    async def _resolved(self, path: str) -> str:
        result = await self._run_program('exec readlink -fn -- "$1"', (path,), None, False)
        return result.stdout.decode("utf-8", "surrogateescape") if result.ok else path

    async def read_outside(self, path: RemotePath, *, limit: int = 64 << 20) -> bytes | None:
        """A regular file as the backend hands it out itself, past every program inside; for verifiers.

        None where the backend has no such way, there is no regular file, or it has more than `limit` bytes.
        """
        with self._lifetime.use():
            return await self._transfers.fetch(os.fspath(path), limit)

    async def write_outside(self, path: RemotePath, data: bytes, *, mode: int = 0o644) -> bool:
        """Replace a file by the backend's own means, owned by root; False where it has none."""
        with self._lifetime.use():
            return await self._transfers.place(os.fspath(path), data, mode)

    async def snapshot(self, *, keep: bool = False) -> Snapshot:
        """Save the file system as an image that `SandboxSpec.image` takes, until `delete_snapshot`.

        Args:
            keep: Leave it also when this process dies. Else it is removed by `reap` then, as sandboxes are.

        Raises:
            Unsupported: The backend cannot.
        """
        if not isinstance(self._backend, Snapshots):
            raise Unsupported(f"the {self.backend} backend cannot take snapshots")
        with self._lifetime.use():
            return await self._backend.snapshot(self._machine, {} if keep else owner_labels())

    async def close(self) -> None:
        """Delete the sandbox and everything in it. Harmless when done before.

        Raises:
            Unavailable: It could not be deleted: close it again later, or `detach` it.
        """
        if self._closing is None or _failed(self._closing):
            self._closing = asyncio.create_task(self._close())
        closing = self._closing

        async def finish() -> None:
            await asyncio.shield(closing)

        await uncancelled(finish())

    async def detach(self) -> None:
        """Let go of the sandbox and leave it as it is, for `attach_sandbox`. Shells and processes do not outlive it."""
        self._lifetime.end("it was detached")
        await uncancelled(self._let_go(self._parts))

    async def _close(self) -> None:
        self._lifetime.end("it was closed")
        parts = self._parts
        try:
            await self._backend.delete(self.id)
        except Unavailable:
            parts = parts[:-1]  # the next `close` needs the backend
            raise
        finally:
            await self._let_go(parts)

    async def _let_go(self, parts: Sequence[Launcher | Backend]) -> None:
        for part in parts:
            try:
                await part.close()
            except OSError as error:
                logger.debug("closing a connection of sandbox %s: %s", self.id, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close_for_good(self)

    def _command(
        self,
        command: str | Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
    ) -> Command:
        self._lifetime.check()
        argv = bash_argv(self._machine.shell, command) if isinstance(command, str) else tuple(command)
        if not argv:
            raise ValueError("a command needs at least a program")
        check_variables(env or {})
        marked = {**(env or {}), MARK: f"{self._marks}.{next(self._numbers)}"}
        return Command(argv, cwd=cwd, env=marked, user=user)

    async def _run_program(
        self, program: str, arguments: tuple[str, ...], stdin: bytes | None, much: bool
    ) -> ExecResult:
        argv = program_argv(self._machine.shell, program, arguments)
        if not much or isinstance(self._backend, RunsOnce):
            return await self.exec(argv, env={"LC_ALL": "C"}, stdin=stdin, output_limit=None)
        with self._lifetime.use():
            if (staged := await self._transfers.run(argv, stdin)) is not None:
                return staged
            command = self._command(argv, None, {"LC_ALL": "C"}, None)
            return await execute(self._direct, Request(command, stdin))

    async def _check(self) -> None:
        """Raise `SandboxGone` if that is why something was lost."""
        self._lifetime.check()
        try:
            await self._backend.attach(self.id)
            if isinstance(self._launcher, ResidentLauncher):
                await self._launcher.prepare()  # where all was killed, the sandbox may just be going
        except SandboxGone:
            self._lifetime.end("it was removed from outside, or its main process ended")
            raise
        except SandboxError as error:
            logger.debug("sandbox %s lost a command, and serves no other yet: %s", self.id, error)

    def __repr__(self) -> str:
        return f"<Sandbox {self.backend} {self.id[:12]}>"

    def _state(self) -> Any:
        return self._machine.state


async def close_for_good(sandbox: Sandbox) -> None:
    """Close a sandbox that nobody will close again: what cannot be deleted is at least let go of."""
    try:
        await sandbox.close()
    except BaseException:
        await sandbox.detach()
        raise


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
