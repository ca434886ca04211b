"""Final figures to Weights & Biases, where a run asks for it and can."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_benchmarks.plan import Plan


def log_metrics(plan: Plan, run_name: str, wandb_name: str | None, metrics: Mapping[str, float]) -> str:
    """Log the figures of a finished run as one wandb run; a resumed run goes on under the same id.

    Returns:
        What happened, for a person. The results are in the run's folder already: failing here loses nothing.
    """
    try:
        wandb: Any = import_module("wandb")
    except ImportError:
        return "wandb is not installed (pip install 'hermes-benchmarks[wandb]'): the figures are in the run's folder only"
    try:
        run = wandb.init(
            project=f"hermes-{plan.benchmark}",
            name=wandb_name or run_name,
            id=f"{run_name}-{plan.identity.hash}"[-64:],
            resume="allow",
            config={
                "agent": plan.agent,
                "model": plan.model,
                "backend": plan.backend,
                "identity": plan.identity.hash,
            },
        )
        run.log(dict(metrics))
        run.finish()
    except Exception as error:  # whatever a tracking service raises must not take the results with it
        return f"wandb refuses the figures ({type(error).__name__}: {error}); they are in the run's folder"
    return f"wandb: {run.url or run.dir}"
