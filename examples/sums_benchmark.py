"""A whole benchmark in one file: add up the numbers in a file. It has every verb that `tb2` has.

python examples/sums_benchmark.py evaluate --agent nop
python examples/sums_benchmark.py evaluate --model NAME
python examples/sums_benchmark.py ls
"""

import random
import sys
from collections.abc import Mapping, Sequence

from hermes_benchmarks import BenchmarkTask, TrialRecord, benchmark_cli
from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.config import EvaluationConfig
from hermes_envs import AgentResult, RolloutSession, RolloutSpec, ToolContext


class Sums:
    """Sums: add up the numbers in a file."""

    name = "sums"

    def __init__(self, config: EvaluationConfig) -> None:
        self.config = config

    def tasks(self) -> Sequence[BenchmarkTask]:
        return [BenchmarkTask(f"sum-{size}", category="arithmetic", data=size) for size in (10, 100, 1000)]

    def rollout(self, task: BenchmarkTask) -> RolloutSpec:
        numbers = random.Random(task.data).sample(range(1_000_000), task.data)

        async def prepare(session: RolloutSession) -> None:
            await session.sandbox.write_text("numbers.txt", "\n".join(map(str, numbers)) + "\n")

        async def reward(result: AgentResult, ctx: ToolContext) -> float:
            answer = ctx.read_file("answer.txt").get("content") or ""
            return float(answer.strip() == str(sum(numbers)))

        prompt = "Write the sum of the numbers in numbers.txt into answer.txt."
        messages = [{"role": "user", "content": prompt}]
        return RolloutSpec(messages=messages, tools=["terminal", "file"], prepare=prepare, reward=reward)

    def summarize(self, records: Sequence[TrialRecord]) -> Mapping[str, float]:
        return {"largest_solved": max((int(r.task[4:]) for r in records if r.reward == 1), default=0)}

    # Optional: an agent of the benchmark's own, here one that knows how.
    @property
    def agents(self) -> Mapping[str, object]:
        async def awk(messages: Sequence[Mapping[str, object]], session: RolloutSession) -> AgentResult:
            await session.sandbox.exec("awk '{s += $1} END {print s}' numbers.txt > answer.txt", check=True)
            return AgentResult(messages=[dict(message) for message in messages])

        return {"awk": lambda config: RunAgent(for_task=lambda task: awk)}


if __name__ == "__main__":
    sys.exit(benchmark_cli(Sums))
