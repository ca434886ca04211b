"""Terminal-Bench 2 and TBLite."""

from hermes_benchmarks.terminal_bench.benchmark import TBLite, TerminalBench2
from hermes_benchmarks.terminal_bench.config import TerminalBenchConfig, TerminalBenchEnvConfig

__all__ = ["TBLite", "TerminalBench2", "TerminalBenchConfig", "TerminalBenchEnvConfig"]
