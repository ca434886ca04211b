"""Putting the shards of a run together: the merged folder is what one machine would have left."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.plan import Plan
from hermes_benchmarks.report.data import read_plan
from hermes_benchmarks.run_folder import RunFolder, TrialFolder


def merge(sources: Sequence[Path], target: Path) -> RunFolder:
    """Copy the trials of several runs of one identity into a new run.

    Where two runs hold the same attempt, a graded result wins over an ungraded one.

    Raises:
        UsageError: The runs differ in what decides results, or grade the same attempt differently, or the target exists.
    """
    folders = [RunFolder(path) for path in sources]
    plans = [read_plan(folder) for folder in folders]
    for plan, path in zip(plans[1:], sources[1:], strict=True):
        if plan.identity.hash != plans[0].identity.hash:
            changes = "; ".join(plans[0].identity.differences(plan.identity))
            raise UsageError(f"{path} is not of the same run as {sources[0]} ({changes})")
    merged = RunFolder(target)
    if (target / "config.json").exists():
        raise UsageError(f"there is a run in {target} already")
    chosen = _choose(folders)
    merged.create(_whole(plans).model_dump(mode="json"))
    for trial in chosen:
        shutil.copytree(trial.path, target / "trials" / trial.path.name)
    merged.rebuild_lines()
    return merged


def _whole(plans: Sequence[Plan]) -> Plan:
    """The plan of all shards together."""
    first = min(plans, key=lambda plan: plan.created)
    attempts = max(plan.attempts for plan in plans)
    run = {**first.config.get("run", {}), "shard": None, "attempts": attempts}
    config = {**first.config, "run": run}
    return first.model_copy(update={"shard": None, "attempts": attempts, "config": config})


def _choose(folders: Sequence[RunFolder]) -> list[TrialFolder]:
    chosen: dict[str, TrialFolder] = {}
    for trial in (trial for folder in folders for trial in folder.trial_folders()):
        mine = trial.record()
        if mine is None:
            continue
        other = chosen.get(trial.path.name)
        theirs = other.record() if other else None
        if theirs is None or (mine.graded and not theirs.graded):
            chosen[trial.path.name] = trial
        elif mine.graded and theirs.graded and mine != theirs:
            raise UsageError(
                f"{mine.name} is graded in two of the runs: {trial.path} and {other and other.path}"
            )
    return list(chosen.values())
