"""A small benchmark over local sandboxes whose agent and verifier do as each task says."""

import asyncio
from functools import partial

from hermes_benchmarks import BenchmarkTask
from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.benchmark import BenchmarkBase, Skipped
from hermes_envs import AgentResult, Failure, Limits, Reward, RolloutSpec, StopReason

TASKS = (
    "good",
    "bad",
    "partial",
    "slow",
    "broken-verifier",
    "raises",
    "hangs",
    "tampered",
    "no-reward",
    "crash",
)


class Toy(BenchmarkBase):
    """Tasks named after what happens in them."""

    name = "toy"
    default_agent = "actor"
    calls: list = []  # noqa: RUF012 - shared on purpose: tests look at it

    def tasks(self):
        return [BenchmarkTask(name, category="toys", checksum=name) for name in TASKS]

    def skipped(self):
        return [Skipped("crash", "it crashes")]

    def rollout(self, task):
        if task.name == "raises":
            raise ValueError("cannot be made")

        async def reward(result, ctx):
            written = ctx.terminal("cat answer 2>/dev/null")["output"].strip()
            return REWARDS.get(task.name, lambda: float(written == "42"))()

        deadline = 0.3 if task.name == "slow" else 300.0
        return RolloutSpec(
            messages=[{"role": "user", "content": task.name}],
            tools=["terminal"],
            limits=Limits(deadline=deadline),
            reward=reward,
        )

    @property
    def agents(self):
        return {"actor": lambda config: RunAgent(lambda task: act, model="a-toy")}

    def summarize(self, records):
        return {"toys": len(records)}


def broken():
    raise RuntimeError("the judge has a bug")


ODD = {
    "info": {"info": {"x": object()}},
    "list": {"info": [1, 2]},
    "keys": {"info": {(1, 2): 3}},
    "series": {"info": {"series": [1, 2]}},
    "points": {"info": {"series": {"t": [[1, "high"]]}}},
    "tests": {"tests": [{"nom": "one"}]},
    "content": {"files": {"a": {"b": 1}}},
    "names": {"files": {"a": "x", "a/b": "y"}},
    "null": {"files": {"a\0b": "x"}},
    "surrogate": {"files": {"\ud800": "x"}},
    "empty": {"files": {"": "x"}},
    "long": {"files": {"x" * 300: "x"}},
}
"""Details that nothing can be made of."""
REWARDS = {
    "partial": lambda: Reward(
        0.5,
        {
            "tests": [
                {"name": "one", "status": "passed"},
                {"name": "two", "status": "failed", "message": "no"},
            ],
            "files": {"log.txt": "text", "raw.bin": b"\x00\x01", "../escape.txt": "out", "deep/er.txt": "x"},
            "info": {"funds": 7},
        },
    ),
    "broken-verifier": broken,
    **{f"odd-{name}": partial(Reward, 1.0, details) for name, details in ODD.items()},
    "no-reward": lambda: Reward(None, {}, Failure("verifier", "bootstrap", "no tests", retryable=True)),
    "tampered": lambda: Reward(0.0, {"status": "tampered", "cause": "contradiction", "message": "it lies"}),
}


async def act(messages, session):
    """Do what the task's name says."""
    name = messages[-1]["content"]
    Toy.calls.append(name)
    if name in ("slow", "hangs"):
        await asyncio.sleep(300)
    if name != "bad":
        await session.sandbox.write_text("answer", "42\n")
    said = [*messages, {"role": "assistant", "content": "done"}]
    return AgentResult(messages=said, stop_reason=StopReason.finished)


class OddToy(Toy):
    """Rewards whose details cannot be kept."""

    def tasks(self):
        return [BenchmarkTask(f"odd-{name}") for name in ODD]
