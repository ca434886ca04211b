"""The command `tb2`."""

import sys

from hermes_benchmarks.cli.app import run_cli

DESCRIPTION = """Terminal-Bench 2: real work in a terminal, judged by tests.

`tb2 evaluate` alone runs a packaged sample with a scripted model: no key, no Docker, no set-up."""


def main() -> None:
    """Run `tb2`."""
    sys.exit(run_cli("tb2", "hermes_benchmarks.terminal_bench:TerminalBench2", description=DESCRIPTION))
