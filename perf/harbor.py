"""Harbor and `tb2` on the same task folders, images and width: wall, client CPU, overhead per trial.

    python perf/harbor.py TASKS [--harbor ENV/bin/harbor] [--names a,b] [--width 2] [--rounds 2] [--json FILE]

TASKS is a folder of Harbor tasks whose images are here. Harbor is a package of its own (`pip install harbor`, Python 3.12
or later, in an environment beside this project's) and drives `docker compose`. The two take turns; figures are compared
within one run of this script. A trial's overhead is its wall time less its agent's and its verifier's phases; Harbor's
is also given less its environment's, which is the start of its container, while ours always holds that start.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

QUIETLY = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HARBOR_TELEMETRY": "0", "DO_NOT_TRACK": "1"}
"""For Harbor's sake: without it a machine that is offline waits for lookups that have nothing to do with the run."""
CODE = "from hermes_benchmarks.cli.tb2 import main; main()"


def timed(argv: list[str], folder: Path) -> tuple[float, float]:
    """Wall seconds, and CPU seconds of the client with its children; what a daemon does is not among them."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (folder / "log.txt").open("ab") as log:
        env = os.environ | QUIETLY
        code = subprocess.run(argv, cwd=folder, env=env, stdout=log, stderr=log, check=False).returncode
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        raise SystemExit(f"{argv[0]} exited with {code}:\n{(folder / 'log.txt').read_text()[-3000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(folder: Path, name: str, options: argparse.Namespace) -> dict:
    argv = [sys.executable, "-c", CODE, "evaluate", "--dataset", str(options.tasks), "--backend", "docker"]
    argv += ["--agent", options.agent, "-n", str(options.width), "--name", name]
    argv += ["--tasks", options.names] if options.names else []
    wall, cpu = timed(argv, folder)
    records = [json.loads(path.read_text()) for path in (folder / "runs" / name).glob("trials/*/result.json")]
    overheads = [one["seconds"] - one["timings"]["agent"] - one["timings"]["reward"] for one in records]
    return {
        "wall": wall,
        "cpu": cpu,
        "rewards": {one["task"]: one["reward"] for one in records},
        "overheads": overheads,
        "strict overheads": overheads,
        "agent and verifier": sum(one["timings"]["agent"] + one["timings"]["reward"] for one in records),
    }


def harbor(folder: Path, name: str, options: argparse.Namespace) -> dict:
    argv = [options.harbor, "run", "-p", str(options.tasks), "-a", options.agent, "-n", str(options.width)]
    argv += ["-o", str(folder / "jobs"), "--job-name", name, "-y", "-q"]
    for task in filter(None, (options.names or "").split(",")):
        argv += ["-i", task]
    wall, cpu = timed(argv, folder)
    paths = (folder / "jobs" / name).glob("*/result.json")
    records = [json.loads(path.read_text()) for path in paths]

    def seconds(record: dict) -> float:
        if not record or not record["finished_at"]:
            return 0.0
        begin, end = (datetime.fromisoformat(record[key]) for key in ("started_at", "finished_at"))
        return (end - begin).total_seconds()

    judged = [seconds(one) - seconds(one["agent_execution"]) - seconds(one["verifier"]) for one in records]
    starts = [seconds(one["environment_setup"]) for one in records]
    return {
        "wall": wall,
        "cpu": cpu,
        "rewards": {one["task_name"]: (one["verifier_result"] or {}).get("rewards") for one in records},
        "overheads": judged,
        "strict overheads": [whole - start for whole, start in zip(judged, starts, strict=True)],
        "agent and verifier": sum(
            seconds(one["agent_execution"]) + seconds(one["verifier"]) for one in records
        ),
    }


def compare(options: argparse.Namespace) -> dict:
    sides = {"tb2": ours, "harbor": harbor}
    found: dict[str, list[dict]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory(prefix="hermes-perf-") as folder:
        for turn in range(options.rounds):
            order = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for side in order:
                found[side].append(sides[side](Path(folder), f"{side}-{turn}", options))
    figures: dict[str, object] = {"load average": os.getloadavg()[0], "rounds": options.rounds}
    for side, rounds in found.items():
        figures[f"{side}: trials"] = sum(len(one["overheads"]) for one in rounds)
        figures[f"{side}: rewards"] = rounds[-1]["rewards"]
        figures[f"{side}: wall s"] = statistics.fmean(one["wall"] for one in rounds)
        figures[f"{side}: client CPU s"] = statistics.fmean(one["cpu"] for one in rounds)
        figures[f"{side}: agent and verifier s"] = statistics.fmean(
            one["agent and verifier"] for one in rounds
        )
        for kind in ("overheads", "strict overheads"):
            trials = [seconds for one in rounds for seconds in one[kind]]
            figures[f"{side}: {kind[:-1]} a trial, median s"] = statistics.median(trials)
    for name, key, target in (
        ("overhead", "overhead a trial, median s", 0.25),
        ("overhead, Harbor's without its start", "strict overhead a trial, median s", 0.25),
        ("wall", "wall s", 0.75),
        ("client CPU", "client CPU s", 0.4),
    ):
        figures[f"tb2 / harbor, {name} (target {target})"] = (
            figures[f"tb2: {key}"] / figures[f"harbor: {key}"]
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", type=Path, help="a folder of Harbor tasks")
    parser.add_argument("--harbor", default="harbor", help="the command, where it is not on PATH")
    parser.add_argument("--names", default="", help="tasks to run, with commas between; all by default")
    parser.add_argument("--agent", choices=["oracle", "nop"], default="oracle")
    parser.add_argument("--width", type=int, default=2, help="trials at once")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each")
    parser.add_argument("--json", type=Path, default=None, help="write the figures here")
    options = parser.parse_args()
    options.tasks = options.tasks.resolve()
    if shutil.which(options.harbor) is None:
        raise SystemExit(
            "there is no Harbor here: `python3.12 -m venv ENV && ENV/bin/pip install harbor`, then --harbor ENV/bin/harbor"
        )
    composed = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if composed.returncode:
        raise SystemExit("Harbor needs `docker compose`: install Docker's Compose plugin")
    figures = compare(options)
    for name, value in figures.items():
        print(f"{name:<60} {value:.3f}" if isinstance(value, float) else f"{name:<60} {value}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
