"""What `evaluate --dry-run` prints: tasks, images, and what the run may cost."""

from __future__ import annotations

from hermes_sandbox.spec import Dockerfile

from hermes_benchmarks.benchmark import BenchmarkTask
from hermes_benchmarks.cli.ls import limits_of
from hermes_benchmarks.cli.printing import columns, say
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.progress import duration
from hermes_benchmarks.selection import Selection

TYPICAL = {"prompt": 250_000, "completion": 12_000}
"""Tokens of one trial: the middle of what published Terminal-Bench 2 runs used."""


def print_plan(evaluation: Evaluation, selection: Selection) -> int:
    """Print what would run, and return the exit code 0."""
    config, tasks = evaluation.config, selection.tasks
    rows = [(task.name, image_of(evaluation, task), limits_of(task.limits)) for task in tasks]
    for line in columns(("task", "image", "limits"), rows):
        say(line)
    for task in selection.skipped:
        say(f"skipped: {task.name} ({task.reason})")
    trials = len(tasks) * config.run.attempts
    model = config.openai.model_name
    who = f"agent {evaluation.agent_name}" + (
        f", model {model}" if model and evaluation.agent_name == "hermes" else ""
    )
    say(
        f"{trials} trials of {len(tasks)} tasks, {who}, backend {evaluation.backend}, {config.run.concurrency} at once"
    )
    budget = sum(float(task.limits.get("agent_timeout") or 0) for task in tasks) * config.run.attempts
    if budget:
        say(
            f"agents may take {duration(budget)} in all, {duration(budget / config.run.concurrency)} at this width"
        )
    say(estimated_cost(evaluation, trials))
    return 0


def image_of(evaluation: Evaluation, task: BenchmarkTask) -> str:
    """What the task's sandbox is made from."""
    image = evaluation.benchmark.rollout(task).sandbox.image
    return f"{image.context}/{image.dockerfile}" if isinstance(image, Dockerfile) else str(image or "")


def estimated_cost(evaluation: Evaluation, trials: int) -> str:
    """What a model would cost at the given price, or how to find out."""
    if evaluation.agent_name != "hermes":
        return "no model is asked: the run costs nothing"
    price = evaluation.config.openai.price
    if price is None:
        return "cost unknown: give --openai.price.prompt and --openai.price.completion (US dollars per million tokens)"
    one = (TYPICAL["prompt"] * price.prompt + TYPICAL["completion"] * price.completion) / 1_000_000
    capped = min(one, evaluation.config.run.max_trial_cost or one) * trials
    cost = min(capped, evaluation.config.run.max_cost or capped)
    return f"estimated cost ${cost:.2f}, if trials are of typical length ({TYPICAL['prompt']:,} tokens in, nothing cached)"
