"""The environment: a sign to read, four doors to choose from, and the sandbox remembers which was opened.

python examples/tiny_grpo/environment.py serve --env.tokenizer_name FOLDER --openai.base_url http://127.0.0.1:9001
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig
from hermes_tools import ToolSession, tool

sys.path.insert(0, str(Path(__file__).parent))

from doors import ASK, DOORS


@tool(toolset="doors")
async def read_sign(session: ToolSession) -> str:
    """Read the sign on the wall."""
    return (await session.workspace.read_bytes("sign.txt")).decode()


@tool(toolset="doors")
async def open_door(
    session: ToolSession, color: Annotated[Literal["red", "green", "blue", "black"], "Which"]
) -> str:
    """Open a door; only the first one counts."""
    try:
        await session.workspace.read_bytes("opened.txt")
    except FileNotFoundError:
        await session.workspace.write_bytes("opened.txt", color.encode())
    return "open"


class DoorsEnv(HermesAgentBaseEnv):
    """Open the door that the sign names."""

    name = "doors"

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(
            group_size=8,
            max_agent_turns=4,
            max_token_length=24,
            context_length=200,
            max_batches_offpolicy=1,
            max_num_workers=8,
            ensure_scores_are_not_same=False,  # the mean over all groups is the curve; the trainer leaves such out
        )
        return config, [ServerConfig(server_type="vllm", model_name="tiny")]

    async def setup(self):
        self.iter = 0

    async def get_next_item(self):
        self.iter += 1
        return DOORS[self.iter % len(DOORS)]

    def tools(self):
        return [read_sign, open_door]

    def format_prompt(self, item):
        return ASK

    async def prepare(self, item, ctx):
        ctx.write_file("sign.txt", item)

    async def compute_reward(self, item, result, ctx):
        return float(ctx.read_file("opened.txt").get("content") == item)


if __name__ == "__main__":
    DoorsEnv.cli()
