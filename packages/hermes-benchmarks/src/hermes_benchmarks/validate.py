"""Whether the tasks themselves can be trusted: their own solution must pass, and doing nothing must not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hermes_benchmarks.record import TrialRecord
from hermes_benchmarks.verdict import Verdict


@dataclass(slots=True)
class Validity:
    """What became of one task.

    Attributes:
        task: Its name.
        oracle: The rewards of the oracle's graded attempts.
        nop: The rewards of the idle agent's.
        errors: Causes of attempts that could not be graded, and what the oracle lacked.
        repeats: Attempts that each agent was to have.
    """

    task: str
    repeats: int
    oracle: list[float] = field(default_factory=list[float])
    nop: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])

    @property
    def finding(self) -> str:
        """One word: valid, flaky, broken (the oracle never passes), open (doing nothing passes), or unknown."""
        if len(self.oracle) < self.repeats or len(self.nop) < self.repeats:
            return "unknown"
        if any(reward >= 1 for reward in self.nop):
            return "open"
        passes = sum(reward >= 1 for reward in self.oracle)
        return "valid" if passes == self.repeats else "flaky" if passes else "broken"


def validity(
    oracle: Sequence[TrialRecord],
    nop: Sequence[TrialRecord],
    tasks: Sequence[str],
    repeats: int,
    lacking: Mapping[str, str],
) -> list[Validity]:
    """Put the results of both agents together, and why the oracle left out a task."""
    found = {task: Validity(task, repeats) for task in tasks}
    for task in found.keys() & lacking.keys():
        found[task].errors.append(lacking[task])
    for name, records in (("oracle", oracle), ("nop", nop)):
        rewards = defaultdict[str, list[float]](list)
        for record in records:
            if record.graded and record.verdict is not Verdict.TAMPERED:
                rewards[record.task].append(record.reward or 0.0)
            else:
                found[record.task].errors.append(
                    f"{name}: {record.verdict}: {record.message or record.cause}"
                )
        for task, values in rewards.items():
            setattr(found[task], name, values)
    return [found[task] for task in tasks]
