"""The command `tblite`."""

import sys

from hermes_benchmarks.cli.app import run_cli

DESCRIPTION = """TBLite: 100 tasks of calibrated difficulty, a faster stand-in for Terminal-Bench 2.

`tblite evaluate` alone runs a packaged sample with a scripted model: no key, no Docker, no set-up."""


def main() -> None:
    """Run `tblite`."""
    sys.exit(run_cli("tblite", "hermes_benchmarks.terminal_bench:TBLite", description=DESCRIPTION))
