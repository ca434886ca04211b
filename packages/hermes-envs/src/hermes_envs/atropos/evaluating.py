"""Running an evaluation, and telling of it: on the terminal, in a folder, and to wandb if asked."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cli import print_metrics
from .errors import EnvironmentFailed
from .evaluation import evaluation_metrics, evaluation_sample, write_evaluation
from .redaction import redacted

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """What an evaluation found.

    Attributes:
        task: The key of its results.
        model: The model.
        metrics: The numbers.
        samples: What they were taken over.
        seconds: How long it took.
        generation_parameters: How the model was sampled, beyond what the configuration says.
    """

    task: str
    model: str
    metrics: Mapping[str, Any]
    samples: Sequence[Mapping[str, Any]]
    seconds: float
    generation_parameters: Mapping[str, Any]


async def evaluate_items(
    env: "HermesAgentBaseEnv[Any]", items: Sequence[Any], task_name: str | None
) -> dict[str, Any]:
    """Run each task once, write and log the results; returns the metrics.

    Raises:
        EnvironmentFailed: No task could be graded, as when the model's server is down.
    """
    began = time.time()
    rollouts = await env.rolling.run_items(
        items, at_once=env.config.max_eval_workers, prefix=f"eval-{env.evaluated_step}"
    )
    samples = [
        evaluation_sample(rollout, env.item_name(item, index))
        for index, (rollout, item) in enumerate(zip(rollouts, items, strict=True))
    ]
    metrics = evaluation_metrics(rollouts)
    await env.evaluate_log(metrics, task_name, start_time=began, end_time=time.time(), samples=samples)
    failures = [rollout.failure for rollout in rollouts if rollout.failure is not None]
    if failures and not metrics["graded"]:
        raise EnvironmentFailed(f"none of the {len(rollouts)} tasks could be graded: {failures[0].message}")
    return metrics


def report_evaluation(env: "HermesAgentBaseEnv[Any]", record: EvaluationRecord, *, verbose: bool) -> None:
    """Print, write into a folder of its own, and log to wandb if asked."""
    config = env.config
    if verbose:
        print_metrics(record.task, record.metrics, record.seconds)
    if config.data_dir_to_save_evals is not None:
        folder = write_evaluation(
            Path(config.data_dir_to_save_evals),
            env.evaluated_step,
            task=record.task,
            metrics=record.metrics,
            samples=record.samples,
            general=_general(env, record),
            config=redacted(config),
        )
        if verbose:
            print(f"evaluation: {folder}")
    if config.use_wandb:
        from .wandb_log import log_evaluation

        log_evaluation(record.task, record.metrics, record.samples, env.curr_step)


def _general(env: "HermesAgentBaseEnv[Any]", record: EvaluationRecord) -> dict[str, Any]:
    return {
        "model_name": record.model,
        "total_evaluation_time_seconds": round(record.seconds, 3),
        "generation_parameters": {
            "max_new_tokens": env.config.max_token_length,
            "temperature": env.config.agent_temperature,
            **record.generation_parameters,
        },
    }
