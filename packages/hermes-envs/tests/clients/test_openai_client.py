"""OpenAIClient against a real server on loopback."""

import asyncio
import resource
import time

import pytest
from aiohttp import web
from envs_chat_server import ChatServer, completion, failure
from envs_tools import held_port, tool_session
from hermes_envs import HermesAgentLoop
from hermes_envs.clients import (
    AdaptiveConcurrency,
    AuthenticationFailed,
    BadRequest,
    BadResponse,
    ContentFiltered,
    ContextOverflow,
    ModelNotFound,
    OpenAIClient,
    Price,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
    RetryPolicy,
)

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}]
QUICK = RetryPolicy(max_retries=3, first_wait=0.01)


async def ask(respond, *, messages=HELLO, tools=None, sampling=None, **options):
    options.setdefault("retry", QUICK)
    async with ChatServer(respond) as server, OpenAIClient("m", server.url, **options) as client:
        return await client.complete(messages, tools, **(sampling or {})), server


@pytest.mark.parametrize("stream", [False, True])
async def test_reads_content_calls_reasoning_and_usage(stream):
    answer = completion(
        "Let me look.",
        calls=[("c1", "f", '{"a": 1}'), ("c2", "g", '{"b": "ü"}')],
        message={"reasoning_content": "I should look."},
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60},
        },
    )
    turn, _ = await ask([answer], stream=stream, price=Price(prompt=1.0, completion=10.0, cached=0.1))
    assert turn.content == "Let me look."
    assert turn.reasoning == "I should look."
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        ("c1", "f", '{"a": 1}'),
        ("c2", "g", '{"b": "ü"}'),
    ]
    assert turn.finish_reason == "tool_calls"
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens, turn.usage.cached_tokens) == (100, 20, 60)
    assert turn.usage.cost_usd == pytest.approx((40 * 1.0 + 60 * 0.1 + 20 * 10.0) / 1e6)
    assert turn.model == "test-model"


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "thought"},
        {"reasoning": "thought"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "thou"}, {"type": "x", "text": "ght"}]},
        {"content": [{"type": "thinking", "thinking": "thought"}, {"type": "text", "text": "ok"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "thought"}]}]},
    ],
)
async def test_reads_reasoning_in_every_spelling(message):
    turn, _ = await ask([completion("ok", message=message)])
    assert turn.reasoning.replace("\n", "") == "thought"


async def test_sends_reasoning_back_in_the_servers_own_spelling():
    async with (
        ChatServer([completion("a", message={"reasoning": "why"}), completion("b")]) as server,
        OpenAIClient("m", server.url) as client,
    ):
        await client.complete(HELLO)
        await client.complete([*HELLO, {"role": "assistant", "content": "a", "reasoning_content": "why"}])
    assert server.requests[1]["messages"][1] == {"role": "assistant", "content": "a", "reasoning": "why"}


async def test_sends_sampling_extra_body_and_tools():
    _, server = await ask(
        [completion("x")],
        tools=TOOLS,
        extra_body={"provider": {"order": ["a"]}, "top_k": 5},
        sampling={"temperature": 0.5, "max_tokens": 7, "seed": None, "extra_body": {"top_k": 9}},
    )
    body = server.requests[0]
    assert body == {
        "model": "m",
        "messages": HELLO,
        "tools": TOOLS,
        "temperature": 0.5,
        "max_tokens": 7,
        "provider": {"order": ["a"]},
        "top_k": 9,
    }


async def test_unreadable_arguments_of_past_calls_are_sent_as_json_and_the_history_is_kept():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    messages = [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}]
    _, server = await ask([completion("x")], messages=messages)
    sent = server.requests[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert sent == '{"unreadable_arguments": "{\\"a\\": "}'
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"a": '


async def test_every_result_that_is_sent_answers_a_call():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    results = [
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "1"},
        {"role": "tool", "tool_call_id": "e00001000", "name": "invalid_tool_call", "content": "unreadable"},
    ]
    turns = [
        {"role": "assistant", "content": "<tool_call>{", "tool_calls": [call]},
        {"role": "assistant", "content": "<tool_call>{"},
    ]
    messages = [*HELLO, turns[0], *results, *HELLO, turns[1], results[1]]
    _, server = await ask([completion("x")], messages=messages)
    sent = server.requests[0]["messages"]
    announced = [[call["id"] for call in message.get("tool_calls", ())] for message in sent]
    assert announced == [[], ["c1", "e00001000"], [], [], [], ["e00001000"], []]
    assert [message["content"] for message in sent] == [message["content"] for message in messages]
    assert turns[0]["tool_calls"] == [call] and "tool_calls" not in turns[1]


async def test_retries_what_may_pass_and_waits_as_long_as_the_server_says():
    began = time.perf_counter()
    turn, server = await ask(
        [
            lambda: failure(429, "slow down", headers={"Retry-After": "0.3"}),
            lambda: failure(500, "oops"),
            completion("at last"),
        ]
    )
    assert turn.content == "at last"
    assert len(server.requests) == 3
    assert time.perf_counter() - began >= 0.3


async def test_asks_no_more_often_than_the_policy_says():
    requests = 0

    def fail(body, request):
        nonlocal requests
        requests += 1
        return failure(503, "down")

    with pytest.raises(ProviderUnavailable):
        await ask(fail)
    assert requests == 4  # the SDK's own retries would multiply this


async def test_does_not_wait_longer_than_it_is_willing_to():
    with pytest.raises(RateLimited) as caught:
        await ask([lambda: failure(429, "tomorrow", headers={"Retry-After": "86400"})])
    assert caught.value.retry_after == 86400


OVERFLOWS = {
    "openai": (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
    ),
    "vllm": (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    "vllm max_tokens": (400, "max_tokens must be at least 1, got -5."),
    "sglang": (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    "llama.cpp": (400, "the request exceeds the available context size. try increasing the context size"),
    "llama-cpp-python": (500, "Requested tokens (9000) exceed context window of 2048"),
    "tgi": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
    "anthropic": (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "gemini": (
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "mistral": (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "xai": (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    "openrouter": (
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000",
    ),
    "dashscope": (400, "Range of input length should be [1, 30720]"),
    "openai responses": (
        400,
        "Your input exceeds the context window of this model. Please adjust your input.",
    ),
    "vllm 0.12": (
        400,
        "You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only "
        "4096 tokens, resulting in a maximum input length of 3996 tokens.",
    ),
    "lm studio": (
        400,
        "Trying to keep the first 5000 tokens when context overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
    ),
    "tgi inputs": (422, "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"),
    "cohere": (
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    ),
    "deepinfra": (400, "Requested input length 5000 exceeds maximum input length 4095"),
    "litellm": (400, "litellm.ContextWindowExceededError: upstream refused"),
    "moonshot": (400, "Invalid request: Your request exceeded model token limit: 8192"),
    "minimax": (400, "invalid params, context window exceeds limit"),
}


@pytest.mark.parametrize("server", OVERFLOWS)
async def test_recognises_a_full_context(server):
    status, text = OVERFLOWS[server]
    with pytest.raises(ContextOverflow):
        await ask([lambda: failure(status, text)])


async def test_recognises_a_full_context_by_its_code():
    with pytest.raises(ContextOverflow):
        await ask([lambda: failure(400, "too much", code="context_length_exceeded")])


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (400, "unknown parameter", BadRequest),
        (400, "Too many tokens, please wait before trying again.", BadRequest),
        (401, "wrong key", AuthenticationFailed),
        (403, "not allowed", AuthenticationFailed),
        (404, "no such model", ModelNotFound),
        (422, "wrong type", BadRequest),
        (402, "no credit", RateLimited),
        (429, "You exceeded your current quota", RateLimited),
        (400, "the response was filtered: content_filter", ContentFiltered),
    ],
)
async def test_final_errors_are_typed_and_not_retried(status, text, error):
    requests = 0

    def fail(body, request):
        nonlocal requests
        requests += 1
        return failure(status, text)

    with pytest.raises(error) as caught:
        await ask(fail)
    assert caught.value.status == status
    assert text in str(caught.value)
    assert requests == 1


async def test_a_timeout_is_typed_and_the_slot_given_back():
    async def never(body, request):
        await asyncio.sleep(30)
        return completion("late")

    limiter = AdaptiveConcurrency(4)
    with pytest.raises(ProviderTimeout):
        await ask(never, timeout=0.1, retry=RetryPolicy(max_retries=0), concurrency=limiter)
    assert limiter.in_flight == 0
    assert limiter.limit == 2


async def test_an_endpoint_that_is_down_is_named():
    with held_port() as port:
        url = f"http://127.0.0.1:{port.getsockname()[1]}/v1"
        async with OpenAIClient("m", url, retry=RetryPolicy(max_retries=0)) as client:
            with pytest.raises(ProviderUnavailable, match="cannot reach"):
                await client.complete(HELLO)


async def test_without_key_and_server_it_says_what_to_give(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY"):
        await OpenAIClient("m").complete(HELLO)


@pytest.mark.parametrize(
    "answer",
    [
        {"id": "x", "choices": []},
        {"id": "x", "choices": {"message": {}}},
        completion(message={"content": 5}),
        completion(message={"tool_calls": 5}),
        completion(usage={"prompt_tokens": "many"}),
        lambda: web.Response(text="<html>gateway</html>", content_type="text/html"),
        lambda: web.Response(text="{", content_type="application/json"),
    ],
)
async def test_an_answer_that_is_no_completion(answer):
    with pytest.raises(BadResponse):
        await ask([answer], retry=RetryPolicy(max_retries=0))


async def test_an_error_inside_a_200_is_an_error():
    answer = {"error": {"message": "upstream is busy", "code": 502}}
    turn, server = await ask([answer, completion("ok")])
    assert turn.content == "ok"
    assert len(server.requests) == 2


async def test_learns_the_name_of_the_token_limit():
    def respond(body, request):
        if "max_tokens" in body:
            return failure(
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                type="invalid",
            )
        return completion("ok")

    async with ChatServer(respond) as server, OpenAIClient("m", server.url) as client:
        assert (await client.complete(HELLO, max_tokens=5)).content == "ok"
        assert (await client.complete(HELLO, max_tokens=5)).content == "ok"
    assert [r.get("max_completion_tokens") for r in server.requests] == [None, 5, 5]


async def test_reads_markup_with_a_parser_and_keeps_broken_calls():
    text = (
        'Look:<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
        '<tool_call>{"name": "f", "arguments": {"x": }}</tool_call>'
    )
    turn, server = await ask([completion(text)], tools=TOOLS, parser="hermes")
    assert turn.content == "Look:"
    assert [call.args for call in turn.tool_calls] == [{"x": 1}]
    assert len(turn.errors) == 1
    assert turn.finish_reason == "tool_calls"
    assert server.requests[0]["tool_choice"] == "none"


async def test_token_ids_and_logprobs_where_the_server_tells():
    answer = completion("hi", prompt_token_ids=[1, 2, 3])
    answer["choices"][0] |= {
        "token_ids": [4, 5],
        "logprobs": {"content": [{"token": "h", "logprob": -0.1}, {"token": "i", "logprob": -0.2}]},
    }
    turn, _ = await ask([answer])
    assert (turn.prompt_ids, turn.completion_ids, turn.logprobs) == ([1, 2, 3], [4, 5], [-0.1, -0.2])


async def test_one_client_serves_several_event_loops():
    async with ChatServer([completion("ok")]) as server:
        client = OpenAIClient("m", server.url)

        def in_a_loop_of_its_own():
            async def once():
                try:
                    return (await client.complete(HELLO)).content
                finally:
                    await client.aclose()

            return asyncio.run(once())

        assert [await asyncio.to_thread(in_a_loop_of_its_own) for _ in range(2)] == ["ok", "ok"]


async def asked_again_after(streamed: bytes) -> None:
    """What was streamed first is no reply: the client asks a second time."""
    requests = 0

    async def respond(body, request):
        nonlocal requests
        requests += 1
        if requests > 1:
            return completion("whole")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(streamed)
        return response

    turn, _ = await ask(respond, stream=True)
    assert (turn.content, requests) == ("whole", 2)


async def test_a_stream_that_breaks_off_is_no_reply():
    await asked_again_after(b'data: {"choices": [{"index": 0, "delta": {"content": "ha"}}]}\n\n')


@pytest.mark.parametrize(
    "chunk",
    [
        '{"choices": 5}',
        '{"choices": [{"delta": {"tool_calls": [5]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": 5}}]}, "finish_reason": "stop"}]}',
    ],
)
async def test_a_chunk_that_is_none_is_asked_for_again(chunk):
    await asked_again_after(f"data: {chunk}\n\ndata: [DONE]\n\n".encode())


@pytest.fixture
def descriptors_enough():
    """Both ends of every connection are this process's; many machines allow 1024 open files unless asked for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors_enough")
async def test_five_hundred_at_once_over_one_client():
    async def respond(body, request):
        await asyncio.sleep(0.05)
        return completion(body["messages"][0]["content"])

    async with ChatServer(respond) as server, OpenAIClient("m", server.url) as client:
        turns = await asyncio.gather(
            *(client.complete([{"role": "user", "content": str(i)}]) for i in range(500))
        )
    assert [turn.content for turn in turns] == [str(i) for i in range(500)]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_provider_puts_beside_a_call_goes_back_with_it(tmp_path, stream):
    signature = {"google": {"thought_signature": "abc"}}

    def respond(body, request):
        if len(body["messages"]) > 1:
            return completion("done")
        answer = completion(calls=[("c1", "add", '{"a": 1, "b": 2}'), ("c2", "add", '{"a": 3, "b": 4}')])
        answer["choices"][0]["message"]["tool_calls"][0]["extra_content"] = signature
        return answer

    async with (
        ChatServer(respond) as server,
        tool_session(tmp_path) as session,
        OpenAIClient("m", server.url, stream=stream) as client,
    ):
        result = await HermesAgentLoop(client, session).run(HELLO)
    assert result.finished_naturally
    first, second = server.requests[1]["messages"][1]["tool_calls"]
    assert first["extra_content"] == signature
    assert "extra_content" not in second
