"""What the policy does to its own sandbox is the policy's failure, not the infrastructure's."""

import json
from dataclasses import replace

import pytest
from envs_tools import call
from hermes_envs import Outcome, RolloutSpec, StopReason, loop_agent, run_rollout
from hermes_envs.clients import ScriptedClient
from hermes_sandbox import SandboxSpec

ASK = [{"role": "user", "content": "go"}]


def terminal(command):
    return [call("terminal", json.dumps({"command": command, "timeout": 20}))]


async def reward(result, ctx):
    return float(ctx.terminal("test -e done")["exit_code"] == 0)


def spec(image, **sandbox):
    return RolloutSpec(
        messages=ASK,
        tools=["terminal"],
        backend="docker",
        sandbox=SandboxSpec(image=image, workdir="/root", network="none", **sandbox),
        reward=reward,
    )


@pytest.mark.docker
async def test_killing_the_main_process_is_graded_zero(test_image):
    script = [
        terminal("touch done; kill -KILL -1; kill -TERM 1; sleep 20"),
        terminal("echo still here"),
        "done",
    ]
    rollout = await run_rollout(spec(test_image), loop_agent(ScriptedClient(script)))
    assert (rollout.outcome, rollout.reward) == (Outcome.policy_failed, 0.0)
    assert rollout.failure.boundary == "sandbox"
    assert rollout.result.stop_reason is StopReason.sandbox_error


@pytest.mark.docker
async def test_running_out_of_memory_is_the_policys_and_the_verifier_still_judges(test_image):
    hog = "touch done; python3 -c 'x = bytearray(1 << 30); print(len(x))'"
    rollout = await run_rollout(
        spec(test_image, memory_mb=128), loop_agent(ScriptedClient([terminal(hog), "done"]))
    )
    assert rollout.outcome in (Outcome.completed, Outcome.policy_failed), rollout.failure
    assert rollout.reward == (1.0 if rollout.outcome is Outcome.completed else 0.0)


@pytest.mark.docker
async def test_a_container_removed_from_outside_is_infrastructure(test_image):
    async def removed(messages, session):
        import asyncio

        process = await asyncio.create_subprocess_exec(
            "docker", "rm", "-f", session.sandbox.id, stdout=asyncio.subprocess.DEVNULL
        )
        await process.wait()
        return await loop_agent(ScriptedClient([terminal("true"), "done"]))(messages, session)

    rollout = await run_rollout(replace(spec(test_image), id="r"), removed)
    assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None)
    assert rollout.failure.boundary == "sandbox"
