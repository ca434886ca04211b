"""SIGKILL at random moments, then resume: no trial is lost and none graded twice."""

import asyncio
import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from hermes_benchmarks_command import PATIENCE, start, tb2
from hermes_sandbox import get_backend

SEED = int(os.environ.get("HERMES_SEED", "1"))


def results(run):
    found = {}
    for path in run.glob("trials/*/result.json"):
        found[path.parent.name] = path.read_bytes()
    return found


def graded(found):
    return {name: data for name, data in found.items() if json.loads(data)["graded"]}


def unfinished(run):
    """Trials that had begun and have no result."""
    return [path for path in run.glob("trials/*") if not (path / "result.json").exists()]


def run_name(tmp_path):
    """A name that no other run on this machine has."""
    return f"kills-{os.getpid()}-{tmp_path.name}"


def sandboxes(backend, name):
    """The sandboxes of a run that exist."""

    async def listed():
        found = get_backend(backend)
        try:
            return {info.id for info in await found.list({"benchmark.run": name})}
        finally:
            await found.close()

    return asyncio.run(listed())


def await_sandbox(backend, name, command):
    """Wait until a run has a sandbox, or ends."""
    deadline = time.monotonic() + PATIENCE
    while not sandboxes(backend, name) and command.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def inhabitants(ids):
    """Processes of this machine that were started in one of these local sandboxes."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environ = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        found += [folder.name for id in ids if id.encode() in environ]
    return found


def left(look):
    """What is found in the end, where it may take a while to go."""
    deadline = time.monotonic() + 60
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def storm(tmp_path, kills, options, longest, backend="local", patience=PATIENCE):
    """Kill a run that many times, resuming it in between, and let it end; every grade must stay as it was first written.

    A run that is done before the last kill is given more attempts.
    """
    rng = random.Random(SEED)
    run = tmp_path / "runs" / run_name(tmp_path)
    kept, done, hit, orphans, attempts = {}, False, 0, set(), 1
    while kills > 0 or not done:
        attempts += done
        begun = (run / "config.json").exists()
        argv = ("resume", run) if begun else ("evaluate", "--name", run.name, "--backend", backend, *options)
        command = start(tmp_path, *argv, "--attempts", attempts)
        if kills > 0:
            if not orphans:  # at least once while a trial has its sandbox, however slow this machine is
                await_sandbox(backend, run.name, command)
            elif rng.random() < 0.8:  # mostly once trials run
                command.await_line()
            time.sleep(rng.uniform(0.0, longest))
            command.kill()
        out, err = command.communicate(timeout=patience)
        assert "Traceback" not in out + err, err
        hit += bool(unfinished(run))
        orphans |= sandboxes(backend, run.name)
        found = graded(results(run))
        assert {name: found.get(name) for name in kept} == kept, "a graded result was lost or changed"
        kept, done, kills = found, command.returncode == 0, kills - 1
        assert done or kills >= 0, err
    # A daemon may need longer to remove what is left than a run waits for it: the next one goes on.
    for _ in range(5):
        if sandboxes(backend, run.name):
            attempts += 1
            code, _, err = tb2(tmp_path, "resume", run, "--attempts", attempts, timeout=patience)
            assert code == 0, err
            kept = graded(results(run))
    assert hit, "no kill hit a running trial: the test shows nothing"
    assert orphans, "no kill left a sandbox behind: the test shows nothing"
    lines = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    pairs = [(line["task"], line["attempt"]) for line in lines if line["graded"]]
    assert len(pairs) == len(set(pairs)) == len(kept)
    assert sorted(kept) == sorted(p.name for p in (run / "trials").iterdir())
    assert sandboxes(backend, run.name) == set()
    assert left(lambda: inhabitants(orphans)) == []
    return kept


FEW = ("--tasks", "git-recover,log-report,rotate-logs,markdown-toc")


def slowly(seconds):
    """A fast machine must not be done before the first kill."""
    return ("--run.agent_options", json.dumps({"latency": seconds}))


@pytest.mark.timeout(2000)
def test_ten_kills_on_the_sample(tmp_path):
    assert len(storm(tmp_path, 10, ("-n", "3", *FEW, *slowly(0.1)), 0.6)) >= 4


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_two_hundred_kills_on_the_sample(tmp_path):
    assert len(storm(tmp_path, 200, ("-n", "3", *slowly(0.3)), 5.0, patience=1000)) >= 12
    assert tb2(tmp_path, "report", tmp_path / "runs" / run_name(tmp_path))[0] == 0


@pytest.mark.docker
@pytest.mark.timeout(2000)
def test_kills_with_containers_leave_none(tmp_path, test_image):
    few = ("--tasks", "log-report,markdown-toc")
    assert len(storm(tmp_path, 3, ("-n", "2", *few, *slowly(0.5)), 1.5, "docker")) >= 2


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(6000)
def test_two_hundred_kills_with_containers(tmp_path, test_image):
    storm(tmp_path, 200, ("-n", "3", *slowly(0.3)), 5.0, "docker", patience=1000)
    argv = ["docker", "ps", "-aq", "--filter", f"label=benchmark.run={run_name(tmp_path)}"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == ""
