"""The examples do what they say."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(script: str, *argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / script), *argv]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=500, check=False)


def rewards(folder: Path) -> dict[str, float]:
    (lines,) = folder.glob("runs/*/trials.jsonl")
    return {trial["task"]: trial["reward"] for trial in map(json.loads, lines.read_text().splitlines())}


def test_a_benchmark_in_one_file_has_the_harness_behind_it(tmp_path: Path) -> None:
    done = run("sums_benchmark.py", "evaluate", "--agent", "awk", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rewards(tmp_path) == {"sum-10": 1, "sum-100": 1, "sum-1000": 1}


def test_doing_nothing_scores_nothing_on_it(tmp_path: Path) -> None:
    done = run("sums_benchmark.py", "evaluate", "--agent", "nop", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(rewards(tmp_path).values()) == {0}


def test_its_tasks_can_be_listed(tmp_path: Path) -> None:
    done = run("sums_benchmark.py", "ls", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sum-1000" in done.stdout
