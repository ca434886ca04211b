"""Logging to Weights & Biases; imported only when it is asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_envs.config import ConfigError
from hermes_envs.result import ToolCallError

from .metrics import readable


def start_run(*, name: str, project: str | None, group: str | None, config: Mapping[str, Any]) -> None:
    """Start a run, or say what to do where there is no account.

    Raises:
        ConfigError: wandb will not start.
    """
    import wandb

    if wandb.run is not None:
        return
    try:
        wandb.init(project=project or "hermes-envs", group=group, name=name, config=dict(config))
    except wandb.Error as error:
        raise ConfigError(
            f"wandb does not start ({error}): set WANDB_API_KEY, or WANDB_MODE=offline, or --env.use_wandb false"
        ) from error


def end_run() -> None:
    """Finish the run; wandb's own process may write to disk for a moment longer."""
    import wandb

    if wandb.run is not None:
        wandb.finish()


def rollout_table(rollouts: Sequence[Sequence[tuple[str, float]]]) -> Any:
    """A table of conversations and their scores."""
    import wandb

    table = wandb.Table(columns=["conversation", "score"])
    for group in rollouts:
        for text, score in group:
            table.add_data(text, score)
    return table


def tool_error_table(errors: Sequence[ToolCallError]) -> Any:
    """A table of tool errors."""
    import wandb

    table = wandb.Table(columns=["turn", "tool", "arguments", "error"])
    for error in errors:
        table.add_data(error.turn, error.tool_name, error.arguments[:500], error.error[:500])
    return table


def log_evaluation(
    task: str, metrics: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], step: int
) -> None:
    """Log an evaluation's numbers and its conversations."""
    import wandb

    if wandb.run is None:
        return
    table = wandb.Table(columns=["item", "score", "outcome", "conversation"])
    for sample in samples:
        metadata: Mapping[str, Any] = sample.get("metadata") or {}
        item = str(metadata.get("item", ""))
        conversation = sample.get("conversation") or sample.get("messages") or ()
        table.add_data(item, sample.get("score"), sample.get("outcome"), readable(conversation))
    numbers = {f"eval/{name}": value for name, value in metrics.items() if isinstance(value, int | float)}
    wandb.log({**numbers, f"eval/{task}_samples": table}, step=step)
