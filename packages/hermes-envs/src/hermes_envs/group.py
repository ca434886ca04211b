"""A group: several rollouts of one task that share one draw of tools."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Sequence
from dataclasses import replace

from hermes_tools import Distribution, sample_toolsets_from_distribution
from hermes_tools.session import Slots

from hermes_envs.rollout import Rollout, SandboxSlots, run_rollout
from hermes_envs.spec import Agent, GroupContext, RolloutSpec
from hermes_envs.telemetry import Telemetry
from hermes_envs.together import together
from hermes_envs.toolset import tools_of

DEFAULT_STARTS = 8
"""Sandboxes that a group creates at once unless told otherwise."""


def draw_group(
    size: int, *, distribution: str | Distribution | None = None, seed: int | None = None, group_id: str = ""
) -> GroupContext:
    """Draw what the members of a group share.

    Args:
        size: Members.
        distribution: A toolset distribution to draw from, or its name; None leaves the spec's tools.
        seed: Makes the draw and the members' seeds repeatable; None draws at random.
        group_id: The group's name; invented when empty.
    """
    toolsets: tuple[str, ...] | None = None
    if distribution is not None:
        if seed is None:
            seed = secrets.randbits(31)
        toolsets = tuple(sample_toolsets_from_distribution(distribution, random.Random(seed)))
    name = distribution.name if isinstance(distribution, Distribution) else distribution
    return GroupContext(group_id or f"group-{secrets.token_hex(4)}", size, toolsets, name, seed)


def members(spec: RolloutSpec, group: GroupContext) -> list[RolloutSpec]:
    """The specs of a group's members: the same task and tools, each with its own id and seed."""
    return [
        replace(
            spec,
            id=f"{spec.id or group.id}-{index}",
            tools=spec.tools if group.toolsets is None else group.toolsets,
            seed=member_seed(group.seed, index),
            group=group,
        )
        for index in range(group.size)
    ]


def member_seed(seed: int | None, index: int) -> int | None:
    """The seed of a group's member number `index`, below 2**31; None without a group seed."""
    return None if seed is None else random.Random(f"{seed}/{index}").getrandbits(31)


async def run_group(
    spec: RolloutSpec | Sequence[RolloutSpec],
    agent: Agent,
    n: int | None = None,
    *,
    distribution: str | Distribution | None = None,
    seed: int | None = None,
    sandboxes: SandboxSlots | None = None,
    tool_pool: Slots | None = None,
    retries: int = 0,
    telemetry: Telemetry | None = None,
) -> list[Rollout]:
    """Run the rollouts of a group at once.

    Cancelling it cancels every member and waits until each has cleaned up.

    Args:
        spec: One task, run `n` times; or the members' own specs.
        agent: Who does it.
        n: Members, for one task.
        distribution: A toolset distribution, or its name, to draw the group's tools from, once for all members.
        seed: Of the draw and of the members' seeds.
        sandboxes: Bounds how many sandboxes are created at once; None is `DEFAULT_STARTS` for this group.
        tool_pool: As in `run_rollout`.
        retries: As in `run_rollout`.
        telemetry: Where spans go.

    Returns:
        One rollout per member, in order.

    Raises:
        hermes_tools.UnknownToolsetError: A toolset name is unknown; `ToolsetUnavailableError` for one that cannot work
            here.
    """
    if isinstance(spec, RolloutSpec):
        if n is None or n < 1:
            raise ValueError(f"a group of one task needs n >= 1, got {n}")
        specs = members(spec, draw_group(n, distribution=distribution, seed=seed))
    else:
        if n is not None or distribution is not None or seed is not None:
            raise ValueError("n, distribution and seed go with one spec; these specs bring their own")
        specs = list(spec)
    for one in specs:
        tools_of(one)  # what cannot work is said before any member starts
    slots = sandboxes or asyncio.Semaphore(DEFAULT_STARTS)
    return await together(
        run_rollout(one, agent, sandboxes=slots, tool_pool=tool_pool, retries=retries, telemetry=telemetry)
        for one in specs
    )
