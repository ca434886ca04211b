"""Whose doing a lost sandbox is: what ran inside, which is the policy, or something outside."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hermes_sandbox import Sandbox
from hermes_sandbox.errors import SandboxError, SandboxGone

from hermes_envs.outcome import Failure

_LOOKS = (0.0, 0.5, 2.0)
_PATIENCE = 15.0


async def blamed(failure: Failure, sandbox: Sandbox) -> Failure:
    """The failure, as the policy's when the sandbox turns out to have been ended from inside.

    A sandbox that is dying still fails in many ways; only when it is dead does its backend know how it died. So it is
    looked at again: once where it was already said to be gone, for some seconds where it may be on its way.
    """
    if failure.boundary != "sandbox" or failure.by_policy:
        return failure
    looks = _LOOKS[:1] if failure.kind == SandboxGone.__name__ else _LOOKS
    try:
        async with asyncio.timeout(_PATIENCE):
            for pause in looks:
                await asyncio.sleep(pause)
                await sandbox.exec("true", timeout=5.0)
    except SandboxGone as gone:
        if gone.ended_inside:
            return replace(failure, kind="SandboxGone", message=str(gone), retryable=False, by_policy=True)
    except (SandboxError, OSError):
        return failure  # it is no clearer than before
    return failure
