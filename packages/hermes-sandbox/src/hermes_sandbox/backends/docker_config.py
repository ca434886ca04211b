"""What the Docker daemon is told to create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_sandbox.backends.docker_images import Pull
from hermes_sandbox.errors import Unsupported
from hermes_sandbox.programs import is_text
from hermes_sandbox.spec import NamedNetwork, SandboxSpec

CAPABILITIES = (
    *(
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "NET_BIND_SERVICE",
        "SETGID",
        "SETUID",
        "SYS_CHROOT",
    ),
)
"""The capabilities of root in a sandbox: enough for package managers, servers and switching users. Of Docker's
own set AUDIT_WRITE, MKNOD, NET_RAW, SETFCAP and SETPCAP are dropped."""

DEFAULT_PIDS = 512

# Waits for ever without a process beside it and without any program but bash, under a name that `pkill bash` spares.
_WAIT = "printf hermes-sandbox >/proc/self/comm; trap 'exit 0' TERM INT; while :; do read -r _ <> <(:); done"
KEEP_ALIVE = ("bash", "--norc", "--noprofile", "-c", _WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the Docker backend.

    Attributes:
        host: The daemon's address (`unix:///…`, `tcp://…`). Default: DOCKER_HOST, the current context, the
            usual socket.
        pull: Pull images when missing, always, or never.
        cap_add: Capabilities beside `CAPABILITIES`.
        no_new_privileges: Whether programs with the setuid bit gain nothing.
        runtime: Another OCI runtime ("runsc", "nvidia").
        starts: How many sandboxes are created at once, among all processes of this user.
    """

    host: str | None = None
    pull: Pull = "missing"
    cap_add: Sequence[str] = ()
    no_new_privileges: bool = True
    runtime: str | None = None
    starts: int = 8


def container_config(
    spec: SandboxSpec, image: str, labels: Mapping[str, str], options: Options
) -> dict[str, Any]:
    """The body of `POST /containers/create`."""
    host: dict[str, Any] = {
        "Init": True,
        "CapDrop": ["ALL"],
        "CapAdd": [*CAPABILITIES, *options.cap_add],
        "SecurityOpt": ["no-new-privileges"] if options.no_new_privileges else [],
        "PidsLimit": spec.pids or DEFAULT_PIDS,
        "NetworkMode": _network(spec),
        "Mounts": [
            {
                "Type": "bind" if mount.source.startswith("/") else "volume",
                "Source": mount.source,
                "Target": mount.target,
                "ReadOnly": mount.read_only,
            }
            for mount in spec.mounts
        ],
    }
    if spec.memory_mb is not None:
        host["Memory"] = host["MemorySwap"] = spec.memory_mb << 20
    if spec.cpus is not None:
        host["NanoCpus"] = int(spec.cpus * 1e9)
    if spec.disk_mb is not None:
        host["StorageOpt"] = {"size": f"{spec.disk_mb}m"}
    if spec.gpus is not None:
        count = -1 if spec.gpus == "all" else spec.gpus
        host["DeviceRequests"] = [{"Count": count, "Capabilities": [["gpu"]]}]
    if options.runtime is not None:
        host["Runtime"] = options.runtime
    if not all(map(is_text, (*spec.env.values(), spec.workdir or ""))):
        raise Unsupported(
            "Docker keeps text alone, and `env` or `workdir` is no UTF-8; give it with exec or open_shell"
        )
    config: dict[str, Any] = {
        "Image": image,
        "Entrypoint": list(KEEP_ALIVE),
        "Cmd": [],
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": dict(labels),
        "Env": [f"{key}={value}" for key, value in spec.env.items()],
        "StopTimeout": 1,
        "HostConfig": host,
    }
    if spec.user is not None:
        config["User"] = spec.user
    if spec.workdir is not None:
        config["WorkingDir"] = spec.workdir
    return config


def _network(spec: SandboxSpec) -> str:
    if isinstance(spec.network, NamedNetwork):
        return spec.network.name
    return "none" if spec.network == "none" else "bridge"
