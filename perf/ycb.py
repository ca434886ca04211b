"""What a run of YC-Bench costs: the greedy policy's time, its commands' time, nine runs at once, memory.

    python perf/ycb.py [greedy idle] [--simulator-python PATH] [--json FILE]

Prints a table and writes JSON. Memory is the peak over the processes of an evaluation together, by PSS (pages that
processes share count once) and by RSS; a run's share is that of all, divided by the runs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CORES = len(os.sched_getaffinity(0))
YCB = (sys.executable, "-c", "from hermes_benchmarks.cli.ycb import main; main()")


class Memory(threading.Thread):
    """Looks at a process and its descendants ten times a second; keeps the peaks, in MB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.pss, self.rss, self.simulator = pid, 0.0, 0.0, 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.1):
            tree = descendants(self.pid)
            found = {pid: sizes(pid) for pid in tree}
            self.rss = max(self.rss, sum(rss for rss, _ in found.values()))
            self.pss = max(self.pss, sum(pss for _, pss in found.values()))
            servers = [found[pid][0] for pid, command in tree.items() if b"simulator.py\0serve" in command]
            self.simulator = max([self.simulator, *servers])


def descendants(root: int) -> dict[int, bytes]:
    """The command line of every process below `root`, by process id."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            commands[pid] = (entry / "cmdline").read_bytes()
        except OSError:
            continue
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: commands.get(pid, b"") for pid in below}


def sizes(pid: int) -> tuple[float, float]:
    """RSS and PSS in MB; zeros for a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    found = {
        line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith(("Rss", "Pss:"))
    }
    return found.get("Rss", 0.0), found.get("Pss", 0.0)


def evaluate(folder: Path, name: str, *arguments: str) -> tuple[float, Memory, list[dict]]:
    """Wall seconds, memory and results of one `ycb evaluate`."""
    began = time.perf_counter()
    argv = (*YCB, "evaluate", "--name", name, *arguments)
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        memory = Memory(process.pid)
        memory.start()
        told, _ = process.communicate()
    wall = time.perf_counter() - began
    memory.done.set()
    memory.join()
    if process.returncode != 0:
        raise SystemExit(told.decode(errors="replace")[-3000:])
    run = folder / "runs" / name
    return wall, memory, [json.loads(path.read_text()) for path in sorted(run.glob("trials/*/result.json"))]


def measure_greedy(folder: Path, more: tuple[str, ...]) -> dict:
    world = ("--env.presets", '["fast_test"]', "--env.seeds", "[1]")
    wall, memory, (result,) = evaluate(folder, "greedy", "--agent", "greedy", *world, *more)
    journal = folder / "runs" / "greedy" / "trials" / "fast_test-1__1" / "verifier" / "journal.jsonl"
    inside = sorted(json.loads(line)["seconds"] for line in journal.read_text().splitlines())
    return {
        "reward (reference 0.973)": result["reward"],
        "commands": result["info"]["commands"],
        "wall s (target 240)": wall,
        "a command, mean ms, its process included (target 100)": result["timings"]["agent"]
        / result["info"]["commands"]
        * 1000,
        "inside the simulator, median ms": statistics.median(inside) * 1000,
        "inside the simulator, 99th percentile ms": inside[len(inside) * 99 // 100] * 1000,
        "all processes, peak PSS MB (target 150)": memory.pss,
        "all processes, peak RSS MB": memory.rss,
        "the simulator alone, peak RSS MB": memory.simulator,
    }


def measure_idle(folder: Path, more: tuple[str, ...]) -> dict:
    wall, memory, results = evaluate(folder, "idle", "--agent", "idle", "-n", "9", *more)
    return {
        "runs": len(results),
        "mean reward": statistics.fmean(result["reward"] for result in results),
        "wall s (target 120)": wall,
        "a run's share of all, peak PSS MB (target 150)": memory.pss / len(results),
        "a run's share of all, peak RSS MB": memory.rss / len(results),
        "the largest simulator, peak RSS MB": memory.simulator,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["idle", "greedy"])
    parser.add_argument("--simulator-python", default=os.environ.get("HERMES_YCB_PYTHON"))
    parser.add_argument("--json", type=Path, default=None, help="write the figures here")
    options = parser.parse_args()
    more = ("--env.simulator_python", options.simulator_python) if options.simulator_python else ()
    measures = {"greedy": measure_greedy, "idle": measure_idle}
    found = {"cores": CORES, "load average": os.getloadavg()[0]}
    print(f"cores {CORES}, load average {found['load average']:.1f}")
    for part in options.parts:
        with tempfile.TemporaryDirectory(prefix="hermes-perf-") as folder:
            found[part] = measures[part](Path(folder), more)
        print(f"\n{part}")
        for name, value in found[part].items():
            print(
                f"  {name:<56} {value:.3f}" if isinstance(value, float) else f"  {name:<56} {value}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
