"""The options of Terminal-Bench."""

import os
from typing import Literal

from pydantic import Field, field_validator

from hermes_benchmarks.config import EnvConfig, EvaluationConfig, Names


class TerminalBenchEnvConfig(EnvConfig):
    """The options of Terminal-Bench, with the values its authors of record run it with."""

    dataset_name: str | None = None
    """Folder of Harbor tasks, Hugging Face dataset, local parquet or jsonl of one, or `sample`; null is the sample."""
    dataset_split: str = "train"
    """Split of a Hugging Face dataset."""
    dataset_revision: str | None = None
    """Commit of a Hugging Face dataset."""
    category: Names | None = None
    """Only tasks of these categories."""
    difficulty: Names | None = None
    """Only tasks of these difficulties."""
    enabled_toolsets: Names | None = Field(default=["terminal", "file"])
    """Toolsets that the agent may use."""
    max_agent_turns: int = Field(default=60, ge=1)
    """Model calls before the agent is stopped."""
    max_token_length: int | None = Field(default=32_000, ge=1)
    """Tokens the model may sample in one reply."""
    agent_temperature: float | None = 0.8
    """Sampling temperature; null leaves it to the server."""
    terminal_timeout: float = Field(default=300.0, gt=0)
    """Seconds for one command of the agent."""
    task_timeout: float = Field(default=1800.0, gt=0)
    """Seconds for the agent, where a task does not say."""
    test_timeout: float = Field(default=600.0, gt=0)
    """Seconds for the tests, where a task does not say."""
    timeout_multiplier: float = Field(default=1.0, gt=0)
    """Times every timeout of a task."""
    force_build: bool = False
    """Build each image from its Dockerfile although the task names a ready one."""
    verifier: Literal["shared", "fresh", "both"] = "shared"
    """Where the tests run: in the agent's own sandbox, in a fresh one from its snapshot, or in both, compared."""
    keep_state: bool = False
    """Keep a snapshot of each trial's sandbox, so that `score` can run the tests again."""

    @field_validator("dataset_name")
    @classmethod
    def _absolute(cls, name: str | None) -> str | None:
        """A local dataset by its whole path, so that a run can be resumed from another folder."""
        path = os.path.expanduser(name or "sample")  # noqa: PTH111 - pathlib raises where there is no such user
        return name if name in (None, "sample") or not os.path.exists(path) else os.path.abspath(path)  # noqa: PTH100, PTH110


class TerminalBenchConfig(EvaluationConfig):
    """Everything an evaluation on Terminal-Bench can be told."""

    env: TerminalBenchEnvConfig = TerminalBenchEnvConfig()  # pyright: ignore[reportIncompatibleVariableOverride] - a narrower namespace


class TBLiteEnvConfig(TerminalBenchEnvConfig):
    """The options of TBLite."""

    task_timeout: float = Field(default=1200.0, gt=0)
    """Seconds for the agent, where a task does not say."""


class TBLiteConfig(TerminalBenchConfig):
    """Everything an evaluation on TBLite can be told."""

    env: TBLiteEnvConfig = TBLiteEnvConfig()  # pyright: ignore[reportIncompatibleVariableOverride] - a narrower namespace
