"""The conversation shapes that break re-rendering, through the whole adapter: rows a trainer can rely on."""

import functools
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from atropos_world import make_env
from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig
from hermes_envs.atropos.rows import exact_rows
from hermes_envs.tokens import FolderTokenizer
from hermes_tools import tool
from policy_server import PolicyServer, call, logprob
from token_templates import TEMPLATES, write_tokenizer

pytestmark = pytest.mark.atropos


@tool(toolset="probe")
async def look(what: str = "") -> str:
    """Look at something."""
    return f"seen {what}\n"


class ProbeEnv(HermesAgentBaseEnv):
    """A few turns with a tool."""

    name = "probe"

    @classmethod
    def config_init(cls):
        return HermesAgentEnvConfig(group_size=1, max_token_length=400, include_messages=True), [
            ServerConfig()
        ]

    def tools(self):
        return [look]

    def format_prompt(self, item):
        return "Look around."

    async def compute_reward(self, item, result, ctx):
        return 1.0


@functools.cache
def folder(name: str) -> str:
    return str(write_tokenizer(Path(tempfile.mkdtemp()) / name, name))


SHAPES = {
    "three turns": [call("look", what="a"), call("look", what="b"), "Done."],
    "text around the call": ["I look.  \n" + call("look", what="a"), "Done. \n"],
    "two calls at once": [f"{call('look', what='a')}\n{call('look', what='b')}", "Done."],
    "odd JSON spacing": ['<tool_call>\n{"arguments" : {"what":"a"},   "name":"look"}\n</tool_call>', "Done."],
    "thinking": [f"<think>\nhm\n</think>\n\n{call('look', what='a')}", "<think>\nso\n</think>\n\nDone."],
    "broken call": ['<tool_call>\n{"name": "look", "arguments": {\n</tool_call>', "Done."],
    "unknown tool": [call("lock", what="a"), "Done."],
    "no tools used": ["Nothing to see."],
    "empty answer": [call("look", what="a"), ""],
}


@pytest.mark.parametrize(
    "template", [name for name in TEMPLATES if name not in ("llama", "mistral", "glm", "plain")]
)
@pytest.mark.parametrize("shape", SHAPES)
async def test_one_exact_row(template, shape):
    tokenizer = FolderTokenizer(folder(template))
    script = list(SHAPES[shape])
    opened = template == "opens_thinking"

    def reply(prompt: str) -> str:
        said = script.pop(0)
        return f"hm\n</think>\n\n{said}" if opened and not said.startswith("<think>") else said

    async with PolicyServer(tokenizer, reply) as server:
        env = make_env(ProbeEnv, server.url, tokenizer_name=folder(template), system_prompt="Be brief.")
        (rollout,) = await env.rolling.run_group({}, env.rolling.group())
    assert not script, "the rollout ended early"
    (row,) = exact_rows(rollout, tokenizer, every_segment=True)
    assert row.overrides.get("segments") is None
    assert len(row.tokens) == len(row.masks) == len(row.logprobs)
    trained = [(at, label) for at, label in enumerate(row.masks) if label != -100]
    assert [label for _, label in trained] == [token for sample in server.samples for token in sample]
    assert row.tokens[: len(server.prompts[0])] == server.prompts[0]
    assert all(row.logprobs[at] == logprob(at, label) for at, label in trained)
    assert all(value == 1.0 for value, label in zip(row.logprobs, row.masks, strict=True) if label == -100)
    end = tokenizer.end_tokens["<|im_end|>"]
    assert (end, end) not in set(pairwise(row.tokens))


async def test_a_cut_reply_ends_the_rollout_as_truncated():
    tokenizer = FolderTokenizer(folder("chatml"))
    async with PolicyServer(tokenizer, lambda prompt: "a long reply " * 50) as server:
        env = make_env(ProbeEnv, server.url, tokenizer_name=folder("chatml"), max_token_length=12)
        (rollout,) = await env.rolling.run_group({}, env.rolling.group())
    assert rollout.result.stop_reason == "truncated"
    (row,) = exact_rows(rollout, tokenizer)
    assert row.trained == 12


async def test_a_full_context_ends_the_rollout_with_its_row():
    tokenizer = FolderTokenizer(folder("chatml"))
    async with PolicyServer(tokenizer, lambda prompt: call("look", what="x" * 40)) as server:
        env = make_env(ProbeEnv, server.url, tokenizer_name=folder("chatml"), context_length=600)
        (rollout,) = await env.rolling.run_group({}, env.rolling.group())
    assert rollout.result.stop_reason in ("context_full", "truncated")
    (row,) = exact_rows(rollout, tokenizer)
    assert len(row.tokens) <= 600 and row.trained > 0


async def test_a_rewritten_history_gives_honest_segments():
    tokenizer = FolderTokenizer(folder("strips_thinking"))
    script = list(SHAPES["thinking"])
    async with PolicyServer(tokenizer, lambda prompt: script.pop(0)) as server:
        env = make_env(
            ProbeEnv,
            server.url,
            tokenizer_name=folder("strips_thinking"),
            history="template",
            rows="segments",
        )
        (rollout,) = await env.rolling.run_group({}, env.rolling.group())
    rows = exact_rows(rollout, tokenizer, every_segment=True)
    assert [row.overrides["segment"] for row in rows] == [0, 1]
    trained = [label for row in rows for label in row.masks if label != -100]
    assert trained == [token for sample in server.samples for token in sample]
