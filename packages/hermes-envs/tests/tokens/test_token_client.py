"""The token client against real servers on loopback, and against a real small model."""

import asyncio
import functools
import json
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hermes_envs.clients import BadResponse, ContextOverflow, ModelNotFound, ProviderUnavailable, TokenClient
from hermes_envs.clients.retry import RetryPolicy
from hermes_envs.clients.token_wire import AtroposWire, Sample, read_sample
from hermes_envs.messages import assistant_message, tool_message, user_message
from hermes_envs.tokens import FolderTokenizer
from policy_server import PolicyServer, call, logprob
from tiny_lm import TinyLM
from token_templates import END_OF, TEMPLATES, write_tokenizer

TOOLS = [
    {"type": "function", "function": {"name": "terminal", "parameters": {"type": "object", "properties": {}}}}
]
FAST = RetryPolicy(max_retries=2, first_wait=0.01)


@functools.cache
def tokenizer(name: str = "chatml") -> FolderTokenizer:
    return FolderTokenizer(write_tokenizer(Path(tempfile.mkdtemp()) / name, name))


class Script:
    """Replies in turn, whatever is asked."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def __call__(self, prompt: str) -> str:
        return self.replies.pop(0)


async def converse(rollout, turns: int, messages=None, **sampling):
    """Play turns; every call of a turn is answered with "ok", and no call with a user's message."""
    messages = messages or [user_message("Do it.")]
    seen = []
    for _ in range(turns):
        turn = await rollout.complete(messages, TOOLS, **sampling)
        seen.append(turn)
        messages.append(assistant_message(turn))
        answers = [tool_message(made.id, made.name, "ok") for made in turn.tool_calls]
        answers += [tool_message("invalid00", "invalid_tool_call", error.message) for error in turn.errors]
        messages += answers or [user_message("Go on.")]
    return seen


@pytest.mark.parametrize("wire", ["atropos", "vllm", "sglang", "auto"])
async def test_every_wire_gives_exact_turns(wire):
    reply = Script(
        f"I look.\n{call('terminal', command='ls')}\n{call('terminal', command='pwd')}", "Two files."
    )
    async with (
        PolicyServer(tokenizer(), reply) as server,
        TokenClient(f"{server.url}/v1", tokenizer(), model="m", wire=wire) as client,
    ):
        rollout = client.for_rollout()
        first, second = await converse(rollout, 2, temperature=0.5, max_tokens=500)
    assert first.content.strip() == "I look."
    assert [made.args for made in first.tool_calls] == [{"command": "ls"}, {"command": "pwd"}]
    assert (first.finish_reason, second.finish_reason, second.content) == ("tool_calls", "stop", "Two files.")
    (segment,) = rollout.segments
    assert segment.sampled_runs() == server.samples == [first.completion_ids, second.completion_ids]
    assert server.prompts == [first.prompt_ids, second.prompt_ids]
    for position, (token, sampled, value) in enumerate(
        zip(segment.tokens, segment.mask, segment.logprobs, strict=True)
    ):
        assert value == (logprob(position, token) if sampled else 1.0)
    assert segment.temperature == 0.5
    assert first.usage.completion_tokens == len(first.completion_ids)


async def test_auto_finds_the_route_a_stock_vllm_has():
    async with (
        PolicyServer(tokenizer(), Script("a", "b"), routes=["/inference/v1/generate"]) as server,
        TokenClient(server.url, tokenizer(), wire="auto") as client,
    ):
        turns = await converse(client.for_rollout(), 2)
    assert [turn.content for turn in turns] == ["a", "b"]
    assert all("token_ids" in request for request in server.requests)


async def test_auto_finds_it_for_all_that_ask_at_once():
    async with (
        PolicyServer(tokenizer(), lambda prompt: "a", routes=["/inference/v1/generate"]) as server,
        TokenClient(server.url, tokenizer(), wire="auto") as client,
    ):
        turns = await asyncio.gather(*(client.complete([user_message("x")]) for _ in range(8)))
        turns.append(await client.complete([user_message("y")]))
    assert [turn.content for turn in turns] == ["a"] * 9


async def test_a_server_without_a_token_route_is_named():
    async with (
        PolicyServer(tokenizer(), Script(), routes=[]) as server,
        TokenClient(server.url, tokenizer(), wire="auto") as client,
    ):
        with pytest.raises(ModelNotFound, match="/inference/v1/generate"):
            await client.complete([user_message("x")])


async def test_a_cut_reply_says_so_and_ends_nothing():
    async with (
        PolicyServer(tokenizer(), Script("a long reply that is cut", "b")) as server,
        TokenClient(server.url, tokenizer(), wire="atropos") as client,
    ):
        rollout = client.for_rollout()
        first, _ = await converse(rollout, 2, max_tokens=3)
    assert first.finish_reason == "length" and len(first.completion_ids) == 3
    end = tokenizer().end_tokens["<|im_end|>"]
    (segment,) = rollout.segments
    after = segment.spans[0].end
    assert segment.tokens[after] == end and not segment.mask[after]


async def test_stop_strings_leave_the_text_but_not_the_ids():
    async with (
        PolicyServer(tokenizer(), Script("keep STOP drop", "b")) as server,
        TokenClient(server.url, tokenizer(), wire="atropos") as client,
    ):
        rollout = client.for_rollout()
        first, _ = await converse(rollout, 2, stop=["STOP"])
    assert first.content == "keep "
    assert len(rollout.segments) == 1
    assert rollout.segments[0].sampled_runs() == server.samples


async def test_a_broken_call_is_an_error_record_and_the_rollout_goes_on():
    broken = '<tool_call>\n{"name": "terminal", "arguments": {\n</tool_call>\n' + call(
        "terminal", command="ls"
    )
    async with (
        PolicyServer(tokenizer(), Script(broken, "b")) as server,
        TokenClient(server.url, tokenizer(), wire="atropos") as client,
    ):
        rollout = client.for_rollout()
        first, _ = await converse(rollout, 2)
    assert len(first.errors) == 1 and len(first.tool_calls) == 1
    assert len(rollout.segments) == 1


async def test_thinking_opened_by_the_prompt_is_reasoning():
    name = "opens_thinking"
    async with (
        PolicyServer(tokenizer(name), Script("hm\n</think>\n\nThe answer.", "b\n</think>\nx")) as server,
        TokenClient(server.url, tokenizer(name), wire="atropos") as client,
    ):
        rollout = client.for_rollout()
        first, _ = await converse(rollout, 2)
    assert first.reasoning.strip() == "hm" and first.content.strip() == "The answer."
    assert len(rollout.segments) == 1


async def test_the_context_limit_is_kept():
    async with (
        PolicyServer(tokenizer(), Script("x " * 400, "b")) as server,
        TokenClient(server.url, tokenizer(), wire="atropos", context_limit=150) as client,
    ):
        rollout = client.for_rollout()
        (turn,) = await converse(rollout, 1, max_tokens=1000)
        assert len(turn.prompt_ids) + len(turn.completion_ids) == 150
        with pytest.raises(ContextOverflow):
            await rollout.complete(
                [*[user_message("Do it.")], assistant_message(turn), user_message("more")], TOOLS
            )
        assert len(rollout.segments[0].tokens) == 150


async def test_failures_that_pass_are_retried_and_others_are_not():
    states = iter([503, 429, 200])
    async with (
        PolicyServer(tokenizer(), Script("a")) as server,
        TokenClient(server.url, tokenizer(), wire="atropos", retry=FAST) as client,
    ):
        server.status = lambda: next(states)
        assert (await client.complete([user_message("x")])).content == "a"
        server.status = lambda: 503
        with pytest.raises(ProviderUnavailable):
            await client.complete([user_message("x")])
        assert len(server.requests) == 6


async def test_an_aborted_sample_is_the_servers_failure():
    class Aborts:
        path = "/generate"

        def request(self, model, ids, sampling):
            return {"prompt": {"prompt_token_ids": list(ids)}, **sampling}

        def read(self, answer):
            return Sample([], [], "abort")

    async with (
        PolicyServer(tokenizer(), Script("a")) as server,
        TokenClient(server.url, tokenizer(), wire=Aborts(), max_retries=0) as client,
    ):
        with pytest.raises(ProviderUnavailable, match="aborted"):
            await client.complete([user_message("x")])


@pytest.mark.parametrize("value", ["NaN", "-Infinity", None])
def test_a_logprob_that_is_no_number_is_refused(value):
    value = float(value) if value else None
    answer = {"logprobs": [[[{"5": -0.5}], [{"6": value}]]], "finish_reasons": ["stop"]}
    with pytest.raises(BadResponse):
        read_sample(AtroposWire(), answer)


def test_a_wrong_wire_or_parser_fails_at_once():
    with pytest.raises(ValueError, match="unknown wire"):
        TokenClient("http://x", tokenizer(), wire="telnet")
    with pytest.raises(KeyError):
        TokenClient("http://x", tokenizer(), parser="no-such-format")


# Against a real model: what is recorded is what the model itself says of the row.


class ModelServer(PolicyServer):
    """Samples from a real small model, its first tokens forced to a script where one is given."""

    def __init__(self, tok: FolderTokenizer, model: TinyLM, script: list[str], end: str) -> None:
        super().__init__(tok, lambda prompt: "", end=end)
        self.model = model
        self.script = script
        self.rng = np.random.default_rng(5)

    async def _sample(self, ids, limit):
        forced = self.tokenizer.encode(self.script.pop(0) + self.end) if self.script else []
        stop = set(self.tokenizer.end_tokens.values())
        sampled, logprobs = self.model.sample(ids, len(forced) or limit, stop, self.rng, forced)
        self.samples.append(sampled)
        return sampled, logprobs, "stop" if sampled[-1] in stop else "length"


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("forced", [True, False], ids=["forced", "free"])
async def test_logprobs_are_the_models_own(name, forced):
    tok = tokenizer(name)
    model = TinyLM(700)
    script = (
        [f"Look. \n{call('terminal', command='ls')}", "<think>\nhm\n</think>\n\nDone. ", ""] if forced else []
    )
    async with (
        ModelServer(tok, model, script, END_OF.get(name, "<|im_end|>")) as server,
        TokenClient(server.url, tok, wire="sglang") as client,
    ):
        rollout = client.for_rollout()
        await converse(rollout, 3, max_tokens=12)
    (segment,) = rollout.segments
    assert segment.sampled_runs() == server.samples
    taught = model.logprobs(segment.tokens)
    differences = [
        abs(taught[position - 1][token] - segment.logprobs[position])
        for position, token in enumerate(segment.tokens)
        if segment.mask[position]
    ]
    assert differences and max(differences) < 1e-5
    if not forced and name == "chatml":  # free sampling is why re-tokenising is no option
        text = tok.decode(segment.tokens)
        assert tok.encode(text) != segment.tokens
    ends = {token for text, token in tok.end_tokens.items() if text == "<|im_end|>"}
    assert not any(a in ends and b in ends for a, b in pairwise(segment.tokens))
    json.dumps(segment.to_dict())
