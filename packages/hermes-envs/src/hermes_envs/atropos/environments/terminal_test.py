"""The stack's self-check: write a file of known content at a known path."""

from dataclasses import dataclass
from typing import Any, NoReturn

from hermes_envs.atropos.base_env import HermesAgentBaseEnv
from hermes_envs.atropos.cli import default_server
from hermes_envs.atropos.config import HermesAgentEnvConfig
from hermes_envs.atropos.library import APIServerConfig
from hermes_envs.context import ToolContext
from hermes_envs.result import AgentResult


@dataclass(frozen=True, slots=True)
class FileTask:
    """Write `content` into `path`, relative to the working directory."""

    name: str
    path: str
    content: str
    instruction: str


TRAIN_TASKS = (
    FileTask(
        "greeting",
        "greeting.txt",
        "Hello from Hermes Agent",
        "Create the file greeting.txt in the current directory. It must contain exactly: Hello from Hermes Agent",
    ),
    FileTask(
        "count",
        "numbers/count.txt",
        "1\n2\n3\n4\n5",
        "Create the file numbers/count.txt with the numbers 1 to 5, one on each line.",
    ),
    FileTask(
        "answer",
        "answer.txt",
        "579",
        "Work out 123 + 456 and write the result, only the number, into answer.txt in the current directory.",
    ),
)
EVAL_TASKS = (
    FileTask(
        "result",
        "result.txt",
        "42",
        "Work out 6 * 7 and write the result, only the number, into result.txt in the current directory.",
    ),
    FileTask(
        "copy",
        "copy/note.txt",
        "keep this",
        "Write the text 'keep this' into note.txt, then copy that file to copy/note.txt.",
    ),
)


class TerminalTestEnv(HermesAgentBaseEnv):
    """Write a file of known content at a known path: checks that model, tools, sandbox and reward work together."""

    name = "terminal-test"

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """Terminal and file tools, short rollouts, as many groups as there are tasks."""
        config = HermesAgentEnvConfig(
            enabled_toolsets=["terminal", "file"],
            max_agent_turns=10,
            max_token_length=2048,
            group_size=3,
            total_steps=len(TRAIN_TASKS),
            system_prompt="You work in a Linux sandbox. Use the tools to do the task, then answer briefly.",
        )
        return config, [default_server()]

    async def setup(self) -> None:
        """Start at the first task."""
        self.iter = 0

    async def get_next_item(self) -> FileTask:
        """The tasks in turn, without end."""
        task = TRAIN_TASKS[self.iter % len(TRAIN_TASKS)]
        self.iter += 1
        return task

    def format_prompt(self, item: FileTask) -> str:
        """The task's instruction."""
        return item.instruction

    async def compute_reward(self, item: FileTask, result: AgentResult, ctx: ToolContext) -> float:
        """1 for the exact content (a final newline aside), 0.5 for a file that contains it, else 0."""
        content = ctx.read_file(item.path).get("content")
        if content is None:
            return 0.0
        if content.rstrip("\n") == item.content:
            return 1.0
        return 0.5 if item.content in content else 0.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Tasks that are never trained on."""
        await self.evaluate_items(EVAL_TASKS)


def main() -> NoReturn:
    """The command `terminal-test`."""
    TerminalTestEnv.cli()


if __name__ == "__main__":
    main()
