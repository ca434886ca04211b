"""A benchmark and an agent, loaded and ready: what the trials of one process share."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, cast

from hermes_envs.toolset import tools_of
from hermes_tools import ToolsError

from hermes_benchmarks.agents import RunAgent, agent_factory
from hermes_benchmarks.backends import check_backend, reap_leftovers
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.lookup import load_object
from hermes_benchmarks.selection import select

if TYPE_CHECKING:
    from hermes_envs import RolloutSpec

    from hermes_benchmarks.benchmark import Benchmark, BenchmarkTask, Skipped
    from hermes_benchmarks.config import EvaluationConfig


class Evaluation:
    """A benchmark under a configuration, with its tasks and its agent."""

    def __init__(self, benchmark: Benchmark, config: EvaluationConfig) -> None:
        self.benchmark = benchmark
        self.agent_name = config.run.agent or str(getattr(benchmark, "default_agent", "hermes"))
        self.backend = str(getattr(benchmark, "backend", config.env.terminal_backend or "local"))
        env = config.env.model_copy(update={"terminal_backend": self.backend})
        openai = config.openai
        if (
            self.agent_name == "hermes"
            and not openai.model_name
            and (named := os.environ.get("OPENAI_MODEL"))
        ):
            openai = openai.model_copy(update={"model_name": named})
        self.config = config.model_copy(update={"env": env, "openai": openai})

    @cached_property
    def tasks(self) -> dict[str, BenchmarkTask]:
        """The benchmark's tasks by name."""
        return {task.name: task for task in self.benchmark.tasks()}

    @cached_property
    def agent(self) -> RunAgent:
        """The run's agent."""
        return agent_factory(self.agent_name, self.benchmark)(self.config)

    @property
    def model(self) -> str | None:
        """The agent's model; the configured one of an agent that cannot act here, without an endpoint, say."""
        try:
            return self.agent.model
        except UsageError:
            return self.config.openai.model_name

    @cached_property
    def sandbox_starts(self) -> asyncio.Semaphore:
        """Held while a sandbox is created, image build included."""
        return asyncio.Semaphore(self.config.run.sandbox_starts)

    def task(self, name: str) -> BenchmarkTask:
        """A task by name."""
        return self.tasks[name]

    def skipped(self) -> list[Skipped]:
        """Tasks that cannot run as configured."""
        skipped = cast("Callable[[], list[Skipped]] | None", getattr(self.benchmark, "skipped", None))
        return list(skipped()) if skipped else []

    async def preflight(self) -> None:
        """Find out what would make every trial fail, and clear what dead runs left, before the first trial starts.

        Raises:
            UsageError: The agent's endpoint or the sandbox backend is not usable.
        """
        tasks = list(select(self).tasks)
        await self.agent.preflight(tasks)
        check_tools(self.benchmark.rollout(tasks[0]))
        await check_backend(self.backend, self.config.env.backend_options)
        await reap_leftovers(self.backend, self.config.env.backend_options)

    async def close(self) -> None:
        """Release what the agent holds."""
        if "agent" in self.__dict__:
            await self.agent.close()

    @classmethod
    @asynccontextmanager
    async def load(cls, reference: str, config: EvaluationConfig) -> AsyncGenerator[Evaluation]:
        """Load a benchmark from `module:name` for as long as the context lasts."""
        evaluation = cls(make_benchmark(cast("type[Benchmark]", load_object(reference)), config), config)
        try:
            yield evaluation
        finally:
            await evaluation.close()


def check_tools(spec: RolloutSpec) -> None:
    """Find out whether an agent can be given its tools.

    Raises:
        UsageError: A toolset is unknown or cannot work here.
    """
    try:
        tools_of(spec)
    except ToolsError as error:
        raise UsageError(str(error)) from None


def make_benchmark(cls: type[Benchmark], config: EvaluationConfig) -> Benchmark:
    """An instance of a benchmark's class, given the configuration where its constructor takes one."""
    make = cast("Callable[..., Benchmark]", cls)
    return make(config) if inspect.signature(make).parameters else make()
