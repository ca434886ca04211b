"""A `SandboxSpec` in the words of Daytona's SDK."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import daytona

from hermes_sandbox.backends.creation import START
from hermes_sandbox.errors import ImageError, Unsupported
from hermes_sandbox.ownership import DEADLINE, OWNER
from hermes_sandbox.spec import Allow, Dockerfile, NamedNetwork, SandboxSpec, Snapshot

sdk: Any = daytona  # its types are incomplete

_LOCAL_ADD = re.compile(
    r"^\s*ADD\s+(?:--\S+\s+)*(?!--|https?://|git@|\S+\.git\b)\S", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the daytona backend.

    Attributes:
        api_key: The account's key; DAYTONA_API_KEY when None.
        api_url: The service; DAYTONA_API_URL, or Daytona's own, when None.
        target: The region; DAYTONA_TARGET when None.
        snapshot: Name of a Daytona snapshot to start from, where the spec has no image.
        auto_stop_minutes: Minutes without a sign of this process after which the service stops a sandbox, which deletes
            it; 0 for never. `SandboxSpec.idle`, in whole minutes, where that is given.
        creations: How many sandboxes are created at once.
        start_timeout: Seconds for one creation, building the image included.
    """

    api_key: str | None = field(default=None, repr=False)
    api_url: str | None = None
    target: str | None = None
    snapshot: str | None = None
    auto_stop_minutes: int = 0
    creations: int = 8
    start_timeout: float = 1200.0


def named_for(labels: Mapping[str, str]) -> str:
    """A new name for a snapshot, which has no labels: it holds the owner's, where there are any."""
    parts = ["hermes", secrets.token_hex(8)]
    if OWNER in labels:
        parts += [labels.get(DEADLINE, ""), labels[OWNER].replace("/", "_")]
    return ".".join(parts)


def owner_in(name: str) -> dict[str, str]:
    """The owner's labels in the name of a snapshot; none where it has no owner."""
    match name.split("."):
        case ["hermes", _, deadline, owner]:
            return {DEADLINE: deadline, OWNER: owner.replace("_", "/")}
        case _:
            return {}


def snapshot_name(spec: SandboxSpec, options: Options) -> str | None:
    """The Daytona snapshot that a spec starts from; None where it has an image to build or pull."""
    if isinstance(spec.image, Snapshot) and spec.image.backend == "daytona":
        return spec.image.reference
    return options.snapshot if spec.image is None else None


def not_enforced(spec: SandboxSpec) -> list[str]:
    """The fields that Daytona cannot enforce exactly."""
    lost = [name for name in ("pids", "mounts") if getattr(spec, name)]
    if isinstance(spec.network, NamedNetwork):
        lost.append("network")
    if spec.gpus == "all":
        lost.append("gpus")
    whole = {
        "cpus": spec.cpus or 0,
        "memory_mb": (spec.memory_mb or 0) / 1024,
        "disk_mb": (spec.disk_mb or 0) / 1024,
    }
    return lost + [name for name, value in whole.items() if value % 1]


def limits_differ(spec: SandboxSpec, snapshot: Any) -> list[str]:
    """The limits of a spec that a snapshot, which brings its own, was not made with."""
    wanted = {
        "cpus": (spec.cpus, snapshot.cpu),
        "memory_mb": (spec.memory_mb, snapshot.mem * 1024),
        "disk_mb": (spec.disk_mb, snapshot.disk * 1024),
        "gpus": (spec.gpus, snapshot.gpu),
    }
    return [name for name, (value, given) in wanted.items() if value is not None and value != given]


def refuse(spec: SandboxSpec, lost: list[str], why: str) -> tuple[str, ...]:
    """What is lost, where the spec allows for that.

    Raises:
        Unsupported: It does not.
    """
    if lost and spec.strict:
        raise Unsupported(f"Daytona cannot enforce {', '.join(lost)} ({why}), or give strict=False")
    return tuple(lost)


def sdk_parameters(spec: SandboxSpec, options: Options, labels: Mapping[str, str]) -> Any:
    """The SDK's parameters for a spec."""
    idle = math.ceil(spec.idle / 60) if spec.idle else 0
    given: dict[str, Any] = {
        "labels": dict(labels),
        "env_vars": dict(spec.env) or None,
        "auto_stop_interval": options.auto_stop_minutes or idle,
        "ephemeral": True,
    }
    if spec.lifetime:
        given["ttl_minutes"] = math.ceil((spec.lifetime + START) / 60)
    if spec.network == "none":
        given["network_block_all"] = True
    elif isinstance(spec.network, Allow):
        hosts = spec.network.hosts
        given["network_allow_list"] = ",".join(host for host in hosts if "/" in host) or None
        given["domain_allow_list"] = ",".join(host for host in hosts if "/" not in host) or None
    if name := snapshot_name(spec, options):
        return sdk.CreateSandboxFromSnapshotParams(snapshot=name, **given)
    resources = sdk.Resources(
        cpu=math.ceil(spec.cpus) if spec.cpus else None,
        memory=math.ceil(spec.memory_mb / 1024) if spec.memory_mb else None,
        disk=math.ceil(spec.disk_mb / 1024) if spec.disk_mb else None,
        gpu=spec.gpus if isinstance(spec.gpus, int) else None,
    )
    return sdk.CreateSandboxFromImageParams(image=_image(spec), resources=resources, **given)


def _image(spec: SandboxSpec) -> Any:
    if isinstance(spec.image, Dockerfile):
        if spec.image.args or spec.image.target:
            raise Unsupported("Daytona builds a Dockerfile without arguments to its last stage")
        file = spec.image.context / spec.image.dockerfile
        if not file.is_file():
            raise ImageError(f"there is no Dockerfile {file}")
        if _LOCAL_ADD.search(file.read_text(errors="replace")):
            raise Unsupported(f"Daytona's SDK sends what COPY names, not what ADD does; use COPY in {file}")
        return sdk.Image.from_dockerfile(file)
    if isinstance(spec.image, str):
        return spec.image
    raise ImageError(
        "Daytona needs a registry reference, a Dockerfile, one of its snapshots, or the option snapshot, not "
        f"{spec.image!r}"
    )
