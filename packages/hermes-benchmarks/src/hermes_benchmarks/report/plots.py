"""Plots drawn as SVG, without a library: rates with intervals, distributions, where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_benchmarks.report.data import RunData

if TYPE_CHECKING:
    from markupsafe import Markup

    from hermes_benchmarks.record import TrialRecord
    from hermes_benchmarks.summary import Group

WIDTH, ROW, LABEL = 460, 22, 170
PHASES = ("sandbox", "prepare", "agent", "reward", "cleanup")


def plots(run: RunData) -> list[tuple[str, Markup]]:
    """Titles and drawings; a plot that would show nothing is left out."""
    found: list[tuple[str, Markup]] = []
    measure = "Pass rate" if run.summary.measure == "pass@1" else "Mean reward"
    for title, groups in (
        (f"{measure} by category", run.summary.by_category),
        (f"{measure} by difficulty", run.summary.by_difficulty),
    ):
        if len(groups) > 1:
            found.append((f"{title}, with 95% intervals", intervals(groups)))
    graded = [record for record in run.records if record.graded]
    passed = [float(record.turns) for record in graded if record.verdict == "passed"]
    other = [float(record.turns) for record in graded if record.verdict != "passed"]
    if any(passed) or any(other):
        found.append(("Turns: passed (filled) and not (outline)", histogram(passed, other)))
    seconds = {phase: sum(record.timings.get(phase, 0.0) for record in run.records) for phase in PHASES}
    if sum(seconds.values()) > 0:
        found.append(("Seconds by phase, over all trials", bars(seconds)))
    return found + series(run.records)


def series(records: Sequence[TrialRecord]) -> list[tuple[str, Markup]]:
    """The benchmark's own curves, from `info["series"]`: a plot for each title, a line for each trial."""
    found: dict[str, list[tuple[str, Sequence[tuple[float, float]]]]] = {}
    for record in records:
        for title, points in record.info.get("series", {}).items():
            found.setdefault(str(title), []).append((record.name, points))
    return [(title, lines(curves)) for title, curves in found.items()]


def lines(curves: Sequence[tuple[str, Sequence[tuple[float, float]]]], most: int = 24) -> Markup:
    """Lines over common axes; each is named when pointed at. Of many, the first `most`."""
    curves = [(name, points) for name, points in curves if points][:most]
    xs = [x for _, points in curves for x, _ in points] or [0.0]
    ys = [y for _, points in curves for _, y in points] or [0.0]
    left, right, low, high = min(xs), max(xs), min(*ys, 0.0), max(*ys, 0.0)
    height, margin = 200, 70

    def at(x: float, y: float) -> tuple[str, str]:
        across, up = (x - left) / ((right - left) or 1), (y - low) / ((high - low) or 1)
        return _n(margin + (WIDTH - margin - 10) * across), _n(8 + (height - 16) * (1 - up))

    parts: list[Markup] = []
    for value in sorted({low, 0.0, high}):
        _, y = at(left, value)
        parts.append(_svg('<line x1="{}" y1="{y}" x2="{}" y2="{y}" class="axis"/>', margin, WIDTH - 10, y=y))
        parts.append(
            _svg('<text x="{}" y="{}" class="label">{:,.4g}</text>', margin - 6, float(y) + 4, value)
        )
    for name, points in curves:
        path = " ".join(",".join(at(x, y)) for x, y in points)
        parts.append(_svg('<polyline points="{}" class="line"><title>{}</title></polyline>', path, name))
    for x in sorted({left, right}):
        parts.append(_svg('<text x="{}" y="{}" class="tick">{:g}</text>', at(x, low)[0], height + 14, x))
    return _drawing(parts, height + 20)


def intervals(groups: Sequence[Group]) -> Markup:
    """A dot and a whisker for each group."""
    span = WIDTH - LABEL - 60
    parts: list[Markup] = []
    for number, group in enumerate(groups):
        y, estimate = number * ROW + 14, group.estimate
        low, dot, high = (LABEL + span * value for value in (estimate.low, estimate.mean, estimate.high))
        parts.append(_svg('<text x="{}" y="{}" class="label">{}</text>', LABEL - 8, y + 4, group.name[:24]))
        parts.append(_svg('<line x1="{}" y1="{y}" x2="{}" y2="{y}" class="axis"/>', LABEL, LABEL + span, y=y))
        parts.append(
            _svg('<line x1="{}" y1="{y}" x2="{}" y2="{y}" class="whisker"/>', _n(low), _n(high), y=y)
        )
        parts.append(_svg('<circle cx="{}" cy="{}" r="4" class="dot"/>', _n(dot), y))
        count = f"{group.passed}/{group.graded}"
        parts.append(_svg('<text x="{}" y="{}" class="count">{}</text>', LABEL + span + 8, y + 4, count))
    return _drawing(parts, len(groups) * ROW + 8)


def histogram(passed: Sequence[float], other: Sequence[float], bins: int = 20) -> Markup:
    """Two distributions over one axis."""
    top = max([*passed, *other, 1.0])
    width = max(1.0, -(-top // bins))
    count = int(top // width) + 1
    bars_of = [
        [sum(i * width <= x < (i + 1) * width for x in xs) for i in range(count)] for xs in (passed, other)
    ]
    highest, height, step = max(map(max, bars_of)) or 1, 110, (WIDTH - 40) / count
    parts: list[Markup] = []
    for kind, values in zip(("bar", "outline"), bars_of, strict=True):
        for i, value in enumerate(values):
            if value:
                h = height * value / highest
                x, y = _n(20 + i * step + 1), _n(height - h + 6)
                shape = '<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>'
                parts.append(_svg(shape, x, y, _n(max(1.0, step - 2)), _n(h), kind))
    for i in sorted({0, count // 2, count - 1}):
        x = _n(20 + (i + 0.5) * step)
        parts.append(_svg('<text x="{}" y="{}" class="tick">{:g}</text>', x, height + 22, i * width))
    return _drawing(parts, height + 28)


def bars(values: dict[str, float]) -> Markup:
    """A horizontal bar for each value."""
    span, most = WIDTH - LABEL - 70, max(values.values()) or 1.0
    parts: list[Markup] = []
    for number, (name, value) in enumerate(values.items()):
        y = number * ROW
        parts.append(_svg('<text x="{}" y="{}" class="label">{}</text>', LABEL - 8, y + 18, name))
        wide = _n(max(1.0, span * value / most))
        parts.append(_svg('<rect x="{}" y="{}" width="{}" height="12" class="bar"/>', LABEL, y + 8, wide))
        parts.append(
            _svg('<text x="{}" y="{}" class="count">{:.1f}</text>', float(wide) + LABEL + 6, y + 18, value)
        )
    return _drawing(parts, len(values) * ROW + 8)


def _drawing(parts: Sequence[Markup], height: float) -> Markup:
    from markupsafe import Markup

    inside = Markup("").join(parts)
    return _svg('<svg viewBox="0 0 {} {}" role="img" class="plot">{}</svg>', WIDTH, _n(height), inside)


def _svg(shape: str, *values: Any, **named: Any) -> Markup:
    """Fill in a shape; text is escaped."""
    from markupsafe import Markup

    return Markup(shape).format(*values, **named)


def _n(value: float) -> str:
    return f"{value:.1f}"
