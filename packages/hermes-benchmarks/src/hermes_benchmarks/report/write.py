"""Writing the reports into the run's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.files import to_json, write_atomic
from hermes_benchmarks.report.data import RunData
from hermes_benchmarks.report.html import to_html
from hermes_benchmarks.report.junit import to_junit
from hermes_benchmarks.report.markdown import to_markdown

FORMATS: Mapping[str, tuple[str, Callable[[RunData], bytes]]] = {
    "md": ("report.md", lambda run: to_markdown(run).encode("utf-8", "replace")),
    "json": ("report.json", lambda run: to_json(report_json(run))),
    "junit": ("report.xml", lambda run: to_junit(run)),
    "html": ("report.html", lambda run: to_html(run).encode("utf-8", "replace")),
}
"""File name and writer of each format."""


def report_json(run: RunData) -> dict[str, object]:
    """The report as data: the figures, and every trial."""
    return {
        "version": 1,
        "run": run.folder.name,
        "benchmark": run.plan.benchmark,
        "agent": run.plan.agent,
        "model": run.plan.model,
        "backend": run.plan.backend,
        "identity": run.plan.identity.hash,
        "summary": run.summary.to_dict(),
        "trials": [record.to_dict() for record in run.records],
        "missing": [{"task": task, "attempt": attempt} for task, attempt in run.missing],
    }


def write_report(run: RunData, formats: Sequence[str], folder: Path | None = None) -> list[Path]:
    """Write reports in the given formats and return their paths.

    Raises:
        UsageError: A format is unknown.
    """
    written: list[Path] = []
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"unknown report format {name!r}; there are: {', '.join(FORMATS)}")
        file, render = FORMATS[name]
        path = (folder or run.folder.path) / file
        write_atomic(path, render(run))
        written.append(path)
    return written
