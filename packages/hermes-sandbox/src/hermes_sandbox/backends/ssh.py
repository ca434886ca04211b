"""Sandboxes as folders on any host that runs OpenSSH, over one connection each.

Nothing is isolated from the host there: commands run as the user who logs in. What a sandbox gives is its own
folder, the exact exec contract, and the certainty that folder and processes go away.
"""

import json
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo
from hermes_sandbox.backends import ssh_scripts as scripts
from hermes_sandbox.backends.boot import command_script
from hermes_sandbox.backends.ssh_connection import Options, SshHost
from hermes_sandbox.errors import AuthError, SandboxGone, SandboxStartError, Unavailable, Unsupported
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.spec import SandboxSpec

__all__ = ["Options", "SshBackend"]

VARIABLE = "HERMES_SANDBOX"
"""In the environment of every process of a sandbox, with its id: how leftovers are found on the host."""


class SshBackend:
    """Makes sandboxes on one host. A lost connection is made again when it is next needed."""

    name = "ssh"
    Options = Options

    def __init__(self, options: Options) -> None:
        self.options = options
        self._host = SshHost(options)

    async def preflight(self) -> Report:
        """Log in and look for what a sandbox needs."""
        try:
            code, out, err = await self._host.script(
                "command -v tar >/dev/null && bash --version && uname -srm"
            )
        except (AuthError, Unavailable) as error:
            return Report(False, str(error))
        if code:
            reason = err.decode(errors="replace").strip()
            return Report(
                False, f"{self.options.host} lacks tar or bash {reason}".strip(), "install them there"
            )
        return Report(True, f"{self.options.host}: {out.decode(errors='replace').splitlines()[-1]}")

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Make a folder with its record of labels."""
        unenforced = _unenforced(spec)
        id = secrets.token_hex(6)
        record = json.dumps(
            {
                "labels": dict(labels),
                "data": {"workdir": spec.workdir, "env": dict(spec.env), "user": spec.user},
            }
        )
        try:
            code, out, err = await self._host.script(
                scripts.CREATE
                % {
                    **self._names(id),
                    "record": shlex.quote(record),
                    "workdir": shlex.quote(spec.workdir or ""),
                }
            )
            if code:
                raise SandboxStartError(f"{self.options.host}: {err.decode(errors='replace').strip()}")
            return self._machine(id, out, spec.workdir, spec.env, spec.user, unenforced)
        except BaseException:
            await uncancelled(self._discard(id))
            raise

    async def attach(self, id: str) -> Machine:
        """Find a sandbox's folder again."""
        code, out, _ = await self._host.script(scripts.FIND % self._names(id))
        if code:
            raise SandboxGone(f"{self.options.host} has no sandbox {id}")
        data: dict[str, Any] = json.loads(out.split(b"\0")[3])["data"]
        return self._machine(id, out, data["workdir"], data["env"], data["user"], ())

    async def list(self, labels: Mapping[str, str]) -> list[SandboxInfo]:
        """Read the records of every sandbox in the folder."""
        _, out, _ = await self._host.script(scripts.LIST % self._names(""))
        fields = out.split(b"\0")[:-1]
        found: list[SandboxInfo] = []
        for id, record in zip(fields[::2], fields[1::2], strict=False):
            try:
                has = {str(key): str(value) for key, value in json.loads(record)["labels"].items()}
            except (ValueError, KeyError, AttributeError):
                continue  # not written by this package
            if all(has.get(key) == value for key, value in labels.items()):
                found.append(SandboxInfo(id.decode(errors="replace"), self.name, has))
        return found

    async def delete(self, id: str) -> None:
        """Kill what runs with the sandbox's mark in its environment, and remove the folder."""
        code, _, err = await self._host.script(scripts.DELETE % self._names(id))
        if code:
            raise Unavailable(
                f"{self.options.host}: cannot remove {id}: {err.decode(errors='replace').strip()[-500:]}"
            )

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Run a program on the host over its own channel of the one connection."""
        env = {VARIABLE: machine.id} | dict(command.env)
        if not command.clean_env:
            env = dict(machine.env) | env
        plain = replace(
            command, cwd=command.cwd or machine.workdir, env=env, user=command.user or machine.user
        )
        process = await self._host.open(
            command_script(plain, machine.state["login"]), machine.state["folder"]
        )
        if not command.stdin:
            await process.close_stdin()
        return process

    async def close(self) -> None:
        """Close the connection."""
        await self._host.close()

    async def _discard(self, id: str) -> None:
        try:
            await self.delete(id)
        except (Unavailable, AuthError):
            return  # out of reach: its record names a dead owner or a deadline, for the next reap

    def _machine(
        self,
        id: str,
        out: bytes,
        workdir: str | None,
        env: Mapping[str, str],
        user: str | None,
        unenforced: tuple[str, ...],
    ) -> Machine:
        base, shell, login = (field.decode("utf-8", "surrogateescape") for field in out.split(b"\0")[:3])
        folder = f"{base}/{id}"
        root = f"{folder}/root"
        return Machine(
            id=id,
            workdir=root + (workdir or ""),
            env={VARIABLE: id, "HOME": root, "TMPDIR": f"{folder}/tmp", "TASK_ROOT": root} | dict(env),
            user=user,
            root=root,
            shell=shell,
            unenforced=unenforced,
            state={"folder": root, "login": login},
        )

    def _names(self, id: str) -> dict[str, str]:
        if id and not id.isalnum():
            raise SandboxGone(f"{id!r} is no sandbox's id")
        return {"base": shlex.quote(self.options.folder or ""), "id": id, "variable": VARIABLE}


def _unenforced(spec: SandboxSpec) -> tuple[str, ...]:
    """What an SSH host cannot give; an error when the spec is strict."""
    wanted = {
        "image": spec.image,
        "cpus": spec.cpus,
        "memory_mb": spec.memory_mb,
        "disk_mb": spec.disk_mb,
        "pids": spec.pids,
        "gpus": spec.gpus,
        "mounts": tuple(spec.mounts) or None,
        "network": None if spec.network == "open" else spec.network,
    }
    lost = tuple(name for name, value in wanted.items() if value is not None)
    if lost and spec.strict:
        raise Unsupported(
            f"the ssh backend runs commands on the host as it is and cannot enforce {', '.join(lost)}; "
            "leave them out, use another backend, or accept that with strict=False"
        )
    return lost
