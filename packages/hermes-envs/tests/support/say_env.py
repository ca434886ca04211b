"""A small environment without tools, and the policy for it; also a program, to be started and killed by tests."""

import itertools
from typing import Any

from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig


class SayEnv(HermesAgentBaseEnv):
    """Say a number; no tools."""

    name = "say"

    @classmethod
    def config_init(cls):
        return HermesAgentEnvConfig(enabled_toolsets=[], group_size=2, max_token_length=64), [ServerConfig()]

    async def setup(self) -> None:
        self.iter = 0
        self.evaluations = 0

    async def get_next_item(self) -> int:
        self.iter += 1
        return self.iter

    def format_prompt(self, item: int) -> str:
        return f"Say {item}."

    async def compute_reward(self, item, result, ctx) -> float:
        return float(result.messages[-1]["content"].strip() == str(item))

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        self.evaluations += 1
        await self.evaluate_items([1, 2, 3])


def say_policy(wrong_every: int = 2):
    """Says the number that was asked for, and every so often another."""
    counter = itertools.count(1)

    def reply(prompt: str) -> str:
        number = prompt.rsplit("Say ", 1)[1].split(".")[0]
        return number if next(counter) % wrong_every else "I will not."

    return reply


if __name__ == "__main__":
    SayEnv.cli()
