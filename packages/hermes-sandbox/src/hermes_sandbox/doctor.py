"""Find out what works on this machine, by doing it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hermes_sandbox.errors import SandboxError
from hermes_sandbox.registry import create_sandbox, get_backend
from hermes_sandbox.spec import SandboxSpec

EXECS = 5


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found about one backend.

    Attributes:
        backend: Its name.
        ok: Whether a sandbox can be used.
        detail: Versions and addresses, or what is wrong.
        remedy: What to install or set, where it cannot.
        start_seconds: From the request to the first command's result; None when nothing was started.
        exec_seconds: The median of a few empty commands after that.
    """

    backend: str
    ok: bool
    detail: str
    remedy: str = ""
    start_seconds: float | None = None
    exec_seconds: float | None = None

    def __str__(self) -> str:
        latency = ""
        if self.start_seconds is not None and self.exec_seconds is not None:
            latency = f"start {self.start_seconds * 1000:.0f} ms, exec {self.exec_seconds * 1000:.1f} ms; "
        remedy = f"; remedy: {self.remedy}" if self.remedy else ""
        return f"{self.backend:12} {'ok' if self.ok else 'no':4} {latency}{self.detail}{remedy}"


async def diagnose(
    name: str, options: Mapping[str, Any], spec: SandboxSpec, *, start: bool = True, timeout: float = 120.0
) -> Diagnosis:
    """Look at a backend, and try a sandbox on it; never raises for what it finds.

    Args:
        name: The backend.
        options: Its options.
        spec: The sandbox to try; its image is left out where the backend takes none.
        start: Whether to try one at all.
        timeout: Seconds for everything.
    """
    try:
        async with asyncio.timeout(timeout):
            return await _diagnose(name, options, spec, start)
    except TimeoutError:
        return _failed(
            name, f"no answer within {timeout:g} s", "see whether it can be reached, or give --timeout"
        )
    except (SandboxError, TypeError, ValueError, OSError, ImportError) as error:
        return _failed(name, str(error) or type(error).__name__)


def _failed(name: str, said: str, remedy: str = "") -> Diagnosis:
    """What failed, with its remedy, which is the last part of the message where it is not apart."""
    if not remedy:
        detail, parted, last = said.rpartition("; ")
        said, remedy = (
            (detail, last) if parted else (said, f"see what the README of hermes-sandbox says of {name}")
        )
    return Diagnosis(name, False, said, remedy)


async def _diagnose(name: str, options: Mapping[str, Any], spec: SandboxSpec, start: bool) -> Diagnosis:
    backend = await asyncio.to_thread(get_backend, name, **options)
    try:
        report = await backend.preflight()
    finally:
        await backend.close()
    if not report.ok:
        return _failed(name, report.detail, report.remedy)
    if not start:
        return Diagnosis(name, True, report.detail)
    if name in ("local", "ssh"):
        spec = replace(spec, image=None)
    elif name == "singularity" and isinstance(spec.image, str) and ":" in spec.image:
        spec = replace(spec, image=f"docker://{spec.image.removeprefix('docker://')}")
    begun = time.monotonic()
    async with create_sandbox(name, spec, **options) as sandbox:
        await sandbox.exec("true", check=True)
        started = time.monotonic() - begun
        taken: list[float] = []
        for _ in range(EXECS):
            begun = time.monotonic()
            await sandbox.exec("true", check=True)
            taken.append(time.monotonic() - begun)
    notes = "".join(f" ({note})" for note in report.notes)
    return Diagnosis(name, True, report.detail + notes, "", started, sorted(taken)[EXECS // 2])
