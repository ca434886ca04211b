"""Results of an evaluation: metrics with their standard errors, samples, one folder per step."""

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_envs.outcome import Outcome
from hermes_envs.rollout import Rollout

from .formats import trajectory_line
from .rows import Row


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error; no error can be told from fewer than two values."""
    if not values:
        return math.nan, None
    mean = statistics.fmean(values)
    return mean, statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def evaluation_metrics(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Numbers over the rollouts that carry a reward; failures of the infrastructure are counted apart."""
    graded = [rollout for rollout in rollouts if rollout.reward is not None]
    rewards = [rollout.reward for rollout in graded if rollout.reward is not None]
    solved = [float(reward >= 1.0) for reward in rewards]
    results = [rollout.result for rollout in graded if rollout.result is not None]
    stops = Counter(result.stop_reason.value for result in results)
    metrics: dict[str, Any] = {
        "items": len(rollouts),
        "graded": len(graded),
        "infra_failed": sum(rollout.outcome is Outcome.infra_failed for rollout in rollouts),
        "policy_failed": sum(rollout.outcome is Outcome.policy_failed for rollout in rollouts),
        **with_error("reward", rewards),
        **with_error("solved", solved),
        **with_error("turns", [float(result.turns_used) for result in results]),
        "tool_errors": sum(len(result.tool_errors) for result in results),
        "prompt_tokens": sum(result.usage.prompt_tokens for result in results),
        "completion_tokens": sum(result.usage.completion_tokens for result in results),
    }
    return {**metrics, **{f"stopped_{name}": count for name, count in sorted(stops.items())}}


def with_error(name: str, values: Sequence[float]) -> dict[str, Any]:
    """A mean and its standard error as `NAME` and `NAME_stderr`; nothing without values."""
    if not values:
        return {}
    mean, error = mean_and_error(values)
    return {name: mean, f"{name}_stderr": error}


def evaluation_sample(rollout: Rollout, item: str) -> dict[str, Any]:
    """One line of `samples.jsonl`."""
    line = trajectory_line(rollout, Row([], [], [], 0.0, [], {"placeholder": True}), {"item": item})
    for name in ("tokens", "masks", "logprobs"):
        del line[name]
    failure = rollout.failure
    return {
        **line,
        "score": rollout.reward,
        "outcome": rollout.outcome.value,
        "failure": None if failure is None else f"{failure.boundary}: {failure.kind}: {failure.message}",
        "reward_details": dict(rollout.reward_details),
    }


def write_evaluation(
    folder: Path,
    step: int,
    *,
    task: str,
    metrics: Mapping[str, Any],
    samples: Sequence[Mapping[str, Any]] | None,
    general: Mapping[str, Any],
    config: Mapping[str, Any],
) -> Path:
    """Write `metrics.json`, `samples.jsonl` and `config.json` into a folder of their own.

    Args:
        folder: Where evaluations go.
        step: The training step.
        task: Name of the task, as the key of its results.
        metrics: The numbers.
        samples: What they were taken over.
        general: Model, times, generation parameters.
        config: The environment's configuration without secrets.

    Returns:
        The new folder, `step-N` or, where that is taken, `step-N.2`, `step-N.3`, …
    """
    target = _new_folder(folder, f"step-{step}")
    results = {f"atropos|{task}|0": dict(metrics), "all": dict(metrics)}
    written = {"config_general": dict(general), "step": step, "results": results}
    (target / "metrics.json").write_text(
        json.dumps(_finite(written), indent=2, default=str) + "\n", encoding="utf-8"
    )
    (target / "config.json").write_text(json.dumps(config, indent=2, default=str) + "\n", encoding="utf-8")
    if samples is not None:
        with (target / "samples.jsonl").open("w", encoding="utf-8", errors="replace") as file:
            for sample in samples:
                file.write(json.dumps(_finite(sample), ensure_ascii=False, default=str) + "\n")
    return target


def _new_folder(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}.{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value
