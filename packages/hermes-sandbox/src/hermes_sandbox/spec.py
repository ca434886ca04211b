"""What a sandbox should be: image, resources, network, mounts, lifetime."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Literal, TypeAlias, cast


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """An image to build from a folder with a Dockerfile.

    Attributes:
        context: The folder sent to the builder.
        dockerfile: The file's name inside `context`.
        args: Build arguments.
        target: The stage to stop at, for a multi-stage file.
    """

    context: Path
    dockerfile: str = "Dockerfile"
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The saved state of a sandbox; give it as `SandboxSpec.image` to start another one from it.

    Attributes:
        backend: The name of the backend that made it, and that alone can use it.
        reference: The backend's own name for it (an image id, a path).
    """

    backend: str
    reference: str


Image: TypeAlias = "str | Dockerfile | Snapshot | Path"


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path made visible inside the sandbox.

    Attributes:
        source: The host's path, or the name of a volume where the backend has volumes.
        target: The absolute path inside.
        read_only: Whether writing inside is refused.
    """

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class Allow:
    """A network that reaches only these hosts (names or CIDR blocks)."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """An existing network of the backend (a Docker network), joined by name."""

    name: str


Network: TypeAlias = "Literal['open', 'none'] | Allow | NamedNetwork"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox should be. `None` leaves a field to the image or to the backend.

    Attributes:
        image: An image reference, a `Dockerfile`, a `Snapshot`, or a path (a `.sif` file or root folder).
        workdir: Where commands start; made when missing. Default: the image's.
        env: Environment variables added to the image's.
        user: Who commands run as. Default: the image's.
        cpus: How many processors, fractions allowed.
        memory_mb: Memory limit in MiB.
        disk_mb: Limit of the writable layer in MiB.
        pids: How many processes and threads at once.
        gpus: How many GPUs, or "all".
        network: "open", "none", `Allow(hosts)` or `NamedNetwork(name)`. Default: the backend's, which is open.
        mounts: Host paths made visible inside.
        labels: Your own labels, kept with the sandbox and found by `Backend.list`.
        lifetime: Seconds after which the sandbox is deleted whatever it does.
        idle: Seconds without a call after which it is deleted.
        strict: Whether a limit or policy the backend cannot enforce is `Unsupported` (True), or is accepted
            and recorded in `Sandbox.unenforced` (False).
    """

    image: Image | None = None
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    pids: int | None = None
    gpus: int | Literal["all"] | None = None
    network: Network | None = None
    mounts: Sequence[Mount] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    lifetime: float | None = None
    idle: float | None = None
    strict: bool = True

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.image), (str, Dockerfile, Snapshot, Path, NoneType)):
            raise TypeError(
                f"SandboxSpec.image is a reference, a Dockerfile, a Snapshot or a Path, not {self.image!r}"
            )
        for name in ("cpus", "memory_mb", "disk_mb", "pids", "lifetime", "idle"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"SandboxSpec.{name} must be positive, not {value!r}; None means no limit")
        if self.workdir is not None and not self.workdir.startswith("/"):
            raise ValueError(f"SandboxSpec.workdir must be an absolute path, not {self.workdir!r}")
        if isinstance(self.network, str) and self.network not in ("open", "none"):
            raise ValueError(
                f"SandboxSpec.network is 'open', 'none', Allow(hosts) or NamedNetwork(name), not {self.network!r}"
            )
        check_variables(self.env)

    def digest(self) -> str:
        """A short hash of every field, equal for equal specs in any process."""
        return hashlib.sha256(json.dumps(_plain(self), sort_keys=True).encode()).hexdigest()[:16]


def check_variables(env: Mapping[str, str]) -> None:
    """Refuse what no environment can hold.

    Raises:
        ValueError: A name is empty or holds `=`, or there is a NUL byte.
        TypeError: Something is no text.
    """
    for key, value in cast("Mapping[object, object]", env).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"env maps names to text, not {key!r} to {value!r}: use str()")
        if not key or "=" in key or "\0" in key + value:
            raise ValueError(f"env has a name or value that no process can hold: {key!r}")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {"": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: _plain(item) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return str(value) if isinstance(value, Path) else value
