"""Boundaries: what an exception means for a rollout."""

import asyncio
import pickle

import pytest
from hermes_envs import Failure, InfraFailed, PolicyFailed
from hermes_envs.clients import ProviderUnavailable
from hermes_envs.outcome import BoundaryError, boundary, failure_of
from hermes_sandbox.errors import QuotaError, SandboxGone


def ended_inside():
    error = SandboxGone("PID 1 was killed")
    error.ended_inside = True
    return error


@pytest.mark.parametrize(
    ("error", "at", "expected"),
    [
        (ValueError("x"), "verifier", Failure("verifier", "ValueError", "x")),
        (ProviderUnavailable("down"), "verifier", Failure("provider", "ProviderUnavailable", "down", True)),
        (SandboxGone("gone"), "tool", Failure("sandbox", "SandboxGone", "gone", retryable=True)),
        (ended_inside(), "tool", Failure("sandbox", "SandboxGone", "PID 1 was killed", by_policy=True)),
        (QuotaError("busy"), "sandbox", Failure("sandbox", "QuotaError", "busy", retryable=True)),
        (PolicyFailed("rm -rf"), "verifier", Failure("verifier", "PolicyFailed", "rm -rf", by_policy=True)),
        (InfraFailed("net"), "verifier", Failure("verifier", "InfraFailed", "net", retryable=True)),
        (KeyError(), "harness", Failure("harness", "KeyError", "KeyError")),
        (
            ExceptionGroup("two", [SandboxGone("gone"), ValueError("y")]),
            "tool",
            Failure("sandbox", "SandboxGone", "gone", retryable=True),
        ),
    ],
)
def test_an_error_is_classed_by_itself_or_by_where_it_surfaced(error, at, expected):
    assert failure_of(error, at) == expected
    with pytest.raises(BoundaryError) as caught, boundary(at):
        raise error
    assert caught.value.failure == expected
    assert caught.value.__cause__ is error


def test_the_innermost_boundary_decides():
    with pytest.raises(BoundaryError) as caught, boundary("harness"), boundary("tool", "reading"):
        raise ValueError("x")
    assert caught.value.failure == Failure("tool", "ValueError", "reading: x")


def test_an_interruption_passes():
    with pytest.raises(KeyboardInterrupt), boundary("tool"):
        raise KeyboardInterrupt


async def test_a_cancellation_passes_where_somebody_asked_for_it():
    async def cancelled():
        with boundary("tool"):
            await asyncio.sleep(60)

    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3)])
async def test_cancellations_and_exits_of_code_that_nobody_ends_are_failures(error):
    with pytest.raises(BoundaryError) as caught, boundary("verifier"):
        raise error
    assert (caught.value.failure.boundary, caught.value.failure.kind) == ("verifier", type(error).__name__)


def test_boundary_errors_survive_pickling():
    error = BoundaryError(Failure("tool", "K", "m", True))
    assert pickle.loads(pickle.dumps(error)).failure == error.failure
