"""Sandbox backends as a run needs them: known to work before the first trial, and clean of what dead runs left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_benchmarks.errors import UsageError

if TYPE_CHECKING:
    from hermes_sandbox import Backend, Report

PREFLIGHT_SECONDS = 60.0


async def check_backend(name: str, options: Mapping[str, Any]) -> None:
    """Ask a backend whether it can work.

    Raises:
        UsageError: It is unknown or cannot; with its reason and remedy.
    """
    report = await _preflight(await _backend(name, options))
    if not report.ok:
        remedy = f": {report.remedy}" if report.remedy else ""
        raise UsageError(f"the {name} backend does not work here ({report.detail}){remedy}")


async def reap_leftovers(name: str, options: Mapping[str, Any]) -> None:
    """Remove the sandboxes of dead processes, also when no trial is left that would create one."""
    from hermes_sandbox.reaping import reap_once

    backend = await _backend(name, options)
    try:
        await reap_once(backend, options)
    finally:
        await backend.close()


async def backend_reports(options: Mapping[str, Any], chosen: str) -> dict[str, Report]:
    """What every backend says of itself; the options are for the chosen one."""
    from hermes_sandbox import list_backends

    names = [name for name in list_backends() if name != chosen]
    reports = await asyncio.gather(_report(chosen, options), *(_report(name, {}) for name in names))
    return dict(zip([chosen, *names], reports, strict=True))


async def _report(name: str, options: Mapping[str, Any]) -> Report:
    from hermes_sandbox import Report

    try:
        backend = await _backend(name, options)
    except UsageError as error:
        return Report(False, str(error))
    return await _preflight(backend)


async def _preflight(backend: Backend) -> Report:
    from hermes_sandbox import Report, SandboxError

    try:
        async with asyncio.timeout(PREFLIGHT_SECONDS):
            return await backend.preflight()
    except TimeoutError:
        return Report(False, f"no answer within {PREFLIGHT_SECONDS:g} s")
    except SandboxError as error:
        return Report(False, str(error))
    finally:
        await backend.close()


async def _backend(name: str, options: Mapping[str, Any]) -> Backend:
    """A backend by name; its module may load a cloud's whole SDK."""
    from hermes_sandbox import SandboxError, get_backend

    try:
        return await asyncio.to_thread(get_backend, name, **options)
    except (ValueError, TypeError, SandboxError) as error:
        raise UsageError(str(error)) from None
