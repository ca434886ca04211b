"""What the verbs print."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes_benchmarks.plan import Plan
from hermes_benchmarks.progress import duration
from hermes_benchmarks.summary import HEADLINE_COVERAGE, AtK, Group, Summary


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def print_yaml(value: Mapping[str, Any]) -> int:
    """Print a mapping as YAML and return the exit code 0."""
    import yaml

    say(yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True).rstrip())
    return 0


def summary_lines(plan: Plan, summary: Summary) -> Iterable[str]:
    """The figures of a run, for a person."""
    yield ""
    if (headline := summary.headline) is not None:
        yield f"{summary.measure:<12} {headline}   over {headline.n} {'tasks' if plan.attempts > 1 else 'trials'}"
    else:
        yield (
            f"{summary.measure:<12} no headline: only {summary.coverage:.0%} of the trials are graded "
            f"({HEADLINE_COVERAGE:.0%} needed)"
        )
    yield f"graded       {summary.passed} of {summary.graded} graded trials passed"
    yield (
        f"all          {summary.passed} of {summary.planned} planned ({summary.pass_rate_all:.1%}, errors as failures)"
        f"; coverage {summary.coverage:.1%}"
    )
    for reason, names in summary.skipped.items():
        yield f"skipped      {len(names)} tasks are in neither: {', '.join(names)} ({reason})"
    if summary.measure == "mean reward":
        yield f"pass@1       {summary.pass_at_1}   a trial passes with reward 1"
    elif summary.mean_reward.n and abs(summary.mean_reward.mean - summary.pass_at_1.mean) > 1e-9:
        yield f"mean reward  {summary.mean_reward.mean:.3f}"
    yield from _at_k("pass@", summary.pass_at)
    yield from _at_k("pass^", summary.pass_hat)
    yield from _groups("by category", summary.by_category)
    yield from _groups("by difficulty", summary.by_difficulty)
    if summary.verdicts:
        yield "verdicts     " + ", ".join(f"{name} {n}" for name, n in summary.verdicts.items())
    if summary.causes:
        yield "not graded   " + ", ".join(f"{name} {n}" for name, n in summary.causes.items())
    yield _usage(summary)
    for name, value in summary.own.items():
        yield f"{name:<12} {value:g}"


def _at_k(word: str, figures: Sequence[AtK]) -> Iterable[str]:
    for figure in figures:
        left_out = f"   ({figure.excluded} tasks have fewer graded attempts)" if figure.excluded else ""
        yield f"{word + str(figure.k):<12} {figure.estimate}{left_out}"


def _groups(title: str, groups: Sequence[Group]) -> Iterable[str]:
    if len(groups) > 1:
        yield title
        width = max(len(group.name) for group in groups)
        for group in groups:
            yield f"  {group.name:<{width}}  {group.passed}/{group.graded}  {group.estimate}"


def _usage(summary: Summary) -> str:
    used = summary.usage
    tokens = (
        f"{used.prompt_tokens:,} tokens in ({used.cached_tokens:,} cached), {used.completion_tokens:,} out"
    )
    cost = f", ${used.cost_usd:.2f}" if used.cost_usd is not None else ""
    return f"used         {tokens}{cost}; {duration(summary.seconds)} of trials"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lines of a table for a terminal."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
