"""A fault at every await of a rollout: each ends in the right class, leaves nothing, and invents no reward."""

import asyncio
import logging
from pathlib import Path

import pytest
from envs_clock import Clock
from envs_faults import Faults, Thrown
from envs_tools import call, no_task_is_left
from hermes_envs import Limits, Outcome, RolloutSpec, loop_agent, run_rollout
from hermes_envs.clients import ProviderUnavailable, ScriptedClient
from hermes_sandbox.errors import SandboxGone

SCRIPT = [
    [
        call("terminal", '{"command": "echo 42 > answer.txt"}'),
        call("write_file", '{"path": "b.txt", "content": "x"}', "c2"),
    ],
    "Done.",
]
LIMIT = 60
LIMITS = Limits(
    deadline=LIMIT,
    sandbox_start_timeout=LIMIT,
    prepare_timeout=LIMIT,
    reward_timeout=LIMIT,
    cleanup_timeout=LIMIT,
)


async def prepare(session):
    await session.sandbox.write_bytes("start.txt", b"start\n")


async def reward(result, ctx):
    test = ctx.terminal("cat answer.txt")
    content = ctx.read_file("b.txt")
    await asyncio.sleep(0)
    return 1.0 if test["output"].strip() == "42" and content["content"] == "x" else 0.0


def rollout_with(faults):
    spec = RolloutSpec(
        messages=[{"role": "user", "content": "go"}],
        tools=["terminal", "file"],
        prepare=faults.function("prepare", prepare),
        reward=reward,
        limits=LIMITS,
        id="r",
    )
    return run_rollout(spec, loop_agent(faults.client(ScriptedClient(SCRIPT))))


async def nothing_left(faults):
    assert all(not Path(sandbox.workdir).exists() for sandbox in faults.sandboxes)
    await no_task_is_left()


async def seams():
    with Faults().sandbox() as faults:
        rollout = await rollout_with(faults)
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 1.0)
    assert {
        "create",
        "prepare",
        "model",
        "open_shell",
        "run",
        "exec",
        "read_bytes",
        "write_bytes",
        "close",
    } <= set(faults.crossed)
    return len(faults.crossed)


def expected(name, error):
    """The boundaries at which an error in a crossing of this name may be seen; None for none: it is only logged."""
    if name == "close":
        return {None}
    # An error that knows its boundary keeps it; in the clean-up after the verdict it changes nothing any more.
    if error is ProviderUnavailable:
        return {"provider", None}
    if name == "create" or error is SandboxGone:
        return {"sandbox", None}
    return {"model": {"provider"}, "prepare": {"harness"}}.get(
        name, {"tool", "verifier", "harness", "sandbox", None}
    )


@pytest.mark.parametrize(
    "after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before", "after"]
)
@pytest.mark.parametrize("error", [SandboxGone, ProviderUnavailable, RuntimeError])
async def test_an_error_at_every_seam(error, after, caplog):
    caplog.set_level(logging.CRITICAL)
    for at in range(await seams()):
        with Faults(at, lambda: error("injected"), after=after).sandbox() as faults:
            rollout = await asyncio.wait_for(rollout_with(faults), 90)
        where = f"{at}: {faults.broke}"
        boundary = rollout.failure.boundary if rollout.failure else None
        assert boundary in expected(faults.broke, error), where
        if rollout.failure is None:
            assert (rollout.outcome, rollout.reward) == (Outcome.completed, 1.0), where
        else:
            assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None), where
        # A close that fails cannot have removed anything; what it leaves is found by its owner's label.
        if faults.broke == "close":
            for sandbox in faults.sandboxes:
                await sandbox.close()
        await nothing_left(faults)


async def test_an_ordinary_file_error_in_a_tool_is_the_models_to_handle(caplog):
    caplog.set_level(logging.CRITICAL)
    outcomes = set()
    for at in range(await seams()):
        with Faults(at, lambda: PermissionError(13, "injected")).sandbox() as faults:
            rollout = await rollout_with(faults)
        if faults.broke in ("open_shell", "run", "write_bytes") and rollout.failure is None:
            outcomes.add(rollout.reward)
            assert rollout.outcome is Outcome.completed
        if rollout.failure is not None:
            assert rollout.reward is None
        if faults.broke == "close":
            for sandbox in faults.sandboxes:
                await sandbox.close()
        await nothing_left(faults)
    assert 0.0 in outcomes  # the policy's call failed, it did not try again, and the verifier saw that


async def test_a_hang_at_every_seam_ends_at_a_deadline(caplog):
    caplog.set_level(logging.CRITICAL)
    clock = Clock()
    for at in range(await seams()):
        with Faults(at).sandbox() as faults:
            passing = asyncio.create_task(clock.put_forward_once(faults.broken, LIMIT + 1))
            rollout = await asyncio.wait_for(rollout_with(faults), LIMIT + 30)
            await passing
        if rollout.failure is not None:
            assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None)
            assert rollout.failure.kind == "Timeout"
        else:
            assert rollout.outcome is Outcome.completed
        if faults.broke == "close":
            for sandbox in faults.sandboxes:
                await sandbox.close()
        await nothing_left(faults)


async def suspensions():
    with Faults().sandbox() as faults:
        thrown = Thrown(rollout_with(faults), None, RuntimeError())
        assert (await thrown).reward == 1.0
    return thrown.suspensions


async def at_every_suspension(error, check, caplog):
    caplog.set_level(logging.CRITICAL)
    count = await suspensions()
    assert count > 10
    for at in range(count + 5):
        with Faults().sandbox() as faults:
            thrown = Thrown(rollout_with(faults), at, error and error())

            async def once(thrown=thrown):
                return await thrown

            (result,) = await asyncio.wait_for(asyncio.gather(once(), return_exceptions=True), 60)
        check(result, thrown)
        await no_task_is_left()  # what the broken await had begun goes on alone
        await nothing_left(faults)


@pytest.mark.timeout(300)
async def test_a_cancellation_at_every_await(caplog):
    def check(result, thrown):
        if thrown.thrown:
            assert isinstance(result, asyncio.CancelledError)
        else:
            assert result.reward == 1.0

    await at_every_suspension(None, check, caplog)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
async def test_an_exception_at_every_await(error, caplog):
    def check(result, thrown):
        if isinstance(result, BaseException):
            raise result
        if result.failure is not None:
            assert (result.outcome, result.reward) == (Outcome.infra_failed, None)
        else:
            assert (result.outcome, result.reward) == (Outcome.completed, 1.0) or not thrown.thrown

    await at_every_suspension(lambda: error("injected"), check, caplog)
