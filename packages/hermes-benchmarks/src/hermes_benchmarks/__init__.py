"""Terminal-Bench 2, TBLite and YC-Bench: an evaluation harness people can trust."""

from typing import TYPE_CHECKING, Any

from hermes_benchmarks.lookup import load_object

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import Benchmark, BenchmarkBase, BenchmarkTask, benchmark_cli
    from hermes_benchmarks.record import TrialRecord
    from hermes_benchmarks.trial import TrialSpec, run_trial
    from hermes_benchmarks.verdict import Verdict

__all__ = [
    "Benchmark",
    "BenchmarkBase",
    "BenchmarkTask",
    "TrialRecord",
    "TrialSpec",
    "Verdict",
    "benchmark_cli",
    "run_trial",
]

_MODULES = {
    "Benchmark": "benchmark",
    "BenchmarkBase": "benchmark",
    "BenchmarkTask": "benchmark",
    "benchmark_cli": "benchmark",
    "TrialRecord": "record",
    "TrialSpec": "trial",
    "run_trial": "trial",
    "Verdict": "verdict",
}


def __getattr__(name: str) -> Any:  # loaded when asked for: a command's --help needs none of them
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load_object(f"{__name__}.{_MODULES[name]}:{name}")
