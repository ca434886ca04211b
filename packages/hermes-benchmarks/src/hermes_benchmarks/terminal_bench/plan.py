"""How one task of Terminal-Bench is run: the prompt, the limits, and what is kept of the sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, cast

from hermes_envs import AgentResult, Limits, Reward, RolloutSpec, ToolContext
from hermes_envs.harbor import task_rollout_spec

if TYPE_CHECKING:
    from hermes_envs.harbor import Task

    from hermes_benchmarks.config import RunConfig
    from hermes_benchmarks.terminal_bench.config import TerminalBenchEnvConfig

PROMPT = """You are working on a Linux machine through tools. Nobody watches and nobody can answer questions: decide \
for yourself, act, and check what you did by running it. The task counts as done only if the machine is in the state \
that it asks for when you stop. When it is, reply without calling a tool."""


def system_prompt(env: TerminalBenchEnvConfig) -> str:
    """The system message: the configured one, or this package's."""
    return PROMPT if env.system_prompt is None else env.system_prompt


def rollout_of(task: Task, env: TerminalBenchEnvConfig, run: RunConfig, backend: str) -> RolloutSpec:
    """A task under a configuration."""
    spec = task_rollout_spec(
        task,
        backend=backend,
        tools=toolsets(env),
        system=system_prompt(env),
        limits=Limits(
            max_turns=env.max_agent_turns,
            max_tokens=env.max_token_length,
            terminal_timeout=env.terminal_timeout,
            token_budget=run.max_trial_tokens,
            cost_budget=run.max_trial_cost,
        ),
        mode=env.verifier,
        timeout_multiplier=env.timeout_multiplier,
        agent_timeout=env.task_timeout,
        verifier_timeout=env.test_timeout,
        force_build=env.force_build,
        backend_options=env.backend_options,
    )
    if env.terminal_lifetime is not None:
        spec = replace(spec, sandbox=replace(spec.sandbox, lifetime=env.terminal_lifetime))
    return replace(spec, reward=keeping(spec)) if env.keep_state else spec


def toolsets(env: TerminalBenchEnvConfig) -> list[str] | None:
    """The toolsets that the agent may use; None is every one that can work."""
    if env.enabled_toolsets is None:
        return None
    left_out = set(env.disabled_toolsets or ())
    return [name for name in env.enabled_toolsets if name not in left_out]


def keeping(spec: RolloutSpec) -> Callable[[AgentResult, ToolContext], Awaitable[Reward]]:
    """The rollout's reward, with a snapshot of the sandbox taken before the tests run."""
    judge = cast("Callable[[AgentResult, ToolContext], Awaitable[Reward]]", spec.reward)

    async def reward(result: AgentResult, context: ToolContext) -> Reward:
        image = await context.session.sandbox.snapshot(keep=True)
        judged = await judge(result, context)
        info = {**judged.details.get("info", {}), "snapshot": asdict(image)}
        return replace(judged, details={**judged.details, "info": info})

    return reward
