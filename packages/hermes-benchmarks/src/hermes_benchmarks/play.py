"""Playing one trial: the benchmark's rollout, marked as this trial's, with what its sandbox really enforces."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_envs import Failure, Outcome, Rollout, RolloutSession, RolloutSpec, run_rollout

from hermes_benchmarks.details import checked

if TYPE_CHECKING:
    from hermes_sandbox import Sandbox

    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.evaluation import Evaluation
    from hermes_benchmarks.trial import TrialSpec


async def play(
    spec: TrialSpec, evaluation: Evaluation, task: BenchmarkTask
) -> tuple[Rollout, dict[str, Any]]:
    """Run the trial's rollout.

    What goes wrong in making its parts is a failure of the harness, and not the end of the run.

    Returns:
        The rollout, and the limits that its sandbox enforces.
    """
    effective: dict[str, Any] = {}
    try:
        plan = observed(marked(evaluation.benchmark.rollout(task), spec), effective)
        agent = evaluation.agent.for_task(task)
        rollout = await run_rollout(plan, agent, sandboxes=evaluation.sandbox_starts)
    except Exception as error:
        failure = Failure("harness", type(error).__name__, f"{type(error).__name__}: {error}")
        rollout = Rollout(id=spec.name, outcome=Outcome.infra_failed, failure=failure)
    return checked(rollout), effective


def marked(plan: RolloutSpec, spec: TrialSpec) -> RolloutSpec:
    """The rollout and its sandbox with the names of run and trial on them."""
    run = Path(spec.run).resolve().name
    marks = {"benchmark.run": run, "benchmark.trial": spec.name}
    labels = {"task": spec.task, "attempt": str(spec.attempt), "run": run}
    sandbox = replace(plan.sandbox, labels={**plan.sandbox.labels, **marks})
    return replace(plan, id=spec.name, labels={**plan.labels, **labels}, sandbox=sandbox)


def observed(plan: RolloutSpec, effective: dict[str, Any]) -> RolloutSpec:
    """The rollout, noting in `effective` what its sandbox enforces once it is up."""
    prepare = plan.prepare

    async def noting(session: RolloutSession) -> None:
        effective.update(enforced(session.sandbox))
        if prepare is not None:
            await prepare(session)

    return replace(plan, prepare=noting)


def enforced(sandbox: Sandbox) -> dict[str, Any]:
    """The limits of a sandbox, without those that its backend accepted and cannot enforce."""
    spec = sandbox.spec
    limits = {
        name: getattr(spec, name) for name in ("cpus", "memory_mb", "disk_mb", "pids", "gpus", "network")
    }
    kept = {name: _plain(value) for name, value in limits.items() if value is not None}
    return {name: value for name, value in kept.items() if name not in sandbox.unenforced}


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
