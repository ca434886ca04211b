"""HermesAgentLoop: every way a turn can go and every way a run can end."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest
from envs_clock import Clock
from envs_tools import PIXEL, call, no_task_is_left, tool_session
from hermes_envs import HermesAgentLoop, StopReason
from hermes_envs.clients import (
    ContentFiltered,
    ContextOverflow,
    ProviderUnavailable,
    ScriptedClient,
    Turn,
    Usage,
)
from hermes_parsers import ParseError
from hermes_tools import tool

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]


async def run(path, script, *, session_options=None, **options):
    async with tool_session(path, **(session_options or {})) as session:
        client = script if not isinstance(script, (list, tuple)) else ScriptedClient(script)
        return await HermesAgentLoop(client, session, **options).run(ASK)


async def test_calls_tools_until_the_model_answers(tmp_path):
    result = await run(tmp_path, [[call("add", '{"a": 1, "b": 2}')], [call("add", '{"a": 3, "b": 4}')], "10"])
    assert result.stop_reason is StopReason.finished
    assert result.finished_naturally
    assert result.turns_used == 3
    assert [m["role"] for m in result.messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant"
    ]  # fmt: skip
    assert json.loads(result.messages[3]["content"]) == {"result": 3}
    assert result.messages[3]["tool_call_id"] == result.messages[2]["tool_calls"][0]["id"]
    assert result.messages[-1] == {"role": "assistant", "content": "10"}
    assert result.tool_errors == []
    assert [len(turn.tool_seconds) for turn in result.turns] == [1, 1, 0]


async def test_the_callers_messages_are_not_changed(tmp_path):
    before = json.dumps(ASK)
    await run(tmp_path, [[call("add", '{"a": 1, "b": 2}')], "ok"])
    assert json.dumps(ASK) == before


async def test_the_model_is_shown_the_sessions_tools(tmp_path):
    seen = []

    def policy(messages, tools):
        seen.extend(tool["function"]["name"] for tool in tools)
        return "ok"

    result = await run(tmp_path, ScriptedClient(policy))
    assert seen == ["add", "nap", "explode", "look"]
    assert [tool["function"]["name"] for tool in result.tools] == seen


async def test_calls_of_a_turn_run_at_once_and_answer_in_order(tmp_path):
    together, ended = asyncio.Barrier(3), []

    @tool
    async def meet(name: str) -> str:
        """Wait for the two others; the last asked is the first to answer."""
        await together.wait()
        while len(ended) < 2 - int(name):
            await asyncio.sleep(0)
        ended.append(name)
        return name

    calls = [call("meet", f'{{"name": "{i}"}}', f"c{i}") for i in range(3)]
    async with tool_session(tmp_path) as session:
        wide = session.widened([meet, *session.tools.values()])
        result = await HermesAgentLoop(ScriptedClient([calls, "ok"]), wide).run(ASK)
    assert ended == ["2", "1", "0"]
    answers = [m for m in result.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in answers] == ["c0", "c1", "c2"]
    assert [json.loads(m["content"])["result"] for m in answers] == ["0", "1", "2"]


async def test_calls_at_once_are_bounded(tmp_path):
    calls = [call("nap", '{"seconds": 0.1, "name": "x"}', f"c{i}") for i in range(4)]
    began = time.perf_counter()
    await run(tmp_path, [calls, "ok"], max_parallel_calls=2)
    assert time.perf_counter() - began >= 0.2


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (call("ad", '{"a": 1, "b": 2}'), "add"),
        (call("add", '{"a": 1, "b": '), "JSON"),
        (call("add", "[1, 2]"), "object"),
        (call("add", "null"), "a"),
        (call("add", '{"a": "one", "b": 2}'), "a"),
        (call("explode"), "boom"),
    ],
)
async def test_a_bad_call_is_told_to_the_model_and_the_run_goes_on(tmp_path, bad, says):
    result = await run(tmp_path, [[bad, call("add", '{"a": 1, "b": 2}', "good")], "ok"])
    assert result.stop_reason is StopReason.finished
    told, good = [m for m in result.messages if m["role"] == "tool"]
    assert says in json.loads(told["content"])["error"]
    assert told["tool_call_id"] == bad.id
    assert json.loads(good["content"]) == {"result": 3}
    (error,) = result.tool_errors
    assert (error.turn, error.tool_name, error.arguments) == (1, bad.name, bad.arguments)
    assert error.tool_result == told["content"]
    assert says in error.error


async def test_a_broken_call_is_told_to_the_model_and_its_siblings_run(tmp_path):
    broken = ParseError(
        kind="invalid_json", message="expected a value", start=0, end=9, raw="<call>{x</call>"
    )
    turn = Turn("Hm.", tool_calls=(call("add", '{"a": 1, "b": 2}'),), errors=(broken,))
    result = await run(tmp_path, [turn, "ok"])
    assert result.messages[2]["content"] == "Hm.<call>{x</call>"
    good, told = result.messages[3:5]
    assert json.loads(good["content"]) == {"result": 3}
    assert told["role"] == "tool"
    assert "invalid_json" in told["content"]
    (error,) = result.tool_errors
    assert error.arguments == broken.raw
    assert result.stop_reason is StopReason.finished


async def test_only_broken_calls_still_go_on(tmp_path):
    broken = ParseError(kind="malformed", message="?", start=0, end=1, raw="<")
    result = await run(tmp_path, [Turn(None, errors=(broken,)), "ok"])
    assert result.turns_used == 2


async def test_pictures_go_to_a_user_message_or_stay_with_the_tool(tmp_path):
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    result = await run(tmp_path, [[call("look"), call("add", '{"a": 1, "b": 2}', "c2")], "ok"])
    assert [m["role"] for m in result.messages[2:]] == ["assistant", "tool", "tool", "user", "assistant"]
    assert picture in result.messages[5]["content"]
    assert isinstance(result.messages[3]["content"], str)
    result = await run(tmp_path, [[call("look")], "ok"], image_place="tool")
    assert picture in result.messages[3]["content"]
    assert result.messages[3]["content"][0]["type"] == "text"


async def test_reasoning_is_kept_per_turn(tmp_path):
    first = Turn(None, reasoning="think", tool_calls=(call("add", '{"a": 1, "b": 2}'),))
    result = await run(tmp_path, [first, "ok"])
    assert result.reasoning_per_turn == ["think", None]
    assert result.messages[2]["reasoning_content"] == "think"


@pytest.mark.parametrize(
    ("content", "thinking"),
    [
        ("<think>\nhm\n</think>\n\nok", "hm"),
        ("hm\n</think>\n\nok", "hm"),  # the template had opened the block
        ("<think>cut", "cut"),
        ("<think></think>ok", None),
        ("Write <think>a</think>.", None),
        ("ok", None),
    ],
)
async def test_thinking_that_a_server_left_in_the_text_is_kept_per_turn(tmp_path, content, thinking):
    result = await run(tmp_path, [content])
    assert result.reasoning_per_turn == [thinking]
    assert result.messages[-1]["content"] == content


def spend(tokens, cost=None):
    return Turn(
        None,
        tool_calls=(call("add", '{"a": 1, "b": 2}'),),
        usage=Usage(prompt_tokens=tokens, completion_tokens=1, cost_usd=cost),
    )


@pytest.mark.parametrize(
    ("script", "options", "stop", "turns"),
    [
        ([spend(1)] * 9, {"max_turns": 3}, StopReason.max_turns, 3),
        ([spend(10)] * 9, {"token_budget": 20}, StopReason.budget, 2),
        ([spend(1, 0.5)] * 9, {"cost_budget": 1.0}, StopReason.budget, 2),
        ([spend(10), spend(50)] * 9, {"context_limit": 50}, StopReason.context_full, 2),
        ([Turn("cut of", finish_reason="length")], {}, StopReason.truncated, 1),
        (
            [Turn(None, tool_calls=(call("add", '{"a": 1, "b": 2}'),), finish_reason="length")],
            {},
            StopReason.truncated,
            1,
        ),
        ([Turn(None, refusal="I will not.")], {}, StopReason.refused, 1),
        ([Turn(None, finish_reason="content_filter")], {}, StopReason.refused, 1),
        ([spend(1), ContextOverflow("full", status=400)], {}, StopReason.context_full, 1),
        ([ContentFiltered("no", status=400)], {}, StopReason.refused, 0),
        ([spend(1), ProviderUnavailable("down", status=503)], {}, StopReason.provider_error, 1),
        ([RuntimeError("a bug in a client")], {}, StopReason.provider_error, 0),
        ([Turn(None)], {}, StopReason.finished, 1),
    ],
)
async def test_why_it_ends(tmp_path, script, options, stop, turns):
    result = await run(tmp_path, script, **options)
    assert result.stop_reason is stop
    assert result.turns_used == turns
    assert result.finished_naturally == (stop is StopReason.finished)


async def test_a_provider_failure_is_recorded(tmp_path):
    result = await run(tmp_path, [spend(3), ProviderUnavailable("down", status=503)])
    assert result.error.boundary == "provider"
    assert result.error.kind == "ProviderUnavailable"
    assert result.error.retryable
    assert "down" in result.error.message
    assert result.usage.prompt_tokens == 3


async def test_the_deadline_ends_a_slow_tool_and_keeps_the_transcript(tmp_path):
    clock = Clock()

    @tool
    async def dawdle() -> str:
        """Take longer than there is time."""
        clock.put_forward(600)
        await asyncio.Event().wait()
        return "never"

    async with tool_session(tmp_path) as session:
        wide = session.widened([dawdle, *session.tools.values()])
        client = ScriptedClient([[call("dawdle")], "ok"])
        result = await HermesAgentLoop(client, wide, deadline=600).run(ASK)
    assert result.stop_reason is StopReason.deadline
    assert result.messages[-1]["role"] == "assistant"
    assert result.turns_used == 1


async def test_cancelling_cancels_the_tools_and_progress_tells_how_far_it_came(tmp_path):
    async with tool_session(tmp_path) as session:
        client = ScriptedClient([[call("nap", '{"seconds": 1000, "name": "x"}', f"c{i}") for i in range(2)]])
        loop = HermesAgentLoop(client, session)
        task = asyncio.create_task(loop.run(ASK))
        while not (loop.progress() and loop.progress().turns_used):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        progress = loop.progress()
        assert progress.stop_reason is StopReason.cancelled
        assert progress.turns_used == 1
        await no_task_is_left()


class GoneError(Exception):
    boundary = "sandbox"


async def test_a_lost_workspace_ends_the_run_and_its_siblings(tmp_path):
    async with tool_session(tmp_path) as session:

        async def gone(*args, **kwargs):
            raise GoneError("the container was removed")

        session.workspace.inner.exec = gone
        from hermes_tools import ToolSession

        @tool
        async def touch(session: ToolSession) -> str:
            """Use the workspace."""
            return (await session.workspace.exec("true")).output

        wide = session.widened([touch, *session.tools.values()])
        script = [[call("nap", '{"seconds": 1000, "name": "x"}'), call("touch", "{}", "c2")], "ok"]
        result = await HermesAgentLoop(ScriptedClient(script), wide).run(ASK)
    assert result.stop_reason is StopReason.sandbox_error
    assert result.error.kind == "GoneError"
    assert "removed" in result.error.message


async def test_without_tools_a_call_is_answered_with_an_error():
    result = await HermesAgentLoop(ScriptedClient([[call("add")], "ok"])).run(ASK)
    assert result.stop_reason is StopReason.finished
    assert "no tools" in result.messages[3]["content"]


async def test_on_turn_sees_each_turn_with_its_messages(tmp_path):
    seen = []

    async def on_turn(record, messages):
        seen.append((record.turn, [m["role"] for m in messages]))

    await run(tmp_path, [[call("add", '{"a": 1, "b": 2}')], "ok"], on_turn=on_turn)
    assert seen == [(1, ["assistant", "tool"]), (2, ["assistant"])]


class Server:
    """An Atropos-like server: `chat_completion` returning SDK-like objects."""

    config = SimpleNamespace(model_name="served")

    def __init__(self):
        self.requests = []

    async def chat_completion(self, **kwargs):
        self.requests.append(kwargs)
        if len(self.requests) > 1:
            message = SimpleNamespace(role="assistant", content="3", tool_calls=None)
            return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])
        function = SimpleNamespace(name="add", arguments='{"a": 1, "b": 2}')
        message = SimpleNamespace(
            content=None, tool_calls=[SimpleNamespace(id="x1", type="function", function=function)]
        )
        return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="tool_calls")])


async def test_runs_with_anything_that_has_chat_completion(tmp_path):
    server = Server()
    result = await run(tmp_path, server, temperature=0.7, max_tokens=9)
    assert result.finished_naturally
    assert result.model == "served"
    assert json.loads(result.messages[3]["content"]) == {"result": 3}
    first = server.requests[0]
    assert (first["n"], first["temperature"], first["max_tokens"]) == (1, 0.7, 9)
    assert len(first["tools"]) == 4
    assert len(first["messages"]) == 2


async def test_refuses_what_is_no_client():
    with pytest.raises(TypeError, match="chat_completion"):
        HermesAgentLoop(object())
