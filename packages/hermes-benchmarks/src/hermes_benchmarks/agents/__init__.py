"""Who acts in a trial: built-in agents, a benchmark's own, and those of other distributions.

An agent's factory is called once for a run and gives a `RunAgent`, which makes an agent for each task.
Others are found by the entry-point group `hermes_benchmarks.agents`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias, cast

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.lookup import load_object, nearest

if TYPE_CHECKING:
    from hermes_envs import Agent

    from hermes_benchmarks.benchmark import Benchmark, BenchmarkTask
    from hermes_benchmarks.config import EvaluationConfig

GROUP = "hermes_benchmarks.agents"
PROBES = (
    *("reward-symlink", "conftest", "path-hijack", "binary-trojan", "sitecustomize"),
    *("ld-preload", "late-writer", "git-history", "test-edit"),
)
"""Agents that try to score without solving anything."""
BUILT_IN = {
    **{
        name: f"hermes_benchmarks.agents.{name}:{name}_agent"
        for name in ("scripted", "hermes", "oracle", "nop")
    },
    **{name: f"hermes_benchmarks.agents.probes:{name.replace('-', '_')}" for name in PROBES},
}


async def _nothing() -> None:
    """There is nothing to close."""


async def _no_objection(tasks: Sequence[BenchmarkTask]) -> None:
    """Every task will do."""


def _nothing_lacks(task: BenchmarkTask) -> str:
    """Every task can be played."""
    return ""


@dataclass(frozen=True)
class RunAgent:
    """The agent of a whole run.

    Attributes:
        for_task: Makes the agent of one trial.
        model: The model behind it, None without one.
        lacks: What a task lacks that this agent needs, in a few words; such a task is skipped.
        preflight: Raises a `UsageError` where the run cannot succeed: no endpoint, a refused key.
        close: Releases what the run's trials shared.
    """

    for_task: Callable[[BenchmarkTask], Agent]
    model: str | None = None
    preflight: Callable[[Sequence[BenchmarkTask]], Awaitable[None]] = _no_objection
    close: Callable[[], Awaitable[None]] = _nothing
    lacks: Callable[[BenchmarkTask], str] = _nothing_lacks


AgentFactory: TypeAlias = "Callable[[EvaluationConfig], RunAgent]"


def agent_names(benchmark: Benchmark) -> list[str]:
    """Every agent that can be named here."""
    found = (point.name for point in entry_points(group=GROUP))
    return sorted({*BUILT_IN, *own_agents(benchmark), *found})


def own_agents(benchmark: Benchmark) -> dict[str, AgentFactory]:
    """The agents that the benchmark itself brings."""
    return dict(getattr(benchmark, "agents", {}))


def agent_factory(name: str, benchmark: Benchmark) -> AgentFactory:
    """The factory of an agent: the benchmark's own first, then the built-in ones, then entry points.

    Raises:
        UsageError: There is none of that name, and the nearest is named; or it cannot be loaded.
    """
    own = own_agents(benchmark)
    if name in own:
        return own[name]
    if name in BUILT_IN:
        return cast("AgentFactory", load_object(BUILT_IN[name]))
    for point in entry_points(group=GROUP, name=name):
        try:
            return cast("AgentFactory", point.load())
        except (ImportError, AttributeError) as error:
            raise UsageError(f"agent {name!r} ({point.value}) cannot be loaded: {error}") from error
    names = agent_names(benchmark)
    raise UsageError(f"unknown agent {name!r}{nearest(name, names)}; there are: {', '.join(names)}")
