"""run_group: one draw for all members, immutable and recorded."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from envs_faults import Faults
from envs_tools import call, no_task_is_left
from hermes_envs import Outcome, RolloutSpec, draw_group, loop_agent, nop_agent, run_group
from hermes_envs.clients import ScriptedClient
from hermes_envs.group import members
from hermes_tools import Distribution, ToolsError

MIXED = Distribution("mixed", {"terminal": 0.5, "file": 0.5, "todo": 0.5})
ASK = [{"role": "user", "content": "x"}]
SPEC = RolloutSpec(messages=ASK, tools=["terminal"])


async def test_members_share_the_tools_and_have_seeds_of_their_own():
    rollouts = await run_group(SPEC, nop_agent, 3, distribution="terminal_only", seed=5)
    assert [rollout.outcome for rollout in rollouts] == [Outcome.completed] * 3
    assert len({rollout.group for rollout in rollouts}) == 1
    group = rollouts[0].group
    assert (group.size, group.distribution, group.seed) == (3, "terminal_only", 5)
    assert {rollout.tools for rollout in rollouts} == {rollouts[0].tools}
    assert len({rollout.seed for rollout in rollouts}) == 3
    assert len({rollout.id for rollout in rollouts}) == 3


def test_a_seed_repeats_the_draw():
    draws = [draw_group(4, distribution=MIXED, seed=seed) for seed in (1, 1, 2, 3, 4, 5, 6)]
    assert draws[0].toolsets == draws[1].toolsets
    assert len({draw.toolsets for draw in draws}) > 1
    seeds = [[spec.seed for spec in members(SPEC, draw)] for draw in draws[:2]]
    assert seeds[0] == seeds[1]


def test_a_draw_without_a_seed_can_be_repeated_from_its_record():
    first = draw_group(2, distribution=MIXED)
    assert draw_group(2, distribution=MIXED, seed=first.seed).toolsets == first.toolsets


async def test_groups_at_once_draw_independently():
    groups = await asyncio.gather(
        *(run_group(SPEC, nop_agent, 2, distribution=MIXED, seed=seed) for seed in range(6))
    )
    for seed, rollouts in enumerate(groups):
        expected = draw_group(2, distribution=MIXED, seed=seed).toolsets
        assert {rollout.group.toolsets for rollout in rollouts} == {expected}


async def test_a_toolset_that_cannot_work_is_said_before_any_member_starts():
    with Faults().sandbox() as faults, pytest.raises(ToolsError, match="no_such"):
        await run_group(SPEC, nop_agent, 3, distribution=Distribution("odd", {"no_such": 1}))
    assert faults.sandboxes == []


async def test_one_member_failing_leaves_the_others():
    specs = [replace(SPEC, id=f"m{i}") for i in range(3)]

    async def agent(messages, session):
        if session.id == "m1":
            raise RuntimeError("boom")
        return await nop_agent(messages, session)

    rollouts = await run_group(specs, agent)
    assert [r.outcome for r in rollouts] == [Outcome.completed, Outcome.infra_failed, Outcome.completed]
    assert [r.id for r in rollouts] == ["m0", "m1", "m2"]


async def test_cancelling_a_group_waits_for_every_members_clean_up():
    with Faults().sandbox() as faults:
        agent = loop_agent(ScriptedClient([[call("terminal", '{"command": "sleep 1000"}')]]))
        task = asyncio.create_task(run_group(SPEC, agent, 4))
        while faults.crossed.count("run") < 4:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(faults.sandboxes) == 4
    assert all(not Path(sandbox.workdir).exists() for sandbox in faults.sandboxes)
    await no_task_is_left()


async def test_creations_at_once_are_bounded():
    class Slots(asyncio.Semaphore):
        most = now = 0

        async def __aenter__(self):
            await super().__aenter__()
            self.now += 1
            self.most = max(self.most, self.now)

        async def __aexit__(self, *exc):
            self.now -= 1
            await super().__aexit__(*exc)

    slots = Slots(2)
    rollouts = await run_group(SPEC, nop_agent, 6, sandboxes=slots)
    assert slots.most == 2
    assert all(rollout.outcome is Outcome.completed for rollout in rollouts)


@pytest.mark.parametrize("arguments", [{}, {"n": 0}])
async def test_a_group_needs_members(arguments):
    with pytest.raises(ValueError, match="n >= 1"):
        await run_group(SPEC, nop_agent, **arguments)


async def test_a_group_is_recorded_as_plain_values():
    (rollout,) = await run_group(SPEC, nop_agent, 1, seed=1)
    from dataclasses import asdict

    assert json.loads(json.dumps(asdict(rollout.group)))["seed"] == 1
