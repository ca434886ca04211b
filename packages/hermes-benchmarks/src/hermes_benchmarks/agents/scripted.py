"""The agent `scripted`: a model's part written down beforehand, played through the real loop and the real tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_envs import Agent
from hermes_envs.agents import loop_agent
from hermes_envs.clients import ScriptedClient, Turn
from hermes_envs.harbor import Task
from hermes_parsers import ToolCall

from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.errors import UsageError

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.config import EvaluationConfig

SCRIPT = "turns.json"


def scripted_agent(config: EvaluationConfig) -> RunAgent:
    """An agent that plays each task's `solution/turns.json`.

    The option `latency` makes every reply take that many seconds, for measuring the harness.
    """
    options = dict(config.run.agent_options)
    latency = options.pop("latency", 0.0)
    if isinstance(latency, bool) or not isinstance(latency, int | float) or latency < 0:
        raise UsageError(f"the latency of agent scripted is a number of seconds, not {latency!r}")
    if options:
        raise UsageError(f"agent scripted has no option {next(iter(options))!r}; it has: latency")

    def for_task(task: BenchmarkTask) -> Agent:
        turns = read_turns(_script(task))

        async def reply(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Turn:
            await asyncio.sleep(latency)
            said = sum(message["role"] == "assistant" for message in messages)
            return turns[min(said, len(turns) - 1)]

        return loop_agent(ScriptedClient(reply))

    return RunAgent(for_task, lacks=_lacks)


def read_turns(path: Path) -> list[Turn]:
    """The replies written down in a `turns.json`."""
    turns: list[Turn] = []
    for number, turn in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        calls = tuple(
            ToolCall(f"call_{number}_{index}", call["name"], json.dumps(call["arguments"]))
            for index, call in enumerate(turn.get("calls", ()))
        )
        turns.append(Turn(turn.get("say"), tool_calls=calls, finish_reason="tool_calls" if calls else "stop"))
    return turns


def _script(task: BenchmarkTask) -> Path:
    return task.data.solution_dir / SCRIPT if isinstance(task.data, Task) else Path(SCRIPT)


def _lacks(task: BenchmarkTask) -> str:
    if _script(task).is_file():
        return ""
    return (
        f"no solution/{SCRIPT} for agent scripted; a model plays with --agent hermes --openai.model_name NAME"
    )
