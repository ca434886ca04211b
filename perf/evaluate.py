"""What the harness costs: start-up, the sample run, overhead per trial, width, reports.

    python perf/evaluate.py [help sample wide report docker] [--json FILE]

Prints a table and writes JSON. Every figure compares within one run on one machine: wall time against what latency and
measured CPU alone would take, overhead against the trial's own phases. Absolute seconds of a busy machine mean little.
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
from pathlib import Path

CORES = len(os.sched_getaffinity(0))


def timed(*argv: str, folder: Path, check: int | None = 0) -> tuple[float, float]:
    """Wall and CPU seconds (children included) of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if check is not None and done.returncode != check:
        raise SystemExit(
            f"{' '.join(argv)} exited with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tb2(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", "from hermes_benchmarks.cli.tb2 import main; main()", *arguments)


def results(run: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in run.glob("trials/*/result.json")]


def measure_help(folder: Path) -> dict:
    cpu = min(timed(*tb2("--help"), folder=folder)[1] for _ in range(5))
    bare = min(timed(sys.executable, "-c", "pass", folder=folder)[1] for _ in range(5))
    return {"tb2 --help, CPU s (target 0.7)": cpu, "bare interpreter, CPU s": bare}


def measure_sample(folder: Path) -> dict:
    figures = {}
    for agent in ("oracle", "nop", "scripted"):
        wall, cpu = timed(*tb2("evaluate", "--agent", agent, "--name", agent), folder=folder)
        rewards = [record["reward"] for record in results(folder / "runs" / agent)]
        figures[f"{agent}: wall s" + (" (target 20)" if agent == "oracle" else "")] = wall
        figures[f"{agent}: CPU s"] = cpu
        figures[f"{agent}: mean reward of {len(rewards)}"] = statistics.fmean(rewards)
    return figures


def measure_wide(folder: Path, *, latency: float, width: int, attempts: int) -> dict:
    """A model of fixed latency: the wall against max(latency bound, CPU / cores)."""
    argv = tb2(
        *("evaluate", "--name", "wide", "-n", str(width), "-k", str(attempts)),
        *("--run.agent_options", json.dumps({"latency": latency})),
    )
    wall, cpu = timed(*argv, folder=folder)
    turns = [record["turns"] * latency for record in results(folder / "runs" / "wide")]
    bound = max(latency_bound(turns, width), cpu / CORES)
    return {
        "trials": len(turns),
        "wall s": wall,
        "latency bound s": latency_bound(turns, width),
        "CPU s / cores": cpu / CORES,
        "wall / max(bounds) (target 1.05)": wall / bound,
        "CPU s a trial": cpu / len(turns),
    }


def latency_bound(turns: list[float], width: int) -> float:
    """The shortest time in which `width` workers can wait out all these latencies, by longest first."""
    workers = [0.0] * width
    for seconds in sorted(turns, reverse=True):
        workers[workers.index(min(workers))] += seconds
    return max(workers)


def measure_report(folder: Path) -> dict:
    """A run of 1,000 trials, its trajectories those of a sample run repeated to 40 steps each."""
    run = folder / "runs" / "oracle-like"
    timed(*tb2("evaluate", "--name", run.name), folder=folder)
    plan = json.loads((run / "config.json").read_text())
    names = [task["name"] for task in plan["tasks"]]
    plan["attempts"] = -(-1000 // len(names))
    (run / "config.json").write_text(json.dumps(plan))
    for name in names:
        source = run / "trials" / f"{name}__1"
        trajectory = json.loads((source / "trajectory.json").read_text())
        steps = (trajectory["steps"] * 40)[:40]
        trajectory["steps"] = [{**step, "step_id": n + 1} for n, step in enumerate(steps)]
        (source / "trajectory.json").write_text(json.dumps(trajectory))
        for attempt in range(2, plan["attempts"] + 1):
            target = run / "trials" / f"{name}__{attempt}"
            shutil.copytree(source, target)
            result = json.loads((target / "result.json").read_text())
            (target / "result.json").write_text(json.dumps({**result, "attempt": attempt}))
    wall, cpu = timed(*tb2("report", str(run)), folder=folder)
    page = run / "report.html"
    figures = {
        "trials": len(results(run)),
        "report, wall s (target 5)": wall,
        "report, CPU s": cpu,
        "report.html, MB": page.stat().st_size / 1e6,
    }
    return figures | measure_browser(page)


def measure_browser(page: Path) -> dict:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if binary is None:
        return {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("#trials tbody tr")
        seconds = time.perf_counter() - began
        browser.close()
    return {"opening it in Chromium, s (target 1)": seconds}


def measure_docker(folder: Path) -> dict:
    """Overhead of a trial in Docker: its seconds beyond image, agent and verifier."""
    for name, width in (("warm", "1"), ("docker", "1")):
        wall, cpu = timed(
            *tb2("evaluate", "--backend", "docker", "--agent", "nop", "--name", name, "-n", width),
            folder=folder,
        )
    records = results(folder / "runs" / "docker")
    overheads = [
        record["seconds"] - record["timings"]["agent"] - record["timings"]["reward"] for record in records
    ]
    phases = {
        phase: statistics.median(record["timings"].get(phase, 0.0) for record in records)
        for phase in ("sandbox", "prepare", "agent", "reward", "cleanup")
    }
    return {
        "trials": len(records),
        "wall s": wall,
        "harness and container CPU s": cpu,
        "overhead a trial, median s (target 2.5)": statistics.median(overheads),
        "overhead a trial, largest s": max(overheads),
        **{f"median {phase} s": seconds for phase, seconds in phases.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["help", "sample", "wide", "report"])
    parser.add_argument("--json", type=Path, default=None, help="write the figures here")
    parser.add_argument("--latency", type=float, default=20.0, help="seconds a turn for `wide`")
    parser.add_argument("--width", type=int, default=64, help="trials at once for `wide`")
    parser.add_argument("--attempts", type=int, default=17, help="attempts a task for `wide`")
    options = parser.parse_args()
    measures = {
        "help": measure_help,
        "sample": measure_sample,
        "wide": lambda f: measure_wide(
            f, latency=options.latency, width=options.width, attempts=options.attempts
        ),
        "report": measure_report,
        "docker": measure_docker,
    }
    found = {"cores": CORES, "load average": os.getloadavg()[0]}
    for part in options.parts:
        with tempfile.TemporaryDirectory(prefix="hermes-perf-") as folder:
            found[part] = measures[part](Path(folder))
        print(f"\n{part}")
        for name, value in found[part].items():
            print(
                f"  {name:<45} {value:.3f}" if isinstance(value, float) else f"  {name:<45} {value}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
