"""The report as Markdown, for pull requests and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_benchmarks.progress import duration
from hermes_benchmarks.report.data import RunData
from hermes_benchmarks.summary import Group


def to_markdown(run: RunData) -> str:
    """The whole report."""
    return "\n".join([*_head(run), *_figures(run), *_groups(run), *_trials(run)]) + "\n"


def _head(run: RunData) -> Iterable[str]:
    plan = run.plan
    yield f"# {cell(plan.benchmark)}: {cell(plan.model or plan.agent)}"
    yield ""
    yield f"Agent `{cell(plan.agent)}`, backend `{cell(plan.backend)}`, started {plan.created}, "
    yield f"run `{cell(run.folder.name)}`, identity `{plan.identity.hash}`."
    yield ""


def _figures(run: RunData) -> Iterable[str]:
    summary, rows = run.summary, list[tuple[str, str]]()
    headline = summary.headline
    shown = str(headline) if headline else f"none: only {summary.coverage:.0%} of the trials are graded"
    rows.append((f"**{summary.measure}**", f"**{shown}**"))
    rows.append(("graded trials passed", f"{summary.passed} of {summary.graded}"))
    rows.append(
        ("with errors as failures", f"{summary.passed} of {summary.planned} ({summary.pass_rate_all:.1%})")
    )
    rows += [(f"pass@{x.k}", f"{x.estimate} ({x.excluded} tasks excluded)") for x in summary.pass_at]
    rows += [(f"pass^{x.k}", f"{x.estimate} ({x.excluded} tasks excluded)") for x in summary.pass_hat]
    other = f"{summary.mean_reward.mean:.3f}" if summary.measure == "pass@1" else str(summary.pass_at_1)
    rows.append(("mean reward" if summary.measure == "pass@1" else "pass@1", other))
    rows += [(f"skipped: {cell(why)}", ", ".join(map(cell, names))) for why, names in summary.skipped.items()]
    used = summary.usage
    rows.append(
        (
            "tokens in (cached) / out",
            f"{used.prompt_tokens:,} ({used.cached_tokens:,}) / {used.completion_tokens:,}",
        )
    )
    if used.cost_usd is not None:
        rows.append(("cost", f"${used.cost_usd:.2f}"))
    rows.append(("time over all trials", duration(summary.seconds)))
    rows += [(cell(name), f"{value:g}") for name, value in summary.own.items()]
    yield from table(("figure", "value"), rows)
    yield ""
    yield from (f"* {cell(note)}" for note in run.notes)
    yield from ("",) if run.notes else ()
    yield from table(("verdict", "trials"), [(name, str(n)) for name, n in summary.verdicts.items()])
    yield ""


def _groups(run: RunData) -> Iterable[str]:
    for title, groups in (("category", run.summary.by_category), ("difficulty", run.summary.by_difficulty)):
        if len(groups) > 1:
            yield from table((title, "passed", "graded", "rate"), [_group(group) for group in groups])
            yield ""


def _group(group: Group) -> tuple[str, ...]:
    return cell(group.name), str(group.passed), str(group.graded), str(group.estimate)


def _trials(run: RunData) -> Iterable[str]:
    yield "## Trials"
    yield ""
    rows: list[tuple[str, ...]] = []
    for record in run.records:
        reward = "" if record.reward is None else f"{record.reward:g}"
        note = cell(record.note)[:200]
        seconds = f"{record.seconds:.1f}"
        rows.append((cell(record.name), str(record.verdict), reward, str(record.turns), seconds, note))
    rows += [(cell(f"{task}__{n}"), "not run", "", "", "", "") for task, n in run.missing]
    yield from table(("trial", "verdict", "reward", "turns", "seconds", "note"), rows)


def cell(text: str) -> str:
    """Text that cannot break out of a table's cell, or out of Markdown into HTML."""
    flat = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace("[", "\\[").replace("]", "\\]")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """The lines of a Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
