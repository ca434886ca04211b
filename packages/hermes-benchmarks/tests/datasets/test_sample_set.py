"""The packaged tasks judge their authors' solutions, their scripts, and doing nothing, as their README says."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hermes_benchmarks.datasets import load_dataset_tasks, sample_path
from hermes_envs.harbor import Task

TASKS = load_dataset_tasks("sample")
NOT_SOLVED = {"rotate-logs": 0.0, "orders-report": 0.5}


class Machine:
    """A working folder as in a local sandbox: the environment is set up, tests and logs lie beside it."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task, self.folder = task, folder
        self.bash(str(task.environment_dir / "setup.sh"))

    def bash(self, *arguments: str, check: bool = True) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TASK_ROOT": str(self.folder)}
        done = subprocess.run(
            ["bash", *arguments],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def play(self) -> None:
        """Carry out `solution/turns.json` with plain means."""
        for turn in json.loads((self.task.solution_dir / "turns.json").read_text()):
            for call in turn.get("calls", []):
                arguments = call["arguments"]
                path = self.folder / arguments.get("path", "")
                if call["name"] == "terminal":
                    self.bash("-c", arguments["command"], check=False)
                elif call["name"] == "write_file":
                    path.write_text(arguments["content"])
                elif call["name"] == "patch":
                    assert path.read_text().count(arguments["old_string"]) == 1
                    path.write_text(
                        path.read_text().replace(arguments["old_string"], arguments["new_string"])
                    )
                else:
                    assert call["name"] == "read_file"
                    assert path.is_file()

    def reward(self) -> float:
        shutil.copytree(self.task.tests_dir, self.folder / "tests")
        self.bash(str(self.folder / "tests" / "test.sh"))
        logs = self.folder / "logs" / "verifier"
        summary = json.loads((logs / "ctrf.json").read_text())["results"]["summary"]
        reward = float((logs / "reward.txt").read_text())
        assert (summary["failed"] == 0) == (reward == 1)
        return reward


@pytest.fixture(params=TASKS, ids=lambda task: task.name)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(request.param, tmp_path)


def test_the_solution_is_worth_1(machine: Machine) -> None:
    machine.bash(str(machine.task.solution_dir / "solve.sh"))
    assert machine.reward() == 1


def test_doing_nothing_is_worth_0(machine: Machine) -> None:
    assert machine.reward() == 0


@pytest.mark.slow  # `tb2 evaluate` alone plays them all too
def test_the_script_gets_what_the_readme_says(machine: Machine) -> None:
    machine.play()
    assert machine.reward() == NOT_SOLVED.get(machine.task.name, 1)


def test_the_set_is_as_its_readme_describes() -> None:
    assert len(TASKS) == 12
    assert len({task.config.category for task in TASKS}) >= 6
    readme = (sample_path() / "README.md").read_text()
    assert set(re.findall(r"^\| ([a-z-]+) \|", readme, re.MULTILINE)) == set(NOT_SOLVED) | {"task"}
    turns = [len(json.loads((task.solution_dir / "turns.json").read_text())) for task in TASKS]
    assert sum(count >= 4 for count in turns) >= 10
    for task in TASKS:
        assert not task.warnings
        assert task.config.local


def test_what_the_tasks_share_is_equal_in_all_of_them() -> None:
    marker = "# From here on every sample task is the same"
    assert len({(task.environment_dir / "Dockerfile").read_text() for task in TASKS}) == 1
    assert len({(task.tests_dir / "test.sh").read_text() for task in TASKS}) == 1
    assert len({(task.tests_dir / "check.py").read_text().split(marker)[1] for task in TASKS}) == 1
    for task in TASKS:
        for recipe in task.tests_dir.glob("make_*.sh"):
            assert (
                recipe.read_text().splitlines()[2:]
                == (task.environment_dir / "setup.sh").read_text().splitlines()[2:]
            )
