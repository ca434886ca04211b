"""Objects with `chat_completion` as clients, and what their exceptions mean."""

import json
from unittest.mock import MagicMock

import aiohttp
import pytest
from envs_chat_server import ChatServer, completion
from envs_tools import tool_session
from hermes_envs import HermesAgentLoop
from hermes_envs.clients import (
    BadResponse,
    ContextOverflow,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
    ServerClient,
    Turn,
    as_client,
)
from hermes_parsers import ToolCall
from tenacity import RetryError, retry, stop_after_attempt

ASK = [{"role": "user", "content": "x"}]


class StatusError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status_code = status
        self.body = {"error": {"message": message}}


class Server:
    def __init__(self, answer):
        self.answer = answer

    async def chat_completion(self, **kwargs):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def nested(error):
    """As atroposlib's servers raise: tenacity around tenacity around the SDK."""

    @retry(stop=stop_after_attempt(1))
    def once():
        raise error

    @retry(stop=stop_after_attempt(1))
    def twice():
        once()

    try:
        twice()
    except RetryError as raised:
        return raised


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (nested(StatusError(400, "maximum context length is 10 tokens")), ContextOverflow),
        (nested(StatusError(429, "slow down")), RateLimited),
        (StatusError(503, "busy"), ProviderUnavailable),
        (TimeoutError(), ProviderTimeout),
        (TimeoutError(), ProviderTimeout),
        (ConnectionRefusedError("no"), ProviderUnavailable),
        (aiohttp.ServerDisconnectedError(), ProviderUnavailable),
        (aiohttp.ServerTimeoutError(), ProviderTimeout),
        (ValueError("no JSON"), BadResponse),
        (RuntimeError("a bug"), ProviderError),
    ],
)
async def test_exceptions_are_typed(error, expected):
    with pytest.raises(ProviderError) as caught:
        await ServerClient(Server(error)).complete(ASK)
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    "answer", [None, {}, {"choices": []}, {"error": {"message": "x", "code": 500}}, "text", 7]
)
async def test_what_is_no_completion_is_an_error(answer):
    with pytest.raises(ProviderError):
        await ServerClient(Server(answer)).complete(ASK)


@pytest.mark.atropos
@pytest.mark.filterwarnings("ignore")
async def test_the_loop_runs_on_atroposlibs_own_server_manager(tmp_path):
    from atroposlib.envs.server_handling.server_manager import APIServerConfig, ServerManager

    answers = [completion(calls=[("c1", "add", '{"a": 1, "b": 2}')]), completion("3")]
    async with ChatServer(answers) as server, tool_session(tmp_path) as session:
        config = APIServerConfig(
            model_name="served", base_url=server.url, api_key="x", health_check=False, server_type="openai"
        )
        manager = ServerManager([config])
        result = await HermesAgentLoop(manager, session, temperature=0.5, max_tokens=20).run(ASK)
        for one in manager.servers:
            await one.openai.close()
    assert result.finished_naturally, result.error
    assert result.model == "served"
    assert json.loads(result.messages[2]["content"]) == {"result": 3}
    assert (server.requests[0]["temperature"], server.requests[0]["max_tokens"]) == (0.5, 20)
    assert len(server.requests[0]["tools"]) == 4


async def test_an_object_whose_model_dump_gives_no_fields_is_read_by_its_attributes():
    called = MagicMock(id="c1", function=MagicMock(arguments="{}"))
    called.function.name = "f"
    choice = MagicMock(message=MagicMock(content="x", tool_calls=[called]), finish_reason="tool_calls")
    turn = await as_client(Server(MagicMock(choices=[choice]))).complete(ASK)
    assert turn == Turn("x", tool_calls=(ToolCall("c1", "f", "{}"),), finish_reason="tool_calls")


RAW = 'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "settings"),
    [(RAW, {}), ('[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 2}}]', {"parser": "mistral"})],
)
async def test_calls_left_in_the_text_are_called(text, settings, tmp_path):
    said = iter([completion(text), completion("3")])

    class Raw:
        async def chat_completion(self, **kwargs):
            return next(said)

    async with tool_session(tmp_path) as session:
        result = await HermesAgentLoop(ServerClient(Raw(), **settings), session).run(ASK)
    assert json.loads(result.messages[2]["content"]) == {"result": 3}
    assert (result.turns_used, result.finished_naturally) == (2, True)


async def test_what_is_no_call_of_an_offered_tool_is_left_as_it_is():
    tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    for text, offered, settings in (
        (RAW, None, {}),
        (RAW, tools, {"parser": None}),
        ("<think>\nhm\n</think>\n\nok", tools, {}),
    ):
        turn = await ServerClient(Server(completion(text)), **settings).complete(ASK, offered)
        assert (turn.content, turn.tool_calls) == (text, ())


async def test_dicts_are_read_and_arguments_may_be_objects():
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    answer = {"choices": [{"message": {"content": "x", "tool_calls": [call]}}], "usage": None}
    turn = await as_client(Server(answer)).complete(ASK, temperature=None)
    assert (turn.tool_calls[0].name, turn.tool_calls[0].arguments) == ("f", '{"a": 1}')
    assert len(turn.tool_calls[0].id) == 9
    assert turn.finish_reason == "tool_calls"
