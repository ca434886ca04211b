"""What a benchmark is: a name, tasks, a rollout for each, and figures over the results.

A class with these four members is a whole benchmark; `benchmark_cli` gives it the verbs evaluate,
resume, score, report, view, compare, merge, validate, ls and doctor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast, runtime_checkable

from hermes_benchmarks.lookup import load_object, reference_of

Measure: TypeAlias = Literal["pass@1", "mean reward"]

if TYPE_CHECKING:
    from hermes_envs import RolloutSpec

    from hermes_benchmarks.agents import AgentFactory
    from hermes_benchmarks.config import EvaluationConfig
    from hermes_benchmarks.record import TrialRecord


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """One task, as the harness needs to know it.

    Attributes:
        name: Unique within the benchmark.
        category: For figures by category.
        difficulty: For figures by difficulty.
        tags: Free words.
        checksum: Of the task's files; part of a run's identity.
        limits: What the task asks for (agent_timeout, verifier_timeout, cpus, memory_mb, image, …), shown by `ls`.
        data: Whatever the benchmark's own `rollout` and agents want to find here.
    """

    name: str
    category: str = ""
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    checksum: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: Any = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task left out of a run, and why. Skipped tasks stay visible beside the denominator."""

    name: str
    reason: str


@runtime_checkable
class Benchmark(Protocol):
    """The least that a benchmark has."""

    name: ClassVar[str]
    """A short word: the command's name, and a part of each run folder's."""

    def tasks(self) -> Sequence[BenchmarkTask]:
        """All tasks of the benchmark, in a stable order."""
        ...

    def rollout(self, task: BenchmarkTask) -> RolloutSpec:
        """How one task is run and rewarded."""
        ...

    def summarize(self, records: Sequence[TrialRecord]) -> Mapping[str, float]:
        """Figures over the latest result of every attempt, named as they should appear in `metrics.json`."""
        ...


class BenchmarkBase:
    """A benchmark with defaults for everything but its tasks and rollouts.

    Subclasses may set `config_type` to a subclass of `EvaluationConfig` with their own `env` fields.
    """

    name: ClassVar[str] = "benchmark"
    config_type: ClassVar[str] = "hermes_benchmarks.config:EvaluationConfig"
    """Where the class of its configuration is, as module:name; loaded only when needed."""
    measure: ClassVar[Measure] = "pass@1"
    """The headline: how often a trial passes, or, where passing means little, its mean reward."""

    def __init__(self, config: EvaluationConfig | None = None) -> None:
        self.config = config or cast("type[EvaluationConfig]", load_object(self.config_type))()

    @property
    def default_agent(self) -> str:
        """The agent when none is named."""
        return "hermes"

    @property
    def backend(self) -> str:
        """The sandbox backend in effect."""
        return self.config.env.terminal_backend or "local"

    @property
    def agents(self) -> Mapping[str, AgentFactory]:
        """Agents of this benchmark alone, by name."""
        return {}

    def tasks(self) -> Sequence[BenchmarkTask]:
        """All tasks of the benchmark, in a stable order."""
        raise NotImplementedError

    def rollout(self, task: BenchmarkTask) -> RolloutSpec:
        """How one task is run and rewarded."""
        raise NotImplementedError

    def summarize(self, records: Sequence[TrialRecord]) -> Mapping[str, float]:
        """Figures over the latest result of every attempt; none beyond those that every benchmark gets."""
        return {}

    def notes(self, records: Sequence[TrialRecord]) -> Sequence[str]:
        """Sentences that a reader of the results should see; none."""
        return ()

    def skipped(self) -> Sequence[Skipped]:
        """Tasks that cannot run as configured, with reasons."""
        return ()

    def warnings(self, tasks: Sequence[BenchmarkTask]) -> Sequence[str]:
        """What a person should know of the chosen tasks before they run; nothing."""
        return ()

    def identity(self) -> Mapping[str, object]:
        """What makes results comparable, beyond tasks, agent, model and sampling."""
        return {}

    def advice(self) -> str:
        """A line to print after a run, or nothing."""
        return ""


def benchmark_cli(benchmark: type[Benchmark], argv: Sequence[str] | None = None) -> int:
    """Run the command line of a benchmark and return its exit code; for `sys.exit(benchmark_cli(MyBenchmark))`.

    Args:
        benchmark: The benchmark's class; its constructor takes an `EvaluationConfig`, or nothing.
        argv: The arguments; those of the process by default.
    """
    from hermes_benchmarks.cli.app import run_cli  # a library user of this module needs no command line

    description = (benchmark.__doc__ or "").strip()
    return run_cli(benchmark.name, reference_of(benchmark), argv, description=description, cls=benchmark)
