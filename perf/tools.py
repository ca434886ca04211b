"""Figures of hermes-tools: dispatch, schemas, import, search and patch.

    .venv/bin/python perf/tools.py [--json FILE]

Prints a table with each figure beside its goal. Times of one process are CPU seconds, the best of several runs; the searches
are compared in turns, so that their ratio holds on a busy machine.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes_tools import HostWorkspace, ToolSession, call_tool, default_registry, tool
from hermes_tools.toolsets.file.search_engine import SearchOptions

FILES = 10_000
WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "sigma",
    "tau",
]


@dataclass
class Figure:
    """One measured figure."""

    name: str
    value: float
    unit: str
    goal: float

    @property
    def met(self) -> bool:
        """Whether it is within its goal."""
        return self.value <= self.goal


@tool
async def nothing() -> None:
    """Does nothing."""


async def best(run: Callable[[], Awaitable[object]], times: int) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        await run()
        taken.append(time.perf_counter() - started)
    return min(taken)


async def cpu(run: Callable[[], Awaitable[object]]) -> float:
    """CPU seconds of this process and its children."""
    before = sum(os.times()[:4])
    await run()
    return sum(os.times()[:4]) - before


async def dispatch(session: ToolSession) -> Figure:
    async def many() -> None:
        for _ in range(2_000):
            await call_tool("nothing", "{}", session)

    return Figure("dispatch of a tool that does nothing", await best(many, 7) / 2_000 * 1e6, "us", 100)


def schemas() -> Figure:
    script = (
        "import time, pydantic, hermes_tools.toolsets as t; tools = [x for s in t.BUILT_IN for x in s.tools];"
        "import hermes_tools.signature, pydantic.type_adapter, pydantic.json_schema; a = time.process_time();"
        "[x.definition() for x in tools]; print(time.process_time() - a)"
    )
    taken = [
        float(
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(7)
    ]
    return Figure(f"schemas of all {len(default_registry().tools)} tools", min(taken) * 1e3, "ms", 50)


def importing() -> Figure:
    def run(code: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    pairs = [(run("pass"), run("import hermes_tools")) for _ in range(9)]
    return Figure(
        "import hermes_tools over bare Python",
        (min(b for _, b in pairs) - min(a for a, _ in pairs)) * 1e3,
        "ms",
        350,
    )


def make_tree(folder: Path) -> None:
    rng = random.Random(1)
    for number in range(FILES):
        path = folder / f"d{number % 100:02}" / f"f{number}.py"
        path.parent.mkdir(exist_ok=True)
        lines = [" ".join(rng.choices(WORDS, k=8)) for _ in range(40)]
        if number % 50 == 0:
            lines[20] = "needle here"
        path.write_text("\n".join(lines) + "\n")


async def searching(workspace: HostWorkspace, engine: str, plain: str) -> Figure:
    async with ToolSession(None, ["file"], workspace, options=[SearchOptions(engine=engine)]) as session:

        async def ours() -> None:
            output = await call_tool("search_files", {"pattern": "needle h", "limit": 100}, session)
            assert json.loads(output.text)["total_count"] == FILES // 50, output.text[:200]

        async def theirs() -> None:
            result = await workspace.exec(plain)
            assert result.stdout.count(b"\n") == FILES // 50

        pairs = [(await cpu(ours), await cpu(theirs)) for _ in range(15)]
    ratio = sum(sorted(pair[0] for pair in pairs)[:5]) / sum(sorted(pair[1] for pair in pairs)[:5])
    return Figure(f"search_files over {FILES:,} files, by plain {engine}", ratio, "x", 1.5)


async def patching(workspace: HostWorkspace, folder: Path, old: str, new: str, name: str) -> Figure:
    line = "    value = compute(alpha, beta)  # a line of code\n"
    text = line * (500_000 // len(line)) + "def target():\n    return 1\n" + line * (500_000 // len(line))
    path = folder / "large.py"
    async with ToolSession(None, ["file"], workspace) as session:
        taken = []
        for _ in range(7):
            path.write_text(text)
            arguments = {"path": "large.py", "old_string": old, "new_string": new}
            before = time.process_time()
            await call_tool("patch", arguments, session)
            taken.append(time.process_time() - before)
            assert "return 2" in path.read_text()
    return Figure(f"patch of a 1 MB file, {name}", min(taken) * 1e3, "ms", 50)


async def measure() -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="hermes-perf-"))
    try:
        async with HostWorkspace(folder) as workspace, ToolSession(None, [nothing], workspace) as session:
            figures = [await dispatch(session), schemas(), importing()]
            figures.append(await patching(workspace, folder, "    return 1", "    return 2", "exact"))
            old, new = "def target():\n  return 1\n", "def target():\n  return 2\n"
            figures.append(await patching(workspace, folder, old, new, "by indentation"))
            (folder / "large.py").unlink()
            make_tree(folder)
            if shutil.which("rg"):
                plain = "rg --no-ignore --hidden --no-config -n 'needle h' ./"
                figures.append(await searching(workspace, "rg", plain))
            figures.append(await searching(workspace, "grep", "grep -rIn 'needle h' ."))
        return figures
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    figures = asyncio.run(measure())
    for figure in figures:
        mark = "ok" if figure.met else "MISSED"
        print(
            f"{figure.name:<48}{figure.value:>10.2f} {figure.unit:<3} goal {figure.goal:g} {figure.unit:<3} {mark}"
        )
    if arguments.json:
        arguments.json.write_text(
            json.dumps([{**asdict(figure), "met": figure.met} for figure in figures], indent=2) + "\n"
        )
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
