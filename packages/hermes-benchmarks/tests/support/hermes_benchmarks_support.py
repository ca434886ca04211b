"""Records and schedules made by hand."""

from dataclasses import dataclass, field

from hermes_benchmarks.files import write_json
from hermes_benchmarks.plan import Identity, Plan, PlannedTask
from hermes_benchmarks.record import Consumption, TestDetail, TrialRecord
from hermes_benchmarks.run_folder import RunFolder
from hermes_benchmarks.verdict import Verdict

REAL = (
    *("regex-log", "cancel-async-tasks", "sqlite-db-truncate", "openssl-selfsigned-cert"),
    *(
        "log-summary-date-ranges",
        "cobol-modernization",
        "vulnerable-secret",
        "git-leak-recovery",
        "kv-store-grpc",
    ),
)
"""Tasks of Terminal-Bench 2 whose images need nothing but packages of a distribution and of PyPI."""


def record(task="alpha", attempt=1, verdict=Verdict.PASSED, *, reward=None, try_=1, cost=None, **more):
    """A trial record with plausible values."""
    verdict = Verdict(verdict)
    if verdict.graded and reward is None:
        reward = 1.0 if verdict is Verdict.PASSED else 0.0
    values = {
        "cause": "tests" if verdict.graded else "RateLimited",
        "phase": "verifier" if verdict.graded else "agent",
        "started": f"2026-11-30T10:00:{attempt:02d}.{try_:03d}+00:00",
        "seconds": 1.5,
        "agent": "hermes",
        "model": "a-model",
        "backend": "local",
        "category": "files",
        "difficulty": "easy",
        "turns": 3,
        "stop_reason": "finished",
        "retryable": not verdict.graded,
        "tests": [TestDetail(name="test_one", status="passed" if verdict is Verdict.PASSED else "failed")],
        "usage": Consumption(prompt_tokens=1000, completion_tokens=100, cached_tokens=400, cost_usd=cost),
        **more,
    }
    return TrialRecord(
        task=task, attempt=attempt, try_=try_, verdict=verdict, graded=verdict.graded, reward=reward, **values
    )


@dataclass
class Watcher:
    """An observer that writes down what it is told."""

    events: list[tuple] = field(default_factory=list)

    def started(self, spec):
        self.events.append(("started", spec.task))

    def finished(self, spec, record, retry_in):
        self.events.append(("finished", spec.task, str(record.verdict), retry_in is not None))

    def paused(self, seconds, reason):
        self.events.append(("paused", reason))


def make_plan(tasks=("alpha", "beta", "gamma"), attempts=1, **more):
    """A plan over tasks that are names, or pairs of a name and its category."""
    pairs = [(task, "files") if isinstance(task, str) else task for task in tasks]
    values = {
        "benchmark": "tb2",
        "reference": "no_such_module:Benchmark",
        "created": "2026-11-30T10:00:00+00:00",
        "agent": "hermes",
        "model": "a-model",
        "backend": "local",
        "config": {},
        **more,
    }
    planned = [PlannedTask(name=name, category=category, checksum=f"sum-{name}") for name, category in pairs]
    identity = values.pop("identity", Identity.of({"tasks": {task.name: task.checksum for task in planned}}))
    return Plan(tasks=planned, attempts=attempts, identity=identity, **values)


def make_run(path, records, plan=None, trajectory=None):
    """A run's folder holding these results."""
    folder = RunFolder(path)
    folder.create((plan or make_plan()).model_dump(mode="json"))
    for one in records:
        trial = folder.trial(one.task, one.attempt)
        trial.begin()
        if trajectory is not None:
            write_json(trial.path / "trajectory.json", trajectory)
        trial.finish(one)
    folder.rebuild_lines()
    return folder
