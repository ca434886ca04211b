"""AgentResult in every form it takes outside this process."""

import json
import pickle
import shutil
import subprocess
import sys

import pytest
from envs_tools import call, look, tool_session
from hermes_envs import AgentResult, HermesAgentLoop, StopReason
from hermes_envs.clients import ProviderUnavailable, ScriptedClient, Turn, Usage
from hermes_envs.outcome import Failure
from hermes_envs.tokens import Segment
from hermes_envs.tokens.segment import Span
from hermes_parsers import ParseError

SCRIPT = [
    Turn(
        "First ünïcode.",
        reasoning="think",
        tool_calls=(call("add", '{"a": 1, "b": 2}', "c1"), call("look", "{}", "c2")),
        finish_reason="tool_calls",
        usage=Usage(100, 10, 50, 0.25),
        prompt_ids=[1, 2, 3],
        completion_ids=[4, 5],
        logprobs=[-0.5, -0.25],
        model="m-2026",
    ),
    Turn(
        "\ud800 lone surrogate",
        tool_calls=(call("add", '{"a": ', "c3"),),
        errors=(ParseError(kind="malformed", message="?", start=0, end=1, raw="<x"),),
    ),
    "Done.",
]


async def made(tmp_path, script=SCRIPT):
    async with tool_session(tmp_path) as session:
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
        return await HermesAgentLoop(ScriptedClient(script), session).run(messages)


async def test_json_and_back(tmp_path):
    result = await made(tmp_path)
    text = result.to_json()
    text.encode()
    assert AgentResult.from_json(text) == result
    assert json.loads(text)["usage"]["cost_usd"] == 0.25


async def test_json_keeps_failures_and_segments(tmp_path):
    segment = Segment([1, 2, 3], [False, True, True], [1.0, -0.1, -0.2], (Span(turn=0, start=1, end=3),))
    result = AgentResult(
        messages=[{"role": "user", "content": "x"}],
        stop_reason=StopReason.sandbox_error,
        error=Failure("sandbox", "SandboxGone", "gone", retryable=True),
        segments=[segment],
    )
    again = AgentResult.from_json(result.to_json())
    assert again == result
    assert again.managed_state == {"segments": [segment.to_dict()]}
    assert not again.finished_naturally


async def test_pickle_and_back(tmp_path):
    result = await made(tmp_path)
    assert pickle.loads(pickle.dumps(result)) == result


async def test_another_format_is_refused():
    with pytest.raises(ValueError, match="format"):
        AgentResult.from_json('{"messages": []}')


async def test_openai_form_is_messages_and_tools(tmp_path):
    form = (await made(tmp_path)).to_openai()
    assert [m["role"] for m in form["messages"]][:3] == ["system", "user", "assistant"]
    assert {tool["function"]["name"] for tool in form["tools"]} >= {"add", look.name}


async def test_atif_says_what_happened(tmp_path):
    document = (await made(tmp_path)).to_atif(session_id="r1", extra={"reward": 1.0})
    assert document["schema_version"] == "ATIF-v1.8"
    assert document["extra"] == {"stop_reason": "finished", "reward": 1.0}
    assert [step["source"] for step in document["steps"]] == [
        "system", "user", "agent", "user", "agent", "agent"
    ]  # fmt: skip
    first = document["steps"][2]
    assert first["metrics"]["prompt_token_ids"] == [1, 2, 3]
    assert first["metrics"]["completion_token_ids"] == [4, 5]
    assert first["metrics"]["logprobs"] == [-0.5, -0.25]
    assert first["metrics"]["cached_tokens"] == 50
    assert first["model_name"] == "m-2026"
    assert first["tool_calls"][0]["arguments"] == {"a": 1, "b": 2}
    assert [r["source_call_id"] for r in first["observation"]["results"]] == ["c1", "c2"]
    second = document["steps"][4]
    assert second["tool_calls"][0]["extra"] == {"unreadable_arguments": '{"a": '}
    assert "source_call_id" not in second["observation"]["results"][1]  # the broken call
    assert document["final_metrics"]["total_prompt_tokens"] == 100
    assert document["final_metrics"]["total_steps"] == 6


async def test_atif_reads_prompt_ids_from_segments():
    segment = Segment(
        [1, 2, 3, 4, 5],
        [False, True, False, False, True],
        [1.0, -0.1, 1.0, 1.0, -0.2],
        (Span(turn=0, start=1, end=2), Span(turn=1, start=4, end=5)),
    )

    class Tokens:
        model = "t"
        segments = (segment,)

        async def complete(self, messages, tools=None, **sampling):
            done = sum(m["role"] == "assistant" for m in messages)
            ids = [segment.tokens[1]] if done == 0 else [segment.tokens[4]]
            return Turn("x", tool_calls=() if done else (call("f"),), completion_ids=ids, logprobs=[-0.1])

    result = await HermesAgentLoop(Tokens()).run([{"role": "user", "content": "u"}])
    assert result.segments == [segment]
    metrics = [step["metrics"] for step in result.to_atif()["steps"] if step["source"] == "agent"]
    assert [m["prompt_token_ids"] for m in metrics] == [[1], [1, 2, 3, 4]]
    assert [m["completion_token_ids"] for m in metrics] == [[2], [5]]


async def test_atif_needs_a_message():
    with pytest.raises(ValueError, match="at least one"):
        AgentResult(messages=[]).to_atif()


@pytest.mark.slow
async def test_atif_is_valid_by_harbors_own_models(tmp_path):
    """Harbor's package brings hundreds of others; its trajectory models need only pydantic."""
    uv = shutil.which("uv")
    target = tmp_path / "harbor"
    command = [
        uv,
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--python-version",
        "3.12",
        "--target",
        target,
        "harbor",
    ]
    if uv is None or subprocess.run(command, check=False, timeout=100).returncode:
        pytest.skip("Harbor cannot be installed here")
    documents = [
        (await made(tmp_path)).to_atif(session_id="r1"),
        (await made(tmp_path, [ProviderUnavailable("down")])).to_atif(),
        (await made(tmp_path, [Turn(None)])).to_atif(),
    ]
    code = (
        "import json, sys\n"
        "from harbor.models.trajectories import Trajectory\n"
        "for document in json.load(sys.stdin):\n"
        "    print(len(Trajectory.model_validate(document).steps))\n"
    )
    checked = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(documents),
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.split() == ["6", "2", "3"]
