"""run_rollout in real local sandboxes: outcomes, deadlines, cancellation, clean-up."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from envs_clock import Clock
from envs_faults import Faults
from envs_tools import call, no_task_is_left
from hermes_envs import (
    AgentResult,
    InfraFailed,
    Limits,
    Outcome,
    PolicyFailed,
    Reward,
    RolloutSpec,
    StopReason,
    loop_agent,
    nop_agent,
    run_rollout,
)
from hermes_envs.clients import ProviderUnavailable, RateLimited, ScriptedClient
from hermes_envs.outcome import Failure
from hermes_sandbox import SandboxSpec
from hermes_sandbox.errors import QuotaError
from hermes_tools import ToolsError

ASK = [{"role": "user", "content": "Write 42 into answer.txt."}]
SOLVE = [[call("terminal", '{"command": "echo 42 > answer.txt"}')], "Done."]


async def reward(result, ctx):
    return 1.0 if ctx.terminal("cat answer.txt")["output"].strip() == "42" else 0.0


SPEC = RolloutSpec(messages=ASK, tools=["terminal", "file"], reward=reward, id="r")


def agent(script=SOLVE):
    return loop_agent(ScriptedClient(script))


async def run(spec=SPEC, who=None, **options):
    """Run a rollout and see that nothing of it is left."""
    with Faults().sandbox() as faults:
        rollout = await run_rollout(spec, who or agent(), **options)
    assert all(not Path(sandbox.workdir).exists() for sandbox in faults.sandboxes)
    await no_task_is_left()
    return rollout


async def test_from_task_to_reward():
    rollout = await run(replace(SPEC, labels={"task": "t"}, seed=3))
    assert (rollout.id, rollout.outcome, rollout.reward) == ("r", Outcome.completed, 1.0)
    assert rollout.failure is None
    assert rollout.result.finished_naturally
    assert set(rollout.tools) >= {"terminal", "read_file"}
    assert (rollout.seed, rollout.labels, rollout.attempts) == (3, {"task": "t"}, 1)
    assert set(rollout.timings) == {"sandbox", "agent", "reward", "cleanup", "total"}
    assert rollout.timings["total"] >= rollout.timings["agent"]


def test_a_spec_may_be_written_by_position():
    sandbox, limits = SandboxSpec(), Limits(max_turns=1)
    spec = RolloutSpec(ASK, ["terminal"], "local", sandbox, limits, None, reward)
    assert spec == RolloutSpec(
        messages=ASK, tools=["terminal"], backend="local", sandbox=sandbox, limits=limits, reward=reward
    )


async def test_doing_nothing_is_graded_too():
    rollout = await run(who=nop_agent)
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 0.0)


async def test_without_a_reward_function_there_is_no_reward():
    rollout = await run(replace(SPEC, reward=None))
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, None)


async def test_prepare_comes_before_the_agent():
    async def prepare(session):
        await session.sandbox.write_bytes("answer.txt", b"42\n")

    rollout = await run(replace(SPEC, prepare=prepare), nop_agent)
    assert rollout.reward == 1.0


async def test_messages_may_be_made_in_the_sandbox():
    async def messages(session):
        text = (await session.sandbox.exec("echo made here")).output
        return [{"role": "user", "content": text}]

    rollout = await run(replace(SPEC, messages=messages))
    assert rollout.result.messages[0]["content"] == "made here\n"


def assert_graded_by(rollout, reason):
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 1.0)
    assert rollout.result.stop_reason is reason
    assert len(rollout.result.messages) >= 3


async def test_what_was_done_before_the_last_turn_is_graded():
    script = [*SOLVE[:1], [call("terminal", '{"command": "sleep 60"}')]]
    rollout = await run(replace(SPEC, limits=Limits(max_turns=1)), agent(script))
    assert_graded_by(rollout, StopReason.max_turns)


async def test_what_was_done_before_the_deadline_is_graded():
    """The clock jumps past the deadline once the second command is asked for, however slow the machine."""
    clock = Clock()

    def model(messages, tools):
        if len(messages) == 1:
            return SOLVE[0]
        clock.put_forward(1000)
        return [call("terminal", '{"command": "sleep 600", "timeout": 600}')]

    rollout = await run(replace(SPEC, limits=Limits(deadline=600)), agent(model))
    assert_graded_by(rollout, StopReason.deadline)


async def test_an_agent_that_ignores_its_deadline_is_stopped():
    async def sleeper(messages, session):
        await asyncio.Event().wait()

    rollout = await run(replace(SPEC, limits=Limits(deadline=0.2)), sleeper)
    assert rollout.result.stop_reason is StopReason.deadline
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 0.0)


@pytest.mark.parametrize(
    ("given", "outcome", "value", "kind"),
    [
        (1, Outcome.completed, 1.0, None),
        (True, Outcome.completed, 1.0, None),
        (0.25, Outcome.completed, 0.25, None),
        (Reward(0.5, {"tests": 2}), Outcome.completed, 0.5, None),
        (1.5, Outcome.infra_failed, None, "InvalidReward"),
        (float("nan"), Outcome.infra_failed, None, "InvalidReward"),
        (None, Outcome.infra_failed, None, "InvalidReward"),
        ("1.0", Outcome.infra_failed, None, "InvalidReward"),
        (
            Reward(None, {"log": "x"}, Failure("verifier", "Hung", "tests hung", by_policy=True)),
            Outcome.policy_failed,
            0.0,
            "Hung",
        ),
        (Reward(1.0, {}, Failure("verifier", "Apt", "no network")), Outcome.infra_failed, None, "Apt"),
        (PolicyFailed("it killed the shell"), Outcome.policy_failed, 0.0, "PolicyFailed"),
        (InfraFailed("no network"), Outcome.infra_failed, None, "InfraFailed"),
        (ZeroDivisionError(), Outcome.infra_failed, None, "ZeroDivisionError"),
        (asyncio.CancelledError(), Outcome.infra_failed, None, "CancelledError"),
        (SystemExit(3), Outcome.infra_failed, None, "SystemExit"),
        (ProviderUnavailable("judge is down"), Outcome.infra_failed, None, "ProviderUnavailable"),
    ],
)
async def test_what_the_reward_function_gives(given, outcome, value, kind):
    async def judge(result, ctx):
        if isinstance(given, BaseException):
            raise given
        return given

    rollout = await run(replace(SPEC, reward=judge))
    assert (rollout.outcome, rollout.reward) == (outcome, value)
    assert (rollout.failure.kind if rollout.failure else None) == kind
    if isinstance(given, Reward):
        assert rollout.reward_details == given.details


async def test_before_the_agent_acts_nothing_is_the_policys_fault():
    async def prepare(session):
        raise PolicyFailed("it cannot have been")

    rollout = await run(replace(SPEC, prepare=prepare))
    assert (rollout.outcome, rollout.reward, rollout.failure.by_policy) == (Outcome.infra_failed, None, False)
    assert rollout.result is None


@pytest.mark.parametrize(
    ("given", "value"),
    [(Fraction(1, 4), 0.25), (np.float32(0.5), 0.5), (np.bool_(True), 1.0), (np.array(1), 1.0), (False, 0.0)],
)
async def test_numbers_of_other_libraries_are_rewards(given, value):
    rollout = await run(replace(SPEC, reward=lambda result, ctx: given))
    assert rollout.reward == value and type(rollout.reward) is float


async def test_a_plain_function_may_be_the_reward():
    rollout = await run(
        replace(SPEC, reward=lambda result, ctx: float(ctx.terminal("true")["exit_code"] == 0))
    )
    assert rollout.reward == 1.0


async def test_a_reward_that_hangs_is_no_reward():
    async def judge(result, ctx):
        ctx.terminal("sleep 1000", timeout=None)

    rollout = await run(replace(SPEC, reward=judge, limits=Limits(reward_timeout=0.5)))
    assert (rollout.outcome, rollout.failure.boundary, rollout.failure.kind) == (
        Outcome.infra_failed, "verifier", "Timeout"
    )  # fmt: skip


async def test_a_sandbox_lost_from_outside_is_followed_by_another(monkeypatch):
    monkeypatch.setattr("hermes_envs.rollout._RETRY_PAUSE", 0.01)
    lost = []

    async def judge(result, ctx):
        if not lost:
            lost.append(ctx.sandbox.id)
            await ctx.sandbox.close()
        return float(ctx.terminal("true")["exit_code"] == 0 and ctx.sandbox.id not in lost)

    rollout = await run(replace(SPEC, reward=judge), retries=1)
    assert (rollout.outcome, rollout.reward, rollout.attempts) == (Outcome.completed, 1.0, 2)


async def test_a_provider_failure_is_no_reward_and_the_transcript_is_kept():
    rollout = await run(who=agent([*SOLVE[:1], ProviderUnavailable("down", status=503)]))
    assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None)
    assert rollout.failure.boundary == "provider"
    assert rollout.result.stop_reason is StopReason.provider_error
    assert rollout.result.turns_used == 1


async def test_an_agent_that_breaks_is_the_harnesss_fault():
    async def broken(messages, session):
        raise KeyError("oops")

    rollout = await run(who=broken)
    assert (rollout.outcome, rollout.failure.boundary) == (Outcome.infra_failed, "harness")
    assert rollout.result.messages == ASK


async def test_retries_what_may_pass_in_a_fresh_sandbox(monkeypatch):
    monkeypatch.setattr("hermes_envs.rollout._RETRY_PAUSE", 0.01)
    tries = 0

    async def flaky(messages, session):
        nonlocal tries
        tries += 1
        assert not (await session.sandbox.exec("ls")).stdout
        await session.sandbox.write_bytes("left", b"")
        if tries < 3:
            raise RateLimited("busy")
        return AgentResult(messages=list(messages))

    rollout = await run(who=flaky, retries=2)
    assert (rollout.outcome, rollout.attempts) == (Outcome.completed, 3)


async def test_does_not_retry_what_will_not_pass():
    rollout = await run(who=agent([RuntimeError("bug")]), retries=5)
    assert rollout.attempts == 1


async def test_a_start_that_takes_too_long_is_a_sandbox_failure(monkeypatch):
    async def slow(*args, **kwargs):
        await asyncio.Event().wait()

    monkeypatch.setattr("hermes_envs.phases.create_sandbox", slow)
    rollout = await run_rollout(replace(SPEC, limits=Limits(sandbox_start_timeout=0.1)), nop_agent)
    assert (rollout.outcome, rollout.failure.boundary, rollout.failure.retryable) == (
        Outcome.infra_failed, "sandbox", True
    )  # fmt: skip
    assert rollout.result is None


async def test_a_start_that_fails_is_a_sandbox_failure(monkeypatch):
    async def refuse(*args, **kwargs):
        raise QuotaError("full")

    monkeypatch.setattr("hermes_envs.phases.create_sandbox", refuse)
    rollout = await run_rollout(SPEC, nop_agent)
    assert (rollout.outcome, rollout.failure.kind) == (Outcome.infra_failed, "QuotaError")


async def test_an_unknown_toolset_is_said_before_anything_starts():
    with Faults().sandbox() as faults, pytest.raises((ToolsError, KeyError), match="terminal"):
        await run_rollout(replace(SPEC, tools=["terminl"]), nop_agent)
    assert faults.sandboxes == []


async def test_an_unknown_backend_is_said_with_the_nearest():
    with pytest.raises(ValueError, match="docker"):
        await run_rollout(replace(SPEC, backend="dockr"), nop_agent)


async def test_a_spec_that_the_backend_refuses_is_a_final_sandbox_failure():
    rollout = await run(replace(SPEC, sandbox=SandboxSpec(image="debian:12")), nop_agent)
    assert (rollout.outcome, rollout.failure.boundary, rollout.failure.retryable) == (
        Outcome.infra_failed, "sandbox", False
    )  # fmt: skip


async def test_cancelling_cleans_up_and_passes_on():
    for reached in (None, "create", "open_shell", "run"):
        with Faults().sandbox() as faults:
            script = [[call("terminal", '{"command": "touch begun; sleep 1000"}')]]
            task = asyncio.create_task(run_rollout(SPEC, agent(script)))
            await asyncio.sleep(0)
            while reached and reached not in faults.crossed:
                await asyncio.sleep(0.001)
            if reached == "run":
                await file_in(faults.sandboxes[0], "begun")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert all(not Path(sandbox.workdir).exists() for sandbox in faults.sandboxes)
        await no_task_is_left()


async def file_in(sandbox, name):
    while not Path(sandbox.workdir, name).exists():
        await asyncio.sleep(0.01)


async def test_cancelling_twice_does_not_stop_the_clean_up():
    with Faults().sandbox() as faults:
        script = [[call("terminal", '{"command": "touch begun; sleep 1000"}')]]
        task = asyncio.create_task(run_rollout(SPEC, agent(script)))
        while not faults.sandboxes:
            await asyncio.sleep(0.01)
        await file_in(faults.sandboxes[0], "begun")
        for _ in range(5):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not Path(faults.sandboxes[0].workdir).exists()


async def test_the_spec_shapes_the_sandbox():
    spec = replace(SPEC, sandbox=SandboxSpec(env={"GREETING": "hello"}))
    script = [[call("terminal", '{"command": "echo $GREETING"}')], "ok"]
    rollout = await run(spec, agent(script))
    assert "hello" in json.loads(rollout.result.messages[2]["content"])["output"]
