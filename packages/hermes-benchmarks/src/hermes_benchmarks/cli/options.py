"""The friendly flags, each another name for a dotted key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

MORE = """Any other setting is a dotted key: --env.max_agent_turns 60, --openai.base_url URL, --run.retries 0; --print-config
lists them all with their values. A YAML file (--config) overrides the defaults, the command line overrides both."""
RUNNING = Group("How it runs", sort_key=2)
WHAT = Group("What runs", sort_key=1)


@Parameter(name="*")
@dataclass
class Tasks:
    """Flags that say what is run, and where."""

    dataset: Annotated[str | None, Parameter(group=WHAT, alias="-d")] = None
    """Folder of tasks, Hugging Face dataset, local parquet or jsonl of one, or `sample`."""
    tasks: Annotated[str | None, Parameter(group=WHAT, alias="-t")] = None
    """Names or globs with commas between (`--env.task_filter`)."""
    category: Annotated[str | None, Parameter(group=WHAT)] = None
    """Only tasks of these categories."""
    difficulty: Annotated[str | None, Parameter(group=WHAT)] = None
    """Only tasks of these difficulties."""
    backend: Annotated[str | None, Parameter(group=WHAT, alias="-b")] = None
    """Where tasks run: local, docker, modal, daytona, ssh, singularity."""


@Parameter(name="*")
@dataclass
class What(Tasks):
    """Likewise, for a new run."""

    config: Annotated[Path | None, Parameter(group=WHAT, alias="-c")] = None
    """YAML file with the namespaces env, openai and run."""


@Parameter(name="*")
@dataclass
class Who:
    """Flags that say who acts."""

    agent: Annotated[str | None, Parameter(group=WHAT, alias="-a")] = None
    """Who acts: scripted, hermes (a model), oracle, nop, a probe, or another by entry point."""
    model: Annotated[str | None, Parameter(group=WHAT, alias="-m")] = None
    """The model, by the name that its server knows."""


@Parameter(name="*")
@dataclass
class How:
    """Flags that say how a run goes."""

    attempts: Annotated[int | None, Parameter(group=RUNNING, alias="-k")] = None
    """Independent attempts at each task."""
    concurrency: Annotated[int | None, Parameter(group=RUNNING, alias="-n")] = None
    """Trials at once."""
    output: Annotated[Path | None, Parameter(group=RUNNING, alias="-o")] = None
    """The folder where runs go; `runs` by default."""
    name: Annotated[str | None, Parameter(group=RUNNING)] = None
    """The name of the run's own folder."""
    shard: Annotated[str | None, Parameter(group=RUNNING)] = None
    """i/n: run the i-th of n parts, for `merge`."""
    timeout_multiplier: Annotated[float | None, Parameter(group=RUNNING)] = None
    """Times the tasks' own timeouts."""
    verifier: Annotated[str | None, Parameter(group=RUNNING)] = None
    """Where the tests run: shared (the agent's own sandbox), fresh (a new one from its snapshot), both."""
    keep_state: Annotated[bool | None, Parameter(group=RUNNING, negative="")] = None
    """Keep a snapshot of each trial's sandbox, for `score`."""
    force_build: Annotated[bool | None, Parameter(group=RUNNING, negative="")] = None
    """Build images from their Dockerfiles although tasks name ready ones."""
    max_cost: Annotated[float | None, Parameter(group=RUNNING)] = None
    """US dollars after which no more trials start."""
    max_trial_cost: Annotated[float | None, Parameter(group=RUNNING)] = None
    """US dollars after which an agent is stopped."""
    progress: Annotated[str | None, Parameter(group=RUNNING)] = None
    """auto, live, plain or none."""


DOTTED: Mapping[str, str] = {
    "dataset": "env.dataset_name",
    "tasks": "env.task_filter",
    "category": "env.category",
    "difficulty": "env.difficulty",
    "backend": "env.terminal_backend",
    "agent": "run.agent",
    "model": "openai.model_name",
    "attempts": "run.attempts",
    "concurrency": "run.concurrency",
    "output": "run.output",
    "name": "run.name",
    "shard": "run.shard",
    "timeout_multiplier": "env.timeout_multiplier",
    "verifier": "env.verifier",
    "keep_state": "env.keep_state",
    "force_build": "env.force_build",
    "max_cost": "run.max_cost",
    "max_trial_cost": "run.max_trial_cost",
    "progress": "run.progress",
}
"""The dotted key that each friendly flag stands for."""


def dotted(*groups: Tasks | Who | How | None) -> dict[str, str]:
    """The dotted keys that the given flags stand for."""
    found: dict[str, str] = {}
    for group in groups:
        if group is None:
            continue
        for item in fields(group):
            value = getattr(group, item.name)
            if item.name in DOTTED and value is not None:
                found[DOTTED[item.name]] = str(value)
    return found
