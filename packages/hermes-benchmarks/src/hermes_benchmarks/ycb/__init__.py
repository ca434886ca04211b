"""YC-Bench: a company to run for a simulated year, scored so that doing nothing is worth nothing."""

from hermes_benchmarks.ycb.benchmark import YcBench, YcBenchConfig
from hermes_benchmarks.ycb.score import Score, composite, normalised_funds, score
from hermes_benchmarks.ycb.simulation import Simulation, SimulatorError, World

__all__ = [
    "Score",
    "Simulation",
    "SimulatorError",
    "World",
    "YcBench",
    "YcBenchConfig",
    "composite",
    "normalised_funds",
    "score",
]
