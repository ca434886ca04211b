"""A `SandboxSpec` in the words of Modal's SDK."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import modal

from hermes_sandbox.backends.creation import START
from hermes_sandbox.errors import ImageError, Unsupported
from hermes_sandbox.spec import Allow, Dockerfile, NamedNetwork, SandboxSpec, Snapshot

LONGEST_LIFE = 86_400
"""Seconds after which Modal ends any sandbox."""

sdk: Any = modal  # its type stubs are incomplete


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the modal backend.

    Attributes:
        app: The Modal app that sandboxes belong to; made when missing.
        environment: The Modal environment; the account's default when None.
        token_id: The account's token; from the environment or `~/.modal.toml` when None.
        token_secret: Its secret.
        region: Region or regions to run in.
        gpu: The kind of GPU that `SandboxSpec.gpus` counts, such as "A100".
        secrets: Names of Modal secrets whose variables commands see.
        registry_secret: Name of the Modal secret that opens a private registry.
        creations: How many sandboxes are created at once.
        start_timeout: Seconds for one creation, waiting for capacity included.
    """

    app: str = "hermes-sandbox"
    environment: str | None = None
    token_id: str | None = field(default=None, repr=False)
    token_secret: str | None = field(default=None, repr=False)
    region: str | Sequence[str] | None = None
    gpu: str | None = None
    secrets: Sequence[str] = ()
    registry_secret: str | None = None
    creations: int = 8
    start_timeout: float = 1200.0


def sdk_image(spec: SandboxSpec, options: Options) -> Any:
    """The SDK's image for a spec; nothing is built yet."""
    image, secret = spec.image, None
    if options.registry_secret:
        secret = sdk.Secret.from_name(options.registry_secret)
    if isinstance(image, Snapshot) and image.backend == "modal":
        return sdk.Image.from_id(image.reference)
    if isinstance(image, Dockerfile):
        if image.target:
            raise Unsupported("Modal builds a Dockerfile to its last stage; leave `target` out")
        path = image.context / image.dockerfile
        return sdk.Image.from_dockerfile(
            path, context_dir=image.context, build_args=dict(image.args), registry_secret=secret
        )
    if isinstance(image, str):
        return sdk.Image.from_registry(image, secret=secret)
    raise ImageError(f"Modal needs a registry reference, a Dockerfile or one of its snapshots, not {image!r}")


def sdk_arguments(spec: SandboxSpec, options: Options) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The SDK's arguments for a spec, and what is not enforced."""
    wanted = {"disk_mb": spec.disk_mb, "pids": spec.pids, "mounts": tuple(spec.mounts) or None}
    lost = [name for name, value in wanted.items() if value is not None]
    if isinstance(spec.network, NamedNetwork):
        lost.append("network")
    if spec.gpus is not None and (options.gpu is None or spec.gpus == "all"):
        lost.append("gpus")
    if lost and spec.strict:
        hint = " (gpus: a number, with the option gpu='A100' or another kind)" if "gpus" in lost else ""
        raise Unsupported(
            f"Modal cannot enforce {', '.join(lost)}{hint}; leave them out or give strict=False"
        )
    lifetime = math.ceil(min((spec.lifetime or LONGEST_LIFE) + START, LONGEST_LIFE))
    given: dict[str, Any] = {
        "timeout": lifetime,
        "idle_timeout": min(math.ceil(spec.idle), lifetime) if spec.idle else None,
        "env": dict(spec.env) or None,
        "region": options.region,
        "secrets": [sdk.Secret.from_name(name) for name in options.secrets],
    }
    if spec.cpus:
        given["cpu"] = (spec.cpus, spec.cpus)
    if spec.memory_mb:
        given["memory"] = (spec.memory_mb, spec.memory_mb)
    if spec.gpus and "gpus" not in lost:
        given["gpu"] = f"{options.gpu}:{spec.gpus}"
    if spec.network == "none":
        given["block_network"] = True
    elif isinstance(spec.network, Allow):
        blocks = [host for host in spec.network.hosts if "/" in host]
        given["outbound_cidr_allowlist"] = blocks or None
        given["outbound_domain_allowlist"] = [host for host in spec.network.hosts if "/" not in host] or None
    return given, tuple(lost)
