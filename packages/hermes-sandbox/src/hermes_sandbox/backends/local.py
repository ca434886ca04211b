"""Sandboxes on this machine: a folder and an environment of their own, or bubblewrap around them.

Without isolation commands run as the calling user and can reach whatever that user can. `isolation="bwrap"`
gives them a root folder, processes and, on request, a network of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo, Tree
from hermes_sandbox.backends import process_table
from hermes_sandbox.backends.bubblewrap import bwrap_argv
from hermes_sandbox.backends.local_process import FailedProcess, LocalProcess
from hermes_sandbox.errors import SandboxGone, SandboxStartError, Unsupported
from hermes_sandbox.owned_folders import (
    OwnedFolder,
    base_folder,
    find_owned_folder,
    make_owned_folder,
    owned_folders,
    remove_owned_folder,
)
from hermes_sandbox.spec import SandboxSpec

logger = logging.getLogger(__name__)

PASSED_ON = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME", "SHELL"),
    *(
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "PIP_CERT",
        "NODE_EXTRA_CA_CERTS",
    ),
)
"""The host's variables that commands get to see. Nothing else of the host's environment reaches them."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the local backend.

    Attributes:
        isolation: "none", or "bwrap" for a root, processes and network of its own.
        pass_env: Names of more host variables that commands may see.
        rlimits: Limits for every command by the letter of bash's `ulimit`: `{"v": 4_000_000}` is 4 GB of
            address space, "n" open files, "t" seconds of processor time, "f" KiB of file size.
        quiet: Do not warn that commands run without isolation.
    """

    isolation: Literal["none", "bwrap"] = "none"
    pass_env: Sequence[str] = ()
    rlimits: Mapping[str, int] = field(default_factory=dict[str, int])
    quiet: bool = False


_ATTACHED = "attached"
"""A file in a sandbox's folder: others than its maker may have started something in it."""


class LocalBackend:
    """Runs commands as child processes."""

    name = "local"
    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._unused: set[str] = set()
        """Sandboxes made here in which nothing was started, so that nothing in them can run."""
        for letter in self.options.rlimits:
            if len(letter) != 1 or not letter.isalpha():
                raise ValueError(f"rlimits are named by the letters of `ulimit`, not {letter!r}")

    async def preflight(self) -> Report:
        """Look for bash, and for bubblewrap where it is asked for."""
        if (bash := shutil.which("bash")) is None:
            return Report(False, "bash is not installed", "install bash")
        if self.options.isolation == "bwrap":
            try:
                return await self._try_bwrap()
            except SandboxStartError as error:
                return Report(
                    False, str(error), "install bubblewrap, and allow user namespaces or run as root"
                )
        return Report(True, f"{bash}, no isolation: commands run as the calling user")

    async def _try_bwrap(self) -> Report:
        bwrap = _bwrap()
        argv = (bwrap, "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "true")
        process = await LocalProcess.spawn(argv, cwd="/", env={"PATH": _PATH}, stdin=False)
        code, said = await process.wait(), await process.stderr.read()
        await process.close()
        if code:
            raise SandboxStartError(f"bwrap does not work here: {said.decode(errors='replace').strip()}")
        return Report(True, f"{bwrap}: own root, processes and network")

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Make the sandbox's folder."""
        unenforced = self._check(spec)
        if self.options.isolation == "none" and not self.options.quiet:
            _warn_once()
        base = base_folder("local")
        data = {"workdir": spec.workdir, "env": dict(spec.env), "user": spec.user, "lost": unenforced}
        data |= {"isolation": self.options.isolation, "network": spec.network}
        data |= {"mounts": [[mount.source, mount.target, mount.read_only] for mount in spec.mounts]}
        folder = await asyncio.to_thread(make_owned_folder, base, labels, data=data)
        try:
            machine = self._machine(folder)
            for path in (folder.path / "root", folder.path / "tmp", self._on_host(folder, machine.workdir)):
                path.mkdir(parents=True, exist_ok=True)
            if spec.user is not None:
                for path in (folder.path, folder.path / "root", folder.path / "tmp"):
                    shutil.chown(path, spec.user)
        except BaseException:
            await self.delete(folder.id)
            raise
        self._unused.add(folder.id)
        return machine

    def _check(self, spec: SandboxSpec) -> tuple[str, ...]:
        """What of the spec nothing here enforces.

        Raises:
            Unsupported: There is some, and the spec is strict.
        """
        fields = ["image", "cpus", "memory_mb", "disk_mb", "pids", "gpus"]
        isolated = self.options.isolation == "bwrap"
        lost = [name for name in fields if getattr(spec, name) is not None]
        if spec.network not in (None, "open") and not (isolated and spec.network == "none"):
            lost.append("network")
        if spec.mounts and not isolated:
            lost.append("mounts")
        if spec.user is not None and (os.getuid() != 0 or isolated):
            lost.append("user")
        if lost and spec.strict:
            raise Unsupported(
                f"the local backend with isolation={self.options.isolation!r} cannot enforce {', '.join(lost)}; "
                "use docker or singularity, or accept the loss with strict=False"
            )
        return tuple(lost)

    def _machine(self, folder: OwnedFolder) -> Machine:
        data = folder.data
        isolated = data["isolation"] == "bwrap"
        root = "" if isolated else str(folder.path / "root")
        workdir = root + (data["workdir"] or ("/work" if isolated else "")) or "/"
        env = {name: os.environ[name] for name in (*PASSED_ON, *self.options.pass_env) if name in os.environ}
        env.setdefault("PATH", _PATH)
        if isolated:
            env |= {"HOME": "/root", "TMPDIR": "/tmp"}
        else:
            env |= {"HOME": root, "TMPDIR": str(folder.path / "tmp"), "TASK_ROOT": root}
        env |= {str(key): str(value) for key, value in data["env"].items()}
        bash = "/bin/bash" if isolated else shutil.which("bash")
        if bash is None:
            raise SandboxStartError("bash is not installed; the local backend needs it")
        lost = tuple(data["lost"])
        return Machine(
            id=folder.id,
            workdir=workdir,
            env=env,
            user=None if "user" in lost else data["user"],
            root=root,
            resident=isolated,
            single=isolated,
            shell=bash,
            unenforced=lost,
            state=folder,
        )

    @staticmethod
    def _on_host(folder: OwnedFolder, path: str) -> Path:
        inside = folder.path / "root"
        return Path(path) if Path(path).is_relative_to(inside) else inside / path.lstrip("/")

    async def attach(self, id: str) -> Machine:
        """Find a sandbox's folder."""
        folder = find_owned_folder(base_folder("local"), id)
        if folder is None or not (folder.path / "root").is_dir():
            raise SandboxGone(f"the local sandbox {id} has no folder any more; create another")
        with contextlib.suppress(OSError):
            (folder.path / _ATTACHED).touch()
        return self._machine(folder)

    async def list(self, labels: Mapping[str, str]) -> Sequence[SandboxInfo]:
        """The sandboxes of this user on this machine."""
        return [
            SandboxInfo(folder.id, self.name, folder.labels)
            for folder in owned_folders(base_folder("local"))
            if labels.items() <= folder.labels.items()
        ]

    async def delete(self, id: str) -> None:
        """Kill what runs in the sandbox and remove its folder."""
        base = base_folder("local")
        if (folder := find_owned_folder(base, id)) is not None:
            with contextlib.suppress(OSError):  # so that nothing is started any more in what is being removed
                (folder.path / "root").rename(folder.path / "removed")
        if id not in self._unused or (base / id / _ATTACHED).exists():
            await process_table.end_inhabitants(f"{id}/", base / id)
        self._unused.discard(id)
        for attempt in range(3):
            try:
                await asyncio.to_thread(remove_owned_folder, base, id)
                break
            except OSError:  # something was still being written
                if attempt == 2:
                    raise
                await asyncio.sleep(0.1)

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Start a child process, within bubblewrap where the sandbox is isolated."""
        self._unused.discard(machine.id)
        folder: OwnedFolder = machine.state
        if not (folder.path / "root").is_dir():
            raise SandboxGone(f"the local sandbox {machine.id} has no folder any more; create another")
        env = dict(command.env) if command.clean_env else {**machine.env, **command.env}
        cwd, argv = command.cwd or machine.workdir, command.argv
        if self.options.rlimits:
            limits = "; ".join(f"ulimit -{letter} {value}" for letter, value in self.options.rlimits.items())
            argv = (machine.shell, "--norc", "--noprofile", "-c", f'{limits}; exec -- "$@"', "bash", *argv)
        user = command.user or machine.user
        if machine.single:
            if command.user is not None:
                raise Unsupported("commands in bubblewrap run as the user that started it")
            argv = bwrap_argv(_bwrap(), folder, cwd, env, argv)
            cwd, user = "/", None
        elif user is not None and os.getuid() != 0:
            raise Unsupported("only root can run local commands as another user")
        start = functools.partial(LocalProcess.spawn, cwd=cwd, env=env, stdin=command.stdin, user=user)
        try:
            try:
                return await start(argv)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
            # A script that does not say for whom, which bash takes for one of its own.
            path = shutil.which(argv[0], path=env.get("PATH", _PATH)) or argv[0]
            return await start((machine.shell, path, *argv[1:]))
        except KeyError:
            return FailedProcess(f"there is no user {user!r}", 126)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
                raise  # this process can start none
            return _failure(argv[0], cwd, error)

    async def signal_tree(self, machine: Machine, tree: Tree, signal: int) -> int:
        """Signal a command's processes from outside."""
        return process_table.signal_tree(tree, signal)

    async def close(self) -> None:
        """Nothing is held open."""


def _failure(program: str, cwd: str, error: OSError) -> FailedProcess:
    if not os.path.isdir(cwd):  # noqa: PTH112 - which raises nothing
        return FailedProcess(f"bash: line 1: cd: {cwd}: {error.strerror}", 126)
    code = 127 if isinstance(error, FileNotFoundError) or not program else 126
    return FailedProcess(
        f"bash: line 1: {program}: {'command not found' if code == 127 else error.strerror}", code
    )


def _bwrap() -> str:
    if (path := shutil.which("bwrap")) is None:
        raise SandboxStartError("bubblewrap is not installed (`apt install bubblewrap`)")
    return path


@functools.cache
def _warn_once() -> None:
    logger.warning(
        "local sandboxes without isolation run commands as this user, who can reach every file of yours; use "
        "isolation='bwrap' or the docker backend for code you do not trust (quiet=True silences this)"
    )
