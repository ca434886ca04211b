"""The command `ycb`."""

import sys

from hermes_benchmarks.cli.app import run_cli

DESCRIPTION = """YC-Bench: a company to run through a simulated year, scored so that doing nothing is worth nothing.

`ycb evaluate` alone plays 3 presets x 3 seeds with the built-in greedy policy: no key, no Docker. It needs the
simulator: `uv run --python 3.12 --package hermes-benchmarks --extra yc-bench ycb evaluate`."""


def main() -> None:
    """Run `ycb`."""
    sys.exit(run_cli("ycb", "hermes_benchmarks.ycb.benchmark:YcBench", description=DESCRIPTION))
