"""Sandboxes as Docker containers.

The control plane is aiodocker: measured against the `docker` package on threads it costs less for each call,
needs no thread for each stream, and closes one direction of a stream, as standard input needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import posixpath
import secrets
import tarfile
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import aiodocker
from aiodocker.exceptions import DockerError

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo
from hermes_sandbox.backends.docker_config import Options, container_config
from hermes_sandbox.backends.docker_errors import REMEDIES, docker_errors, refused_limit
from hermes_sandbox.backends.docker_images import build_image, resolve_image
from hermes_sandbox.backends.docker_process import DockerProcess
from hermes_sandbox.errors import ImageError, SandboxGone, SandboxStartError, Unavailable, Unsupported
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.gate import slot
from hermes_sandbox.oneshot import collect
from hermes_sandbox.ownership import DEADLINE, OWNER
from hermes_sandbox.programs import ascii_word, is_text, program_argv, with_env
from hermes_sandbox.resident import NEEDS_BASH
from hermes_sandbox.spec import Allow, Dockerfile, SandboxSpec, Snapshot

SNAPSHOTS = "hermes-sandbox-snapshot"
"""The name of the images of snapshots."""
SNAPSHOT = "hermes.snapshot"
_MADE_FOR = """
if [ "$(stat -c %u -- "$1")" = 0 ] && ! [ /.dockerenv -nt "$1" ] && [ -z "$(ls -A -- "$1")" ]; then id -u; id -g; fi
"""
"""Tells the user's numbers, for an empty folder of root that is no older than the container itself."""
LONGEST_REQUEST = 60.0
EVENTS_REMEMBERED = 256
"""By a daemon, whatever they are about."""


class DockerBackend:
    """Runs sandboxes as containers of a Docker daemon."""

    name = "docker"
    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._client: aiodocker.Docker | None = None
        self._closed = False

    def _docker(self) -> Any:  # aiodocker's own annotations are incomplete
        if self._closed:
            raise SandboxGone("the sandbox was closed; create another")
        if self._client is None:
            try:
                self._client = _connect(self.options.host)
            except (ValueError, OSError, RuntimeError) as error:
                raise Unavailable(f"no Docker daemon was found: {error}") from error
        return self._client

    async def preflight(self) -> Report:
        """Ask the daemon for its version and what limits it enforces."""
        try:
            with docker_errors("asking for the version"):
                async with asyncio.timeout(20):
                    version = await self._docker().version()
                    info = await self._docker().system.info()
        except (Unavailable, TimeoutError) as error:
            remedy = "install and start Docker (`apt install docker.io`), or set DOCKER_HOST"
            return Report(False, str(error) or "the daemon does not answer", remedy)
        checks = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processor time"}
        notes = tuple(f"{name} limits are not enforced" for key, name in checks.items() if not info.get(key))
        detail = f"Docker {version.get('Version')}, API {version.get('ApiVersion')}, cgroup v{info.get('CgroupVersion', 1)}"
        return Report(True, detail, notes=notes)

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Create a container under a name known beforehand, start it, and remove it on any error."""
        lost = list(self._unsupported(spec))
        name = f"hermes-{secrets.token_hex(8)}"
        with docker_errors("creating a container", starting=True):
            client = self._docker()
            image = await resolve_image(client, spec.image, self.options.pull)
            try:
                async with slot("docker-start", self.options.starts):
                    await self._start(client, spec, image, labels, name, lost)
                machine = await self.attach(name)
                if spec.workdir and machine.user:
                    await self._hand_over_workdir(machine, spec)
            except BaseException as error:
                await uncancelled(self._discard(name))
                if isinstance(error, SandboxGone):
                    raise ImageError(f"the container ended at once ({error}); {NEEDS_BASH}") from error
                raise
        machine.unenforced = tuple(lost)
        return machine

    def _unsupported(self, spec: SandboxSpec) -> Sequence[str]:
        if isinstance(spec.network, Allow):
            if spec.strict:
                raise Unsupported("Docker cannot restrict a network to hosts; use 'none' or a NamedNetwork")
            return ["network"]
        return []

    async def _start(
        self,
        client: Any,
        spec: SandboxSpec,
        image: str,
        labels: Mapping[str, str],
        name: str,
        lost: list[str],
    ) -> None:
        """Create and start the container; without the limits that the daemon refuses, where that is accepted."""
        while True:
            kept = replace(spec, **dict.fromkeys(lost))
            config = container_config(kept, image, labels, self.options)
            try:
                await _to_its_end(client.containers.create(config, name=name))
                return await _to_its_end(client.containers.container(name).start())
            except DockerError as error:
                field = refused_limit(error)
                if field is None or getattr(kept, field) is None:
                    raise
                if spec.strict:
                    raise Unsupported(
                        f"this daemon cannot enforce {field}={getattr(spec, field)!r} ({error.message})"
                        f"{REMEDIES.get(field, '')}; strict=False goes without"
                    ) from error
                lost.append(field)
            await self.delete(name)

    async def _hand_over_workdir(self, machine: Machine, spec: SandboxSpec) -> None:
        """Give the working folder to the user if the daemon made it, which does so as root."""
        if any(f"{machine.workdir}/".startswith(f"{mount.target.rstrip('/')}/") for mount in spec.mounts):
            return
        argv = program_argv(machine.shell, _MADE_FOR, (machine.workdir,))
        _, ids, _ = await collect(await self._execute(machine, Command(argv, cwd="/")))
        if ids:
            above, name = posixpath.split(machine.workdir.rstrip("/"))
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w") as tar:
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o755, time.time()
                folder.uid, folder.gid = map(int, ids.split())
                tar.addfile(folder)
            await self._docker().containers.container(machine.id).put_archive(above, archive.getvalue())

    async def _discard(self, name: str) -> None:
        """Remove what a failed creation left, also when the daemon was still at it."""
        for pause in (0, 0.2, 1):
            await asyncio.sleep(pause)
            with contextlib.suppress(SandboxGone, Unavailable, SandboxStartError):
                await self.delete(name)

    async def attach(self, id: str) -> Machine:
        """Find a running container."""
        with docker_errors(f"looking for container {id}"):
            found = await self._docker().containers.container(id).show()
        state, config = found["State"], found["Config"]
        if not state["Running"]:
            how = f"exit code {state['ExitCode']}" + (", out of memory" if state["OOMKilled"] else "")
            gone = SandboxGone(
                f"the container {id} has ended ({state['Status']}, {how}); create another sandbox"
            )
            gone.ended_inside = await self._ended_by_itself(found["Id"], state)
            raise gone
        env = dict(entry.partition("=")[::2] for entry in config["Env"] or ())
        return Machine(
            id=found["Name"].lstrip("/"),
            workdir=config["WorkingDir"] or "/",
            env=env,
            user=config["User"] or None,
            shell="bash",
        )

    async def _ended_by_itself(self, id: str, state: Mapping[str, Any]) -> bool:
        """Whether nobody outside stopped the container: no `docker kill` or `stop`, and no restart of the daemon.

        The daemon remembers its last events, and none from before its start.
        """
        if state["Status"] != "exited" or state["OOMKilled"]:
            return state["Status"] == "exited"
        with docker_errors(f"asking how container {id} has ended"):
            now = datetime.fromisoformat((await self._docker().system.info())["SystemTime"]).timestamp()
            span = {"since": "0", "until": f"{now:.6f}"}
            async with self._docker()._query("events", params=span) as response:
                events = [json.loads(line) async for line in response.content]
        seen = {event["Action"] for event in events if event["Actor"]["ID"] == id}
        return "kill" not in seen and ("die" in seen or len(events) >= EVENTS_REMEMBERED)

    async def list(self, labels: Mapping[str, str]) -> Sequence[SandboxInfo]:
        """The containers that this package created."""
        wanted = [OWNER, *(f"{key}={value}" for key, value in labels.items())]
        with docker_errors("listing containers"):
            found = await self._docker().containers.list(all=True, filters={"label": wanted})
        return [
            SandboxInfo(
                each["Names"][0].lstrip("/"), self.name, each["Labels"] or {}, each["State"] == "running"
            )
            for each in found
        ]

    async def delete(self, id: str) -> None:
        """Remove the container and its anonymous volumes."""
        with docker_errors(f"removing container {id}"):
            for pause in (0.1, 0.2, 0.5, 1, 2, 5, 0):
                try:
                    await self._docker().containers.container(id).delete(force=True, v=True)
                except DockerError as error:
                    if error.status == 404:
                        return
                    if error.status not in (409, 500) or not pause:
                        raise
                    await asyncio.sleep(pause)  # somebody else is removing it
                else:
                    return

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """`docker exec`."""
        try:
            return await self._execute(machine, command)
        except SandboxGone:
            await self.attach(machine.id)  # which raises it with how the container ended
            raise

    async def _execute(self, machine: Machine, command: Command) -> DockerProcess:
        argv, env = command.argv, {} if command.clean_env else dict(command.env)
        workdir = command.cwd or machine.workdir
        if command.clean_env:
            argv = ("/usr/bin/env", "-i", *(f"{key}={value}" for key, value in command.env.items()), *argv)
        if not all(map(is_text, (*argv, *env.values(), workdir))):
            argv = (machine.shell, "--norc", "--noprofile", "-c", _in_ascii(workdir, env, argv))
            env, workdir = {}, "/"
        with docker_errors(f"starting a process in container {machine.id}"):
            execution = (
                await self._docker()
                .containers.container(machine.id)
                .exec(
                    argv,
                    stdin=True,
                    user=command.user or machine.user or "",
                    environment=env,
                    workdir=workdir,
                )
            )
            stream = execution.start(detach=False)
            try:
                await _to_its_end(stream.__aenter__())
            except BaseException:
                await uncancelled(stream.close())
                raise
        return DockerProcess(execution, stream)

    async def build(self, dockerfile: Dockerfile) -> str:
        """Build an image, or find the one built from an equal context."""
        with docker_errors(f"building {dockerfile.context}", starting=True):
            return await build_image(self._docker(), dockerfile)

    async def snapshot(self, machine: Machine, labels: Mapping[str, str]) -> Snapshot:
        """`docker commit`: the container's file system as an image, without mounts.

        A container of the image inherits its labels, so it has its owner's under names of its own.
        """
        changes = {
            OWNER: "",
            DEADLINE: "",
            **{f"{SNAPSHOT}.{key}": labels.get(key, "") for key in (OWNER, DEADLINE)},
        }
        with docker_errors(f"saving container {machine.id}"):
            saved = (
                await self._docker()
                .containers.container(machine.id)
                .commit(
                    repository=SNAPSHOTS,
                    tag=secrets.token_hex(8),
                    changes=[f'LABEL {key}="{value}"' for key, value in changes.items()],
                )
            )
        return Snapshot(self.name, saved["Id"])

    async def forget(self, snapshot: Snapshot) -> None:
        """Remove a snapshot's image."""
        await self._remove_image(snapshot.reference, force=True)

    async def _remove_image(self, reference: str, *, force: bool) -> None:
        with docker_errors(f"removing snapshot {reference}"):
            try:
                await self._docker().images.delete(reference, force=force)
            except DockerError as error:
                if error.status != 404:
                    raise

    async def leftovers(self) -> Sequence[SandboxInfo]:
        """The snapshots, by their tags."""
        with docker_errors("listing images"):
            found = await self._docker().images.list(filters={"reference": [f"{SNAPSHOTS}:*"]})
        return [
            SandboxInfo(tag, self.name, _snapshot_labels(image), running=False)
            for image in found
            for tag in image["RepoTags"] or ()
            if tag.startswith(f"{SNAPSHOTS}:")
        ]

    async def remove_leftover(self, id: str) -> None:
        """Remove a snapshot's tag, and with its last one the image; not while a container is one of it."""
        await self._remove_image(id, force=False)

    async def put_archive(self, machine: Machine, folder: str, tar: AsyncIterator[bytes]) -> None:
        """Unpack through the daemon, for images without tar. It does not see tmpfs mounts."""
        with docker_errors(f"copying into container {machine.id}"):
            await self._docker().containers.container(machine.id).put_archive(folder, tar)

    async def get_archive(self, machine: Machine, path: str) -> AsyncIterator[bytes]:
        """Pack through the daemon."""
        with docker_errors(f"copying from container {machine.id}"):
            async with self._docker()._query(
                f"containers/{machine.id}/archive", params={"path": path}, timeout=None
            ) as response:
                async for chunk in response.content.iter_chunked(1 << 18):
                    yield chunk

    async def close(self) -> None:
        """Close the connections to the daemon."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _in_ascii(workdir: str, env: Mapping[str, str], argv: Sequence[str]) -> str:
    """A script that runs a command. The daemon speaks JSON: bytes that are no UTF-8 would arrive as question marks."""
    env, argv = with_env(env, argv)
    lines = [f"cd -- {ascii_word(workdir)} || exit 126"]
    lines += [f"export {name}={ascii_word(value)}" for name, value in env.items()]
    return "\n".join([*lines, f"exec -- {' '.join(map(ascii_word, argv))}"])


async def _to_its_end(request: Coroutine[Any, Any, object]) -> None:
    """Wait for the daemon's answer also when cancelled: what it was asked for it does, and only then it can be undone."""
    task = asyncio.ensure_future(request)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=LONGEST_REQUEST)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _snapshot_labels(image: Any) -> dict[str, str]:
    labels: dict[str, str] = image["Labels"] or {}
    return {key: labels.get(f"{SNAPSHOT}.{key}", "") for key in (OWNER, DEADLINE)}


def _connect(host: str | None) -> aiodocker.Docker:
    """A client without aiohttp's limit of 100 connections: every open process holds one."""
    client = aiodocker.Docker(url=host)
    client.connector._limit = 0  # pyright: ignore[reportPrivateUsage]
    return client
