"""Sandboxes as instances of Apptainer (or Singularity), for machines where nobody may run Docker.

Each sandbox is one instance: its own pid, ipc and mount namespaces, nothing of the host mounted but what was
asked for, changes kept in an overlay folder. Needs no daemon and, where user namespaces are allowed, no root.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo
from hermes_sandbox.backends import boot, process_table
from hermes_sandbox.backends.client_process import ClientProcess, run_program
from hermes_sandbox.backends.singularity_image import image_source, local_image
from hermes_sandbox.cgroups import oom_kills
from hermes_sandbox.errors import ImageError, SandboxGone, SandboxStartError, Unavailable, Unsupported
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.owned_folders import (
    OwnedFolder,
    base_folder,
    find_owned_folder,
    make_owned_folder,
    owned_folders,
    record_owned_folder,
    remove_owned_folder,
)
from hermes_sandbox.ownership import owner_labels
from hermes_sandbox.spec import Allow, NamedNetwork, SandboxSpec, Snapshot

CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
    "SYS_CHROOT",
)
"""What root inside may do, where root started the instance: enough for package managers and for changing users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the singularity backend.

    Attributes:
        binary: The program; `apptainer`, else `singularity`, from the PATH when None.
        changes: Where changes to the file system go: "overlay", a folder on this machine's disk, or "tmpfs",
            memory, which apptainer limits to 64 MiB unless its administrator allows more.
        folder: Where overlays live; a private part of the temporary folder when None. An overlay cannot lie on
            another overlay file system (such as a container's root).
        cache: Where converted images are kept; `~/.cache/hermes-sandbox/images` when None.
        start_timeout: Seconds for an instance to start.
        build_timeout: Seconds to convert an image.
    """

    binary: str | None = None
    changes: Literal["overlay", "tmpfs"] = "overlay"
    folder: str | Path | None = None
    cache: str | Path | None = None
    start_timeout: float = 120.0
    build_timeout: float = 1800.0


class SingularityBackend:
    """Makes sandboxes as instances of Apptainer on this machine."""

    name = "singularity"
    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._program = self.options.binary or shutil.which("apptainer") or shutil.which("singularity")

    async def preflight(self) -> Report:
        """Ask the program for its version."""
        try:
            code, out, err = await run_program([self._binary(), "--version"], timeout=30)
        except Unavailable as error:
            return Report(False, "neither apptainer nor singularity was found", str(error))
        if code:
            return Report(False, err.decode(errors="replace").strip()[-500:], "reinstall apptainer")
        notes = () if os.geteuid() == 0 else ("not root: limits need delegated cgroups",)
        return Report(True, out.decode(errors="replace").strip(), notes=notes)

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Start an instance of the image, converted before where it is not a local one."""
        unenforced = _unenforced(spec)
        limits = _limits(spec)
        binary = self._binary()
        snapshot = None
        if isinstance(spec.image, Snapshot) and spec.image.backend == self.name:
            snapshot = Path(spec.image.reference)
            try:
                image = Path(await asyncio.to_thread((snapshot / "image").read_text))
            except OSError as error:
                raise ImageError(f"there is no snapshot {snapshot}: it was deleted or reaped") from error
        else:
            image = await local_image(
                binary, await image_source(spec.image), self._cache(), self.options.build_timeout
            )
        base = await asyncio.to_thread(self._base)
        data = {"image": str(image), "workdir": spec.workdir, "env": dict(spec.env), "user": spec.user}
        folder = await asyncio.to_thread(make_owned_folder, base, labels, data=data)
        try:
            await self._fill(folder, snapshot)
            options = _start_options(spec, folder, self.options.changes)
            argv = [binary, "-q", "instance", "start", *options, *limits]
            name = _instance(folder.id)
            await self._start([*argv, str(image), name], image, bool(limits))
            folder = replace(folder, data={**data, "started": True})
            await asyncio.to_thread(record_owned_folder, folder)
            return await self._machine(folder, unenforced)
        except BaseException:
            await uncancelled(self._remove(folder.id, 0))
            raise

    async def _start(self, argv: list[str], image: Path, limited: bool) -> None:
        starting = asyncio.ensure_future(run_program(argv, timeout=self.options.start_timeout))
        try:
            code, out, err = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait(
                {starting}
            )  # killed half-way it might leave an instance that shows itself later
            raise
        if code:
            raise _start_error((err + out).decode(errors="replace").strip()[-2000:], image, limited)

    async def attach(self, id: str) -> Machine:
        """Find a running instance."""
        folder = await asyncio.to_thread(find_owned_folder, self._base(), id)
        if folder is None or await self._instance_pid(id) is None:
            raise SandboxGone(f"there is no running sandbox {id}")
        return await self._machine(folder, ())

    async def list(self, labels: Mapping[str, str]) -> list[SandboxInfo]:
        """Every sandbox with a record, and whether its instance runs."""
        folders = await asyncio.to_thread(lambda: list(owned_folders(self._base())))
        running = await self._instances() if folders else {}
        return [
            SandboxInfo(folder.id, self.name, folder.labels, _instance(folder.id) in running)
            for folder in folders
            if all(folder.labels.get(key) == value for key, value in labels.items())
        ]

    async def delete(self, id: str) -> None:
        """Kill the instance's first process, and with it everything inside; then remove its folder."""
        if not id.isalnum():
            return
        folder = await asyncio.to_thread(find_owned_folder, self._base(), id)
        await self._remove(id, STARTING if folder is not None and not folder.data.get("started") else 0)

    async def _remove(self, id: str, patience: float) -> None:
        """As `delete`; for `patience` seconds an instance may still be starting that somebody began who is dead."""
        pid = await self._instance_pid(id)
        while pid is None and patience > 0:
            await asyncio.sleep(0.2)
            patience -= 0.2
            pid = await self._instance_pid(id)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            for _ in range(50):
                if await self._instance_pid(id) is None:
                    break
                await asyncio.sleep(0.1)
            else:
                await run_program([self._binary(), "-q", "instance", "stop", "-F", _instance(id)], timeout=60)
        await asyncio.to_thread(remove_owned_folder, self._base(), id)
        await asyncio.to_thread(_remove_logs, id)

    def oom_kills(self, machine: Machine) -> int:
        """Read from its control group, which is not seen inside."""
        return oom_kills(machine.state["pid"])

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Run a program in the instance."""
        env = command.env if command.clean_env else {**machine.env, **command.env}
        plain = replace(
            command, cwd=command.cwd or machine.workdir, env=env, user=command.user or machine.user
        )
        script = boot.command_script(plain, machine.state["login"])
        process = await self._open(machine.id, "unset PROMPT_COMMAND PS1\n" + script)
        if not command.stdin:
            await process.close_stdin()
        return process

    async def snapshot(self, machine: Machine, labels: Mapping[str, str]) -> Snapshot:
        """Copy what changed since the image. Needs `changes="overlay"`."""
        if self.options.changes != "overlay":
            raise Unsupported("a snapshot needs changes='overlay': what is in memory cannot be saved")
        base = self._snapshots()
        await asyncio.to_thread(base.mkdir, parents=True, exist_ok=True)
        folder = await asyncio.to_thread(make_owned_folder, base, owner_labels())
        try:
            await _copy(self._base() / machine.id / "overlay" / "upper", folder.path / "upper")
            await asyncio.to_thread((folder.path / "image").write_text, machine.state["image"])
            await asyncio.to_thread(record_owned_folder, replace(folder, labels=labels))
        except BaseException:
            await uncancelled(asyncio.to_thread(remove_owned_folder, base, folder.id))
            raise
        return Snapshot(self.name, str(folder.path))

    async def forget(self, snapshot: Snapshot) -> None:
        """Remove a snapshot's folder."""
        folder = Path(snapshot.reference)
        if folder.parent != self._snapshots():
            raise ValueError(f"{folder} is no snapshot of this backend's cache")
        await asyncio.to_thread(remove_owned_folder, folder.parent, folder.name)

    async def leftovers(self) -> Sequence[SandboxInfo]:
        """Snapshots, and images that somebody began to convert."""
        return await asyncio.to_thread(
            lambda: [
                SandboxInfo(f"{kind}/{folder.id}", self.name, folder.labels, running=False)
                for kind in _LEFTOVERS
                for folder in owned_folders(self._cache() / kind)
            ]
        )

    async def remove_leftover(self, id: str) -> None:
        """Remove its folder, and what still writes there."""
        kind, _, name = id.partition("/")
        if kind in _LEFTOVERS:
            await process_table.end_inhabitants(f"{name}/", self._cache() / id)
            await asyncio.to_thread(remove_owned_folder, self._cache() / kind, name)

    def _snapshots(self) -> Path:
        return self._cache() / "snapshots"

    async def close(self) -> None:
        """Nothing is held open."""

    def _binary(self) -> str:
        if self._program is None:
            raise Unavailable("install apptainer (https://apptainer.org) or give its path as `binary`")
        return self._program

    def _base(self) -> Path:
        if self.options.folder is None:
            return base_folder(self.name)
        base = Path(self.options.folder)
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        return base

    def _cache(self) -> Path:
        return Path(self.options.cache or "~/.cache/hermes-sandbox/images").expanduser()

    async def _fill(self, folder: OwnedFolder, snapshot: Path | None) -> None:
        def make() -> None:
            (folder.path / "scratch").mkdir()
            (folder.path / "overlay" / "work").mkdir(parents=True)
            if snapshot is None:
                (folder.path / "overlay" / "upper").mkdir()

        await asyncio.to_thread(make)
        if snapshot is not None:
            await _copy(snapshot / "upper", folder.path / "overlay" / "upper")

    async def _machine(self, folder: OwnedFolder, unenforced: tuple[str, ...]) -> Machine:
        """Look around inside: the shell, the user; make the working folder."""
        data: dict[str, Any] = dict(folder.data)
        code, out, err = await self._script(folder.id, boot.look_around(data["workdir"] or "/"))
        if code:
            said = err.decode(errors="replace").strip()
            raise ImageError(f"{data['image']} cannot host a sandbox: {said}")
        shell, login, workdir = boot.seen(out)
        return Machine(
            id=folder.id,
            workdir=workdir,
            env=dict(data["env"]),
            user=data["user"],
            shell=shell,
            unenforced=unenforced,
            state={"login": login, "image": data["image"], "pid": await self._instance_pid(folder.id)},
        )

    async def _open(self, id: str, script: str) -> ClientProcess:
        nonce = secrets.token_hex(8)
        argv = [self._binary(), "-q", "exec", "--cleanenv", "--pwd", "/"]
        if os.geteuid() == 0:
            argv += ["--no-privs", "--add-caps", ",".join(f"CAP_{name}" for name in CAPABILITIES)]
        argv += [f"instance://{_instance(id)}", "/bin/sh", "-c", boot.READ_SCRIPT]
        process = await ClientProcess.start(argv)
        try:
            with suppress(BrokenPipeError):
                await process.write(boot.encoded(boot.opening(nonce, None) + script))
            await boot.await_opening(process, nonce, f"instance {_instance(id)}")
        except Unavailable as error:
            await process.close()
            if await self._instance_pid(id) is None:
                raise SandboxGone(f"the instance of sandbox {id} does not run any more") from error
            raise
        except BaseException:
            await process.close()
            raise
        process.kill = lambda pid, signal: self._kill(id, pid, signal)
        return process

    async def _script(self, id: str, script: str, timeout: float = 60.0) -> tuple[int | None, bytes, bytes]:
        process = await self._open(id, script)
        try:
            async with asyncio.timeout(timeout):
                await process.close_stdin()
                out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
                return await process.wait(), out, err
        finally:
            await process.close()

    async def _kill(self, id: str, pid: int, signal: int) -> None:
        await self._script(id, f"kill -{signal} {pid} 2>/dev/null; :")

    async def _instances(self) -> dict[str, int]:
        """Running instances of this user: process ids by name."""
        code, out, err = await run_program([self._binary(), "instance", "list", "--json"], timeout=60)
        if code:
            raise Unavailable(
                f"apptainer cannot list instances: {err.decode(errors='replace').strip()[-500:]}"
            )
        found: list[dict[str, Any]] = json.loads(out)["instances"] or []
        return {str(each["instance"]): int(each["pid"]) for each in found}

    async def _instance_pid(self, id: str) -> int | None:
        return (await self._instances()).get(_instance(id))


STARTING = 3.0
"""Seconds that an instance takes to start once its files are there."""

_LEFTOVERS = ("snapshots", "drafts")
"""Folders of the cache in which all that is made carries labels."""


def _instance(id: str) -> str:
    return f"hermes-{id}"


def _remove_logs(id: str) -> None:
    """Apptainer keeps an instance's logs for ever."""
    for program in ("apptainer", "singularity"):
        home = Path(os.environ.get(f"{program.upper()}_CONFIGDIR") or f"~/.{program}").expanduser()
        for log in (home / "instances" / "logs").glob(f"*/*/{_instance(id)}.*"):
            log.unlink(missing_ok=True)


def _unenforced(spec: SandboxSpec) -> tuple[str, ...]:
    lost: list[str] = []
    if spec.disk_mb is not None:
        lost.append("disk_mb")
    if isinstance(spec.network, Allow):
        lost.append("network")
    if isinstance(spec.gpus, int):
        lost.append("gpus")
    if lost and spec.strict:
        raise Unsupported(
            f"the singularity backend cannot enforce {', '.join(lost)} (gpus: only 'all'); "
            "leave them out or accept that with strict=False"
        )
    return tuple(lost)


def _start_options(spec: SandboxSpec, folder: OwnedFolder, changes: str) -> list[str]:
    given = [
        "--containall",
        "--cleanenv",
        "--no-home",
        "--no-privs",
        "--workdir",
        str(folder.path / "scratch"),
    ]
    given += ["--overlay", str(folder.path / "overlay")] if changes == "overlay" else ["--writable-tmpfs"]
    if spec.network == "none":
        given += ["--net", "--network", "none"]
    elif isinstance(spec.network, NamedNetwork):
        given += ["--net", "--network", spec.network.name]
    if spec.gpus:
        given.append("--nv")
    for mount in spec.mounts:
        if set(mount.source + mount.target) & set(":,"):
            raise Unsupported(f"apptainer cannot bind a path with a colon or comma: {mount.source}")
        given += ["--bind", f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}"]
    return given


def _limits(spec: SandboxSpec) -> list[str]:
    given: list[str] = []
    if spec.memory_mb:
        given += ["--memory", f"{spec.memory_mb}M"]
    if spec.cpus:
        given += ["--cpus", f"{spec.cpus:g}"]
    if spec.pids:
        given += ["--pids-limit", str(spec.pids)]
    return given


def _start_error(said: str, image: Path, limited: bool) -> Exception:
    if limited and "cgroup" in said:
        return Unsupported(
            f"this machine lets apptainer enforce no limits ({said}); leave cpus, memory_mb, pids out"
        )
    if ".singularity.d" in said or "startscript" in said or "exist in container" in said:
        remedy = f"convert it: apptainer build --sandbox NEW {image}"
        return ImageError(f"{image} is a bare root folder, which cannot be started as an instance; {remedy}")
    return SandboxStartError(f"apptainer did not start {image}: {said}")


async def _copy(source: Path, target: Path) -> None:
    """Copy a tree with owners, times, devices and extended attributes, which an overlay's meaning depends on."""
    code, _, err = await run_program(
        ["cp", "-a", "--reflink=auto", "-T", str(source), str(target)], timeout=3600
    )
    if code:
        raise SandboxStartError(f"cannot copy {source}: {err.decode(errors='replace').strip()[-500:]}")
