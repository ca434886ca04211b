"""A real model behind a real server; needs an interpreter that has both, named by HERMES_LOCAL_MODEL_PYTHON."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "local_model" / "run.py"
PYTHON = os.environ.get("HERMES_LOCAL_MODEL_PYTHON", "")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not PYTHON, reason="HERMES_LOCAL_MODEL_PYTHON names no interpreter with llama-cpp-python")
async def test_a_small_model_calls_a_tool_and_answers():
    spec = importlib.util.spec_from_file_location("local_model_run", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    async with example.server(PYTHON) as url:
        result = await example.ask(url)
    roles = [message["role"] for message in result.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    (call,) = result.messages[2]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert "city" in json.loads(call["function"]["arguments"])
    assert "sunny" in result.messages[3]["content"]
    assert result.usage.completion_tokens > 0
