"""What a run of YC-Bench leaves: its measure is the mean score, and funds are drawn over time."""

import os
import sys
from pathlib import Path

import pytest
from hermes_benchmarks import benchmark_cli
from hermes_benchmarks.report import read_run, write_report
from hermes_benchmarks.report.plots import lines
from hermes_benchmarks.ycb import YcBench
from hermes_benchmarks.ycb.simulation import funds_over_time

PYTHON = os.environ.get("HERMES_YCB_PYTHON", sys.executable)


@pytest.mark.ycb
@pytest.mark.filterwarnings("ignore:local sandboxes without isolation")
def test_a_run_is_reported_by_its_mean_score_with_a_line_of_funds_for_each_world(tmp_path: Path) -> None:
    command = ["evaluate", "--agent", "idle", "--output", str(tmp_path), "--env.simulator_python", PYTHON]
    assert benchmark_cli(YcBench, [*command, "--env.presets", '["fast_test"]', "--env.seeds", "[1, 2]"]) == 0
    (folder,) = tmp_path.iterdir()
    run = read_run(folder)
    assert run.summary.headline == run.summary.mean_reward
    assert [(record.reward, record.info["incomplete"]) for record in run.records] == [(0, False)] * 2
    assert [len(record.info["series"]) for record in run.records] == [1, 1]
    write_report(run, formats=["html"])
    page = (folder / "report.html").read_text()
    assert page.count("<polyline") == 2
    assert "mean reward, 95% interval" in page
    assert (folder / "trials" / "fast_test-1__1" / "verifier" / "journal.jsonl").is_file()


def test_points_of_the_curve_are_where_time_or_funds_changed() -> None:
    journal = b"""{"sim_time": "2025-01-01 09:00:00.000000", "funds_cents": 100}
{"sim_time": "2025-01-01 09:00:00.000000", "funds_cents": 100}
{"sim_time": "2025-01-02 21:00:00.000000", "funds_cents": -50}
"""
    assert funds_over_time(journal) == [(0.0, 1.0), (1.5, -0.5)]


def test_a_drawing_holds_hostile_names_and_odd_series() -> None:
    drawing = lines([("<script>", [(0, 1), (1, -2)]), ("flat", [(5, 0)]), ("empty", [])])
    assert drawing.count("<polyline") == 2
    assert "<script>" not in drawing
