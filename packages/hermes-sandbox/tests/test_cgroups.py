"""Kills for want of memory are counted under both versions of control groups, from outside and from inside."""

import subprocess
from pathlib import Path

import hermes_sandbox
import pytest
from hermes_sandbox.cgroups import oom_kills

RUNNER = Path(hermes_sandbox.__file__).parent / "runner" / "runner.bash"

V1 = "12:pids:/app/7\n5:memory:/app/7\n3:cpu,cpuacct:/app/7\n0::/\n"
V1_JOINT = "5:cpuset,memory:/app/7\n"
V2 = "0::/app.slice/app-7.scope\n"
OOM_CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
EVENTS = "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"

TREES = {
    "version 1": (V1, "memory/app/7/memory.oom_control", OOM_CONTROL),
    "version 1, several controllers in one tree": (V1_JOINT, "memory/app/7/memory.oom_control", OOM_CONTROL),
    "version 2": (V2, "app.slice/app-7.scope/memory.events", EVENTS),
}
INSIDE = {
    "version 1 in a container": (V1, "memory/memory.oom_control", OOM_CONTROL),
    "version 2 in a container": ("0::/\n", "memory.events", EVENTS),
    "version 2 in a container that shows the host's path": (V2, "memory.events", EVENTS),
}


def make(root: Path, own: str, file: str, text: str) -> None:
    (root / "7").mkdir()
    (root / "7" / "cgroup").write_text(own)
    (root / "groups" / file).parent.mkdir(parents=True)
    (root / "groups" / file).write_text(text)


def counted_inside(root: Path) -> str:
    """What the runner's own functions find."""
    source = RUNNER.read_text()
    functions = source[
        source.index("find_oom_file()") : source.index("# Runs one command and reports its end")
    ]
    script = f'{functions}\nfind_oom_file "$1/groups" "$1/7/cgroup"; oom_kills; echo "$oom"'
    return subprocess.check_output(["bash", "-c", script, "bash", str(root)], text=True).strip()


@pytest.mark.parametrize("tree", TREES)
def test_from_outside(tmp_path: Path, tree: str) -> None:
    make(tmp_path, *TREES[tree])
    assert oom_kills(7, tmp_path / "groups", tmp_path) == 3


@pytest.mark.parametrize("tree", [*TREES, *INSIDE])
def test_from_inside(tmp_path: Path, tree: str) -> None:
    make(tmp_path, *(TREES | INSIDE)[tree])
    assert counted_inside(tmp_path) == "3"


def test_what_cannot_be_seen_counts_as_none(tmp_path: Path) -> None:
    make(tmp_path, "", "none", "")
    assert oom_kills(7, tmp_path / "groups", tmp_path) == 0
    assert oom_kills(8, tmp_path / "groups", tmp_path) == 0
    assert counted_inside(tmp_path) == "0"
