"""The agent `oracle`: it plays the solution that a task's author wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_envs import Agent, AgentResult, StopReason
from hermes_envs.harbor import Task, run_solution

from hermes_benchmarks.agents import RunAgent

if TYPE_CHECKING:
    from hermes_envs import RolloutSession

    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.config import EvaluationConfig

OUTPUT_KEPT = 20_000


def oracle_agent(config: EvaluationConfig) -> RunAgent:
    """An agent that runs `solution/solve.sh`."""
    return RunAgent(_for_task, lacks=_lacks)


def _lacks(task: BenchmarkTask) -> str:
    known = isinstance(task.data, Task) and task.data.has_solution
    return "" if known else "no solution/solve.sh for the oracle to play"


def _for_task(task: BenchmarkTask) -> Agent:
    async def agent(messages: Sequence[dict[str, Any]], session: RolloutSession) -> AgentResult:
        done = await run_solution(task.data, session.sandbox)
        text = f"solve.sh ended with exit code {done.exit_code} ({done.reason})\n{done.output[-OUTPUT_KEPT:]}"
        said = [*messages, {"role": "assistant", "content": text}]
        return AgentResult(messages=said, stop_reason=StopReason.finished)

    return agent
