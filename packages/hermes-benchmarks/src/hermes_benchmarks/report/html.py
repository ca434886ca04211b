"""The report as one HTML file that needs nothing else: plots, tables, every trajectory.

Models and tasks write much of what is shown here, so nothing of it is ever markup: text goes in through Jinja's
escaping or, in the browser, as text nodes; data goes in as JSON without `<`; and the page's own content security
policy allows its one script and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hermes_benchmarks.progress import duration
from hermes_benchmarks.report.data import RunData
from hermes_benchmarks.report.plots import plots
from hermes_benchmarks.report.trajectories import compact

if TYPE_CHECKING:
    from jinja2 import Environment

    from hermes_benchmarks.record import TrialRecord

ASSETS = files(__name__.rpartition(".")[0]) / "assets"
GENEROUS, FRUGAL = 12_000, 3_000
"""Characters kept of one text in a trajectory, in a report of few and of many trials."""
MANY = 300


def to_html(run: RunData) -> str:
    """The whole page, with every trajectory in it."""
    limit = GENEROUS if len(run.records) <= MANY else FRUGAL
    details = {record.name: packed(trial_detail(run, record, limit)) for record in run.records}
    return render(run, details=details, live=False)


def render(run: RunData, *, details: Mapping[str, str], live: bool) -> str:
    """The page; a live one fetches what the other carries within it."""
    script = (ASSETS / "report.js").read_text("utf-8")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            **summary_context(run),
            style=(ASSETS / "report.css").read_text("utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            rows=embeddable([row(record) for record in run.records]),
            details=embeddable(details),
            live=live,
        )
    )


def render_summary(run: RunData) -> str:
    """The part of the page above the table of trials."""
    return environment().get_template("summary.html.j2").render(**summary_context(run))


def summary_context(run: RunData) -> dict[str, Any]:
    """What both templates know."""
    return {"run": run, "plan": run.plan, "summary": run.summary, "plots": plots(run), "duration": duration}


def environment() -> Environment:
    """The templates, with escaping on for all of them."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    names = ("report.html.j2", "summary.html.j2")
    sources = {name: (ASSETS / name).read_text("utf-8") for name in names}
    return Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def embeddable(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: object) -> str:
    """JSON, compressed (zlib) and in base64; the browser unpacks it when its row is opened."""
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), 6)).decode()


def row(record: TrialRecord) -> dict[str, Any]:
    """What the table shows of a trial."""
    return {
        "name": record.name,
        "task": record.task,
        "attempt": record.attempt,
        "verdict": str(record.verdict),
        "graded": record.graded,
        "reward": record.reward,
        "category": record.category,
        "difficulty": record.difficulty,
        "turns": record.turns,
        "seconds": record.seconds,
        "cost": record.usage.cost_usd,
        "note": record.note[:300],
    }


def trial_detail(run: RunData, record: TrialRecord, limit: int) -> dict[str, Any]:
    """Everything that the panel of a trial shows."""
    folder = run.folder.trial(record.task, record.attempt)
    return {"record": record.to_dict(), **compact(folder.path, limit)}
