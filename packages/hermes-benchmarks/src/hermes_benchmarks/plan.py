"""What a run set out to do: the content of its `config.json`."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from hermes_benchmarks.benchmark import Measure
from hermes_benchmarks.config import EvaluationConfig, without_secrets
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.lookup import reference_of
from hermes_benchmarks.selection import Selection

PACKAGES = ("hermes-benchmarks", "hermes-envs", "hermes-sandbox", "hermes-tools", "hermes-parsers")


class PlannedTask(BaseModel):
    """A task of the run."""

    model_config = ConfigDict(frozen=True)

    name: str
    category: str = ""
    difficulty: str = ""
    checksum: str = ""
    limits: dict[str, Any] = {}


class SkippedTask(BaseModel):
    """A task left out of the run."""

    model_config = ConfigDict(frozen=True)

    name: str
    reason: str


class Identity(BaseModel):
    """What results must share to be of one run. No random values, no machine, no key."""

    model_config = ConfigDict(frozen=True)

    hash: str
    parts: dict[str, Any]

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Identity:
        """The identity with these parts; the hash is over their canonical JSON."""
        plain = json.loads(json.dumps(parts, sort_keys=True, default=str))
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return cls(hash=hashlib.sha256(text.encode()).hexdigest()[:16], parts=plain)

    def differences(self, other: Identity) -> list[str]:
        """Each part that differs, as `name: mine, now theirs`."""
        return list(_differences("", self.parts, other.parts))


def _differences(prefix: str, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key in sorted({*mine, *theirs}):
        a, b = mine.get(key), theirs.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            inner = cast("tuple[dict[str, Any], dict[str, Any]]", (a, b))
            found += _differences(f"{prefix}{key}.", *inner)
        elif a != b:
            found.append(f"{prefix}{key}: {_shown(cast('object', a))}, now {_shown(cast('object', b))}")
    return found


def _shown(value: object) -> str:
    text = "absent" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


class Plan(BaseModel):
    """What a run set out to do."""

    version: Literal[1] = 1
    benchmark: str
    reference: str
    """The benchmark's class, as module:name."""
    created: str
    identity: Identity
    agent: str
    model: str | None = None
    backend: str
    measure: Measure = "pass@1"
    """What the run's headline is."""
    attempts: int = Field(ge=1)
    shard: str | None = None
    tasks: list[PlannedTask]
    skipped: list[SkippedTask] = []
    config: dict[str, Any]
    """The whole configuration in effect, without keys."""
    packages: dict[str, str] = {}
    python: str = ""
    platform: str = ""

    def trials(self) -> list[tuple[str, int]]:
        """The (task, attempt) pairs of this run: every task once, then every task again; its shard's part of them."""
        pairs = [(task.name, n) for n in range(1, self.attempts + 1) for task in self.tasks]
        if self.shard is None:
            return pairs
        part, parts = map(int, self.shard.split("/"))
        return pairs[part - 1 :: parts]


def make_plan(evaluation: Evaluation, selection: Selection) -> Plan:
    """Write down what `evaluation` will run."""
    config, benchmark = evaluation.config, evaluation.benchmark
    tasks = [
        PlannedTask(
            name=task.name,
            category=task.category,
            difficulty=task.difficulty,
            checksum=task.checksum,
            limits=dict(task.limits),
        )
        for task in selection.tasks
    ]
    return Plan(
        benchmark=benchmark.name,
        reference=reference_of(type(benchmark)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=identity_of(evaluation, selection),
        agent=evaluation.agent_name,
        model=evaluation.agent.model,
        backend=evaluation.backend,
        measure=getattr(benchmark, "measure", "pass@1"),
        attempts=config.run.attempts,
        shard=config.run.shard,
        tasks=tasks,
        skipped=[SkippedTask(name=task.name, reason=task.reason) for task in selection.skipped],
        config=config.to_dict(),
        packages=installed(),
        python=platform.python_version(),
        platform=platform.platform(),
    )


IDENTITY_OF_ENV = (
    "enabled_toolsets",
    "disabled_toolsets",
    "max_agent_turns",
    "max_token_length",
    "agent_temperature",
    "extra_body",
    "system_prompt",
    "terminal_timeout",
)


def identity_of(evaluation: Evaluation, selection: Selection) -> Identity:
    """Hash what decides a result: tasks, agent, model, sampling, limits, versions."""
    config, own = evaluation.config, getattr(evaluation.benchmark, "identity", dict[str, object])
    return Identity.of(
        {
            "benchmark": evaluation.benchmark.name,
            "version": installed().get("hermes-benchmarks", ""),
            "agent": evaluation.agent_name,
            "agent_options": config.run.agent_options,
            "model": evaluation.model,
            "backend": evaluation.backend,
            "env": {key: getattr(config.env, key) for key in IDENTITY_OF_ENV}
            | {"backend_options": without_secrets(config.env.backend_options)},
            "limits": {"cost": config.run.max_trial_cost, "tokens": config.run.max_trial_tokens},
            "parser": config.openai.parser,
            "own": dict(own()),
            "tasks": {task.name: task.checksum for task in selection.tasks},
        }
    )


def installed() -> dict[str, str]:
    """The versions of this project's packages."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def plan_config(plan: Plan, cls: type[EvaluationConfig]) -> EvaluationConfig:
    """The configuration of a run, read back from its plan."""
    return cls.model_validate(plan.config)
