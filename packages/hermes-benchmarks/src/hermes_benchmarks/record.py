"""What is kept of one trial: the content of its `result.json`."""

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from hermes_benchmarks.verdict import Verdict

LINE_FIELDS = ("task", "attempt", "try", "verdict", "graded", "reward", "cause", "started", "seconds")
"""What of a record stands in `trials.jsonl`."""


class Consumption(BaseModel):
    """What the model used, in tokens and US dollars. `cost_usd` is None where no price is known."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


class TestDetail(BaseModel):
    """One test of the verifier's report."""

    __test__ = False
    model_config = ConfigDict(frozen=True)

    name: str
    status: str
    """As CTRF has it: passed, failed, skipped, pending or other."""
    message: str = ""


class TrialRecord(BaseModel):
    """One execution of one attempt at one task.

    An *attempt* (from 1) is one of the k independent samples of a task. A *try* (from 1) is one
    execution of it: an ungraded try is followed by another, a graded one is final.
    """

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    task: str
    attempt: int = Field(ge=1)
    try_: int = Field(
        default=1, ge=1, validation_alias=AliasChoices("try", "try_"), serialization_alias="try"
    )
    verdict: Verdict
    graded: bool
    retryable: bool = False
    reward: float | None = Field(default=None, ge=0, le=1)
    cause: str
    phase: str
    message: str = ""
    started: str
    """ISO 8601, UTC."""
    seconds: float = Field(ge=0)
    timings: dict[str, float] = {}
    """Seconds of each phase of the trial."""
    agent: str
    model: str | None = None
    backend: str = ""
    stop_reason: str | None = None
    turns: int = 0
    tool_errors: int = 0
    usage: Consumption = Consumption()
    category: str = ""
    difficulty: str = ""
    checksum: str = ""
    """Of the task's files; empty where the benchmark has none."""
    tests: list[TestDetail] = []
    limits: dict[str, Any] = {}
    """What the task asked for, and what the sandbox enforces."""
    load_average: float | None = None
    """Of this machine over the last minute, when the trial ended: timing-sensitive tests fail on a busy one."""
    info: dict[str, Any] = {}
    """Figures of the benchmark's own, such as the funds at the end of a simulation. `series`, a mapping of titles
    to lists of [x, y], is drawn in reports: in each trial, and over all of them."""

    @property
    def name(self) -> str:
        """The name of the trial's folder, `TASK__ATTEMPT`."""
        return trial_name(self.task, self.attempt)

    @property
    def note(self) -> str:
        """Why it did not pass, in a few words; empty when it passed."""
        if self.verdict is Verdict.PASSED:
            return ""
        failed = [test.name.rpartition("::")[2] for test in self.tests if test.status == "failed"]
        if self.message or not failed:
            return self.message or self.cause
        shown = ", ".join(failed[:3]) + (", …" if len(failed) > 3 else "")
        return f"{len(failed)} of {len(self.tests)} tests failed: {shown}"

    def to_dict(self) -> dict[str, Any]:
        """As written to `result.json`."""
        return self.model_dump(mode="json", by_alias=True)

    def line(self) -> dict[str, Any]:
        """As written to `trials.jsonl`."""
        whole = self.model_dump(mode="json", by_alias=True)
        return {name: whole[name] for name in LINE_FIELDS}


def trial_name(task: str, attempt: int) -> str:
    """The folder name of an attempt. Slashes in a task's name would make nested folders."""
    return f"{task.replace('/', '--')}__{attempt}"
