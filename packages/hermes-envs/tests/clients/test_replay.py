"""Record and replay; scripted replies."""

import pytest
from envs_tools import call, tool_session
from hermes_envs import HermesAgentLoop
from hermes_envs.clients import ProviderError, RecordClient, ReplayClient, ScriptedClient, Turn, Usage
from hermes_parsers import ParseError

ASK = [{"role": "user", "content": "go"}]


async def test_a_recorded_run_is_replayed_without_the_model(tmp_path):
    turn = Turn(
        "a",
        reasoning="r",
        tool_calls=(call("add", '{"a": 1, "b": 2}'),),
        errors=(ParseError(kind="malformed", message="?", start=1, end=2, raw="<"),),
        usage=Usage(5, 6, 1, 0.5),
        completion_ids=[1],
        logprobs=[-0.5],
        extra={"reasoning_details": [{"text": "r"}]},
    )
    script = ScriptedClient([turn, "ok"])
    path = tmp_path / "record.jsonl"
    async with tool_session(tmp_path) as session:
        recorded = await HermesAgentLoop(RecordClient(script, path), session, temperature=0.5).run(ASK)
        replay = ReplayClient(path)
        assert replay.model == "scripted"
        replayed = await HermesAgentLoop(replay, session, temperature=0.5).run(ASK)
    assert replayed.messages == recorded.messages
    assert replayed.usage == recorded.usage
    assert (replayed.turns[0].completion_ids, replayed.turns[0].logprobs) == ([1], [-0.5])
    assert replayed.messages[1]["reasoning_details"] == [{"text": "r"}]


async def test_another_request_is_a_miss(tmp_path):
    path = tmp_path / "record.jsonl"
    await RecordClient(ScriptedClient(["ok"]), path).complete(ASK, temperature=0.5)
    replay = ReplayClient(path)
    with pytest.raises(ProviderError, match="differ"):
        await replay.complete(ASK, temperature=0.6)
    assert (await replay.complete(ASK, temperature=0.5, top_p=None)).content == "ok"


async def test_repeated_requests_are_answered_in_their_order(tmp_path):
    path = tmp_path / "record.jsonl"
    replies = iter(["one", "two"])
    recorder = RecordClient(ScriptedClient(lambda messages, tools: next(replies)), path)
    for _ in range(2):
        await recorder.complete(ASK)
    replay = ReplayClient(path)
    assert [(await replay.complete(ASK)).content for _ in range(3)] == ["one", "two", "two"]


async def test_a_script_that_is_over_says_so():
    with pytest.raises(ProviderError, match="1 replies"):
        await ScriptedClient(["only"]).complete([*ASK, {"role": "assistant", "content": "only"}])


async def test_a_script_may_be_an_async_function():
    async def policy(messages, tools):
        return f"{len(messages)} messages"

    assert (await ScriptedClient(policy).complete(ASK)).content == "1 messages"
