"""What the Docker daemon's refusals mean here."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import aiohttp
from aiodocker.exceptions import DockerError

from hermes_sandbox.backends.wording import Words
from hermes_sandbox.errors import (
    AuthError,
    ImageError,
    QuotaError,
    SandboxError,
    SandboxGone,
    SandboxStartError,
    Unavailable,
)
from hermes_sandbox.resident import NEEDS_BASH

_LIMITS = {
    "disk_mb": ("storage-opt",),
    "gpus": ("could not select device driver", "nvidia-container"),
    "cpus": ("range of cpus", "cpu cfs scheduler", "cpu.cfs_quota", "cpu.max"),
    "memory_mb": ("minimum memory limit", "memory.limit_in_bytes", "memory.max"),
    "pids": ("pids.max",),
}
"""What a daemon that cannot enforce a limit says, when the container is created or started."""

REMEDIES = {
    "disk_mb": "; it takes overlay2 on xfs with pquota, btrfs or zfs",
    "gpus": "; it takes a GPU, its driver and the NVIDIA Container Toolkit",
}

_STARTING: Words = (
    (
        ("invalid reference format",),
        ImageError,
        "a reference is like registry.example/name:tag, in lower case",
    ),
    (("network ",), SandboxStartError, "`docker network ls` lists those that are there"),
    (("invalid mount", "bind source"), SandboxStartError, "both paths are absolute, and the source is there"),
    (("find user", "find group"), SandboxStartError, "give a user that the image has, or a number"),
)
"""What a daemon says of a spec that it cannot start."""

REMEDY = "is the daemon running, may this user reach it, is DOCKER_HOST right?"


@contextmanager
def docker_errors(what: str, *, starting: bool = False) -> Generator[None]:
    """Raise this package's errors for those of aiodocker and aiohttp.

    Args:
        what: What was being done, for the message.
        starting: A sandbox is being made: a missing thing is then a `SandboxStartError`, not `SandboxGone`.
    """
    try:
        yield
    except DockerError as error:
        raise _translated(what, error, starting) from error
    except (OSError, RuntimeError, aiohttp.ClientError) as error:
        if isinstance(error, SandboxError):
            raise
        raise Unavailable(f"{what}: the Docker daemon does not answer ({error}); {REMEDY}") from error


def refused_limit(error: DockerError) -> str | None:
    """The field of the spec that the daemon cannot enforce, if that is what it complains of."""
    said = error.message.lower()
    return next((field for field, words in _LIMITS.items() if any(word in said for word in words)), None)


def _translated(what: str, error: DockerError, starting: bool) -> SandboxError:
    message = f"{what}: {error.message}"
    text = error.message.lower()
    if error.status == 900:
        return Unavailable(f"{message}; {REMEDY}")
    if error.status in (401, 403) or "unauthorized" in text or "authentication required" in text:
        return AuthError(f"{message}; run `docker login`")
    if "no space left" in text or "address pools have been fully subnetted" in text:
        return QuotaError(message)
    if not starting and (error.status == 404 or "is not running" in text or "is paused" in text):
        return SandboxGone(f"{message}; create another sandbox")
    if starting and ('"bash"' in text or "/bash" in text) and ("not found" in text or "no such file" in text):
        return ImageError(f"{message}; {NEEDS_BASH}")
    if not starting:
        return SandboxError(message)
    for words, kind, remedy in _STARTING:
        if any(word in text for word in words):
            return kind(f"{message}; {remedy}")
    return SandboxStartError(message)
