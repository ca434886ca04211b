"""The benchmark: presets x seeds, each a company in a sandbox of its own."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from hermes_envs import Limits, RolloutSpec
from hermes_sandbox import SandboxSpec
from pydantic import AfterValidator, BeforeValidator, Field

from hermes_benchmarks.benchmark import BenchmarkBase, BenchmarkTask, Measure
from hermes_benchmarks.config import EnvConfig, EvaluationConfig, Names, RunConfig, split_names
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.ycb.baselines import MEASURED, POLICIES, factory
from hermes_benchmarks.ycb.simulation import Simulation, World

if TYPE_CHECKING:
    from hermes_benchmarks.agents import AgentFactory
    from hermes_benchmarks.record import TrialRecord

Seeds = Annotated[list[int], BeforeValidator(split_names)]


IDENTIFY_SECONDS = 120.0
"""What the simulator's Python may take to say what it has."""


def check_start(text: str) -> str:
    """Refuse what is no day that every year has: the horizon is some years later."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a day such as 2025-01-01, found {text!r}") from None
    if (day.month, day.day) == (2, 29):
        raise ValueError("29 February is no day that the horizon's year has")
    return day.isoformat()


class YcBenchEnvConfig(EnvConfig):
    """The options of YC-Bench."""

    presets: Names = Field(default=["fast_test", "medium", "hard"])
    """Presets of the simulator, or paths of TOML files in its format."""
    seeds: Seeds = Field(default=[1, 2, 3])
    """Seeds; every preset is played with each."""
    draws: Literal["preset", "sim_init"] = "preset"
    """The preset's own world, or the easier one that the simulator's `sim init` makes (for comparison with figures so measured)."""
    run_timeout: float = Field(default=3600.0, gt=0)
    """Seconds of one run."""
    horizon_years: int | None = Field(default=None, ge=1, le=100)
    """Simulated years; the preset's by default."""
    start_date: Annotated[str, AfterValidator(check_start)] | None = None
    """First simulated day, YYYY-MM-DD; the preset's by default."""
    company_name: str = "BenchCo"
    """The company's name."""
    simulator_python: str | None = None
    """Python with yc-bench installed, as a path inside the sandbox; on the local backend HERMES_YCB_PYTHON, or this one."""
    max_agent_turns: int = Field(default=200, ge=1)
    """Model calls before the agent is stopped; the baselines are not bound by it."""
    agent_temperature: float | None = 0.0
    """Sampling temperature; null leaves it to the server."""
    enabled_toolsets: Names | None = Field(default=["terminal"])
    """Toolsets that the agent may use."""


class YcBenchRunConfig(RunConfig):
    """A run of YC-Bench: its trials mostly wait for the model, and the nine of the default all go at once."""

    concurrency: int = Field(default=9, ge=1)
    """Trials at once."""


class YcBenchConfig(EvaluationConfig):
    """Everything an evaluation on YC-Bench can be told."""

    env: YcBenchEnvConfig = YcBenchEnvConfig()  # pyright: ignore[reportIncompatibleVariableOverride] - a narrower namespace
    run: YcBenchRunConfig = YcBenchRunConfig()  # pyright: ignore[reportIncompatibleVariableOverride] - a narrower namespace


class YcBench(BenchmarkBase):
    """YC-Bench (collinear-ai/yc-bench) as a benchmark: a long-horizon simulation with a score in 0..1."""

    name: ClassVar[str] = "ycb"
    config_type: ClassVar[str] = "hermes_benchmarks.ycb.benchmark:YcBenchConfig"
    measure: ClassVar[Measure] = "mean reward"

    def __init__(self, config: YcBenchConfig | None = None) -> None:
        super().__init__(config)
        self.env = cast("YcBenchConfig", self.config).env

    @property
    def agents(self) -> Mapping[str, AgentFactory]:
        """The baselines, beside the agents that every benchmark has."""
        return {name: factory(name) for name in POLICIES}

    @property
    def default_agent(self) -> str:
        """A model where one is named, else the strongest baseline: the benchmark then runs without a model."""
        return "hermes" if self.config.openai.model_name else "greedy"

    def tasks(self) -> Sequence[BenchmarkTask]:
        """One task for each preset and seed."""
        worlds: dict[str, World] = {}
        for preset in self.env.presets:
            for seed in self.env.seeds:
                world = self._world(preset, seed)
                if worlds.setdefault(world.name, world) != world:
                    raise UsageError(f"two presets are called {world.name.rpartition('-')[0]}")
        limits = {"agent_timeout": self.env.run_timeout, "max_turns": self.env.max_agent_turns}
        return [
            BenchmarkTask(
                name, category=world.label, checksum=_checksum(world.preset), limits=limits, data=world
            )
            for name, world in worlds.items()
        ]

    def _world(self, preset: str, seed: int) -> World:
        env = self.env
        if preset.endswith(".toml"):
            preset = str(Path(preset).resolve())
        return World(preset, seed, env.draws, env.company_name, env.start_date, env.horizon_years)

    def rollout(self, task: BenchmarkTask) -> RolloutSpec:
        """A sandbox with the simulator in it, and the score as its reward."""
        python = self._python()
        simulation = Simulation(
            task.data, python=python, max_turns=self.env.max_agent_turns, system_prompt=self.env.system_prompt
        )
        variables = {"YCB_PYTHON": python}
        if self.backend == "local":
            variables["PATH"] = f"{files('hermes_benchmarks.ycb') / 'bin'}:{os.defpath}"
        return RolloutSpec(
            messages=simulation.messages,
            tools=self.env.enabled_toolsets,
            backend=self.backend,
            sandbox=SandboxSpec(env=variables, lifetime=self.env.run_timeout + 900),
            limits=Limits(
                max_turns=self.env.max_agent_turns,
                deadline=self.env.run_timeout,
                max_tokens=self.env.max_token_length,
                terminal_timeout=self.env.terminal_timeout,
                token_budget=self.config.run.max_trial_tokens,
                cost_budget=self.config.run.max_trial_cost,
            ),
            prepare=simulation.prepare,
            reward=simulation.reward,
            backend_options=self.env.backend_options,
            seed=task.data.seed,
        )

    def _python(self) -> str:
        if self.env.simulator_python:
            return self.env.simulator_python
        if self.backend != "local":
            return "python3"
        if named := os.environ.get("HERMES_YCB_PYTHON"):
            return named
        if sys.version_info < (3, 12):
            raise UsageError(
                "YC-Bench's simulator needs Python 3.12 or newer; run `uv run --python 3.12 --package hermes-benchmarks "
                "--extra yc-bench ycb evaluate`, or name a Python that has it with --env.simulator_python or HERMES_YCB_PYTHON."
            )
        if find_spec("yc_bench") is None:
            raise UsageError(
                "the simulator is not installed; run `uv run --package hermes-benchmarks --extra yc-bench ycb evaluate`, or "
                "name a Python that has it with --env.simulator_python or HERMES_YCB_PYTHON."
            )
        return sys.executable

    @cached_property
    def simulator(self) -> Mapping[str, str]:
        """Version, commit and fingerprint of the simulator; nothing where only the sandboxes have it.

        Raises:
            UsageError: It is missing, of an unsupported version, or has no such preset.
        """
        if self.backend != "local":
            return {}
        program = str(files("hermes_benchmarks.ycb") / "simulator.py")
        presets = {world.preset for world in (task.data for task in self.tasks())}
        try:
            told = subprocess.run(
                [self._python(), "-I", program, "identify", *sorted(presets)],
                capture_output=True,
                check=False,
                timeout=IDENTIFY_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"the simulator's Python says nothing within {IDENTIFY_SECONDS:g} s") from None
        except OSError as error:
            raise UsageError(f"the simulator's Python does not run: {error}") from None
        if told.returncode != 0:
            raise UsageError(told.stderr.decode(errors="replace").strip()[-1000:])
        return json.loads(told.stdout)

    def identity(self) -> Mapping[str, object]:
        """The worlds and the simulator; one that cannot be used is so refused before the first trial."""
        keep = {"draws", "horizon_years", "start_date", "company_name", "run_timeout", "max_agent_turns"}
        return {**self.env.model_dump(mode="json", include=keep), "simulator": dict(self.simulator)}

    def summarize(self, records: Sequence[TrialRecord]) -> Mapping[str, float]:
        """Means over graded runs: of the headline and the published composite, in all and by preset."""
        graded = [record for record in records if record.graded and "composite" in record.info]
        groups: dict[str, list[TrialRecord]] = defaultdict(list)
        for record in graded:
            groups[record.category].append(record)
        figures: dict[str, float] = {}
        for name, group in {"": graded, **groups}.items():
            if group:
                suffix = f"_{name}" if name else ""
                for key in ("composite", "reference_composite", "survived", "incomplete"):
                    figures[f"ycb/{key}{suffix}"] = statistics.fmean(
                        float(record.info[key]) for record in group
                    )
                figures[f"ycb/funds_usd{suffix}"] = (
                    statistics.fmean(record.info["funds_cents"] for record in group) / 100
                )
        return figures

    def notes(self, records: Sequence[TrialRecord]) -> Sequence[str]:
        """What policies without a model score on the same worlds, and how many runs were cut short."""
        cut = sum(bool(record.info.get("incomplete")) for record in records if record.graded)
        unfinished = (
            f"{cut} of {len(records)} runs are incomplete: they were resumed idle to their end and scored there.",
        )
        return (self._baselines(records), *(unfinished if cut else ()))

    def _baselines(self, records: Sequence[TrialRecord]) -> str:
        env, worlds = self.env, sorted({record.task for record in records})
        own = env.draws == "preset" and env.horizon_years is None and env.start_date is None
        greedy = {name: MEASURED[name] for name in worlds if own and name in MEASURED}
        key = "idle_composite"
        idle = {record.task: float(record.info[key]) for record in records if key in record.info}
        return (
            f"Baselines on these worlds: never and idle {_figures(idle, worlds)}; "
            f"greedy {_figures(greedy, worlds)}."
        )

    def advice(self) -> str:
        """How to go on."""
        return (
            "Baselines: --agent never, idle, greedy or greedy-reference. A model: --openai.model_name NAME (with OPENAI_API_KEY or "
            "OPENROUTER_API_KEY set)."
        )


def _figures(known: Mapping[str, float], worlds: Sequence[str]) -> str:
    """What a baseline scores on the worlds where that is known."""
    if not known:
        return "not measured"
    if len(known) == len(worlds) > 1 and len(set(known.values())) == 1:
        return f"{next(iter(known.values())):.3f} on each"
    each = ", ".join(f"{value:.3f} on {name}" for name, value in known.items())
    rest = "" if len(known) == len(worlds) else "; not measured on the others"
    return f"{statistics.fmean(known.values()):.3f} ({each}{rest})"


def _checksum(preset: str) -> str:
    """Of a preset that is a file; the simulator's own come with its fingerprint."""
    path = Path(preset)
    if not preset.endswith(".toml"):
        return ""
    if not path.is_file():
        raise UsageError(f"there is no preset file {preset}")
    return hashlib.sha256(path.read_bytes()).hexdigest()
