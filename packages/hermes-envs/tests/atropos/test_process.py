"""process: trajectories in the named file, resumable, readable, loadable."""

import asyncio
import json

import pytest
from atropos_world import TOKENIZER, make_env
from hermes_envs.atropos.environments.terminal_test import TerminalTestEnv
from hermes_envs.atropos.errors import EnvironmentFailed
from hermes_envs.atropos.output_file import OutputFile
from hermes_envs.config import ConfigError
from hermes_envs.tokens import ChatTemplateError
from policy_server import PolicyServer, alternating, file_writer
from say_env import SayEnv, say_policy

pytestmark = pytest.mark.atropos


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


async def process(env) -> None:
    async with asyncio.timeout(60):
        await env.process_manager()


async def test_terminal_test_writes_one_trajectory_a_line(tmp_path):
    path = tmp_path / "sub" / "out.jsonl"

    def policy(prompt: str) -> str:
        return "I will not." if "answer.txt" in prompt else file_writer(prompt)

    async with PolicyServer(TOKENIZER, policy) as server:
        env = make_env(TerminalTestEnv, server.url, data_path_to_save_groups=str(path), total_steps=3, seed=1)
        await process(env)
    lines = lines_of(path)
    assert len(lines) == 9
    assert {line["reward"] for line in lines} == {0.0, 1.0}
    for line in lines:
        assert line["conversation"][0]["role"] == "system"
        assert line["metadata"]["env"] == "terminal-test" and line["metadata"]["seed"] is not None
        assert len(line["tokens"]) == len(line["masks"]) == len(line["logprobs"])
        trained = [label for label in line["masks"] if label != -100]
        said = "".join(
            m["content"] + "".join(_call(c) for c in m.get("tool_calls", ())) + "<|im_end|>"
            for m in line["conversation"]
            if m["role"] == "assistant"
        )
        assert TOKENIZER.decode(trained).replace("\n", "") == said.replace("\n", "")
    assert {line["metadata"]["item"] for line in lines} == {"greeting", "count", "answer"}
    page = path.with_suffix(".html").read_text()
    assert "printf &#x27;Hello" in page and "<b>terminal</b>" in page


def _call(call) -> str:
    arguments = json.dumps(json.loads(call["function"]["arguments"]))
    return f'<tool_call>{{"name": "{call["function"]["name"]}", "arguments": {arguments}}}</tool_call>'


async def test_phase_one_leaves_tokens_out(tmp_path):
    path = tmp_path / "out.jsonl"
    async with PolicyServer(TOKENIZER, file_writer) as server:
        url = f"{server.url}/v1"
        env = make_env(
            TerminalTestEnv,
            url,
            server_type="openai",
            data_path_to_save_groups=str(path),
            total_steps=1,
            group_size=1,
        )
        await process(env)
    (line,) = lines_of(path)
    assert line["reward"] == 1.0
    assert line["tokens"] is None and line["masks"] is None and line["logprobs"] is None


async def test_phase_one_needs_no_template_that_takes_the_conversation(tmp_path):
    class Strict:
        def encode(self, text):
            return TOKENIZER.encode(text)

        def render(self, messages, tools=None, *, add_generation_prompt=False):
            raise ChatTemplateError("only user and assistant roles are supported")

    path = tmp_path / "out.jsonl"
    async with PolicyServer(TOKENIZER, file_writer) as server:
        settings = {"data_path_to_save_groups": str(path), "total_steps": 1, "group_size": 1}
        env = make_env(TerminalTestEnv, f"{server.url}/v1", server_type="openai", **settings)
        env.chat_tokenizer = Strict()
        await process(env)
    (line,) = lines_of(path)
    assert line["reward"] == 1.0


@pytest.mark.parametrize("form", ["trajectories", "openai", "sharegpt", "atif", "groups"])
async def test_every_format_loads_with_datasets(tmp_path, form):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "out.jsonl"
    async with PolicyServer(TOKENIZER, alternating(file_writer, lambda prompt: "I will not.")) as server:
        env = make_env(
            TerminalTestEnv,
            server.url,
            data_path_to_save_groups=str(path),
            total_steps=2,
            group_size=2,
            process_format=form,
        )
        await process(env)
    rows = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(rows) == (2 if form == "groups" else 4)
    if form == "openai":
        assert rows[0]["messages"][0]["role"] == "system"
    if form == "sharegpt":
        spoken = [turn["from"] for row in rows for turn in row["conversations"]]
        assert set(spoken) == {"system", "human", "gpt", "tool"}
        assert any("<tool_call>" in turn["value"] for row in rows for turn in row["conversations"])
    if form == "groups":
        assert len(rows[0]["tokens"]) == len(rows[0]["scores"]) == 2
        assert rows[0]["inference_logprobs"] is not None


async def test_it_goes_on_where_a_kill_stopped_it(tmp_path):
    path = tmp_path / "out.jsonl"
    settings = {"data_path_to_save_groups": str(path), "total_steps": 4, "ensure_scores_are_not_same": False}
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        await process(make_env(SayEnv, server.url, **settings))
        whole = path.read_text().splitlines(keepends=True)
        assert len(whole) == 8
        path.write_text("".join(whole[:5]) + whole[5][:40])  # two groups, half of a third, a torn line
        asked = len(server.requests)
        await process(make_env(SayEnv, server.url, **settings))
        assert len(server.requests) - asked == 4
    groups = sorted(line["metadata"]["group"] for line in lines_of(path))
    assert groups == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [line["metadata"]["item"] for line in lines_of(path)]


async def test_overwrite_starts_anew_and_a_foreign_file_is_left_alone(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"some": "data"}\n')
    settings = {"data_path_to_save_groups": str(path), "total_steps": 1}
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        with pytest.raises(ConfigError, match="overwrite"):
            await process(make_env(SayEnv, server.url, **settings))
        assert path.read_text() == '{"some": "data"}\n'
        await process(make_env(SayEnv, server.url, **settings, overwrite=True))
    assert len(lines_of(path)) == 2


async def test_a_file_of_another_form_is_not_gone_on_with(tmp_path):
    path = tmp_path / "out.jsonl"
    settings = {"data_path_to_save_groups": str(path), "total_steps": 2}
    forms = ["trajectories", "openai", "sharegpt", "atif", "groups"]
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        for form, other in zip(forms, [*forms[1:], forms[0]], strict=True):
            await process(make_env(SayEnv, server.url, **settings, process_format=form, overwrite=True))
            written = path.read_bytes()
            with pytest.raises(ConfigError, match=f"--format {form}"):
                await process(make_env(SayEnv, server.url, **settings, process_format=other))
            await process(make_env(SayEnv, server.url, **settings, process_format=form))
            assert path.read_bytes() == written


class Changing(SayEnv):
    """Makes its own scores and drops every other group, by Atropos' own hooks."""

    async def collect_trajectories(self, item):
        group, backlog = await super().collect_trajectories(item)
        if item % 2:
            return None, backlog
        return group, backlog

    async def postprocess_histories(self, trajectories):
        trajectories["scores"] = [score / 2 for score in trajectories["scores"]]
        trajectories["messages"] = [
            [*messages, {"role": "user", "content": "Thanks."}] for messages in trajectories["messages"]
        ]
        return trajectories


@pytest.mark.parametrize("form", ["trajectories", "groups"])
async def test_what_a_subclass_makes_of_its_groups_is_written(tmp_path, form):
    path = tmp_path / "out.jsonl"
    settings = {"data_path_to_save_groups": str(path), "total_steps": 4, "process_format": form}
    async with PolicyServer(TOKENIZER, say_policy(1000)) as server:
        await process(make_env(Changing, server.url, **settings))
        lines = lines_of(path)
        await process(make_env(Changing, server.url, **{**settings, "total_steps": 6}))
    assert {line["metadata"]["group"] for line in lines} == {1, 3}
    assert lines_of(path)[: len(lines)] == lines and len(lines_of(path)) == len(lines) * 3 // 2
    if form == "groups":
        assert [line["scores"] for line in lines] == [[0.5, 0.5]] * 2
        return
    assert [line["reward"] for line in lines] == [0.5] * 4
    for line in lines:
        assert line["conversation"][-1]["content"] == "Thanks."
        assert line["metadata"]["turns"] == 1 and line["metadata"]["model"] == "policy"
        assert len(line["tokens"]) == len(line["masks"]) == len(line["logprobs"])


async def test_items_without_a_rollout_behind_them_are_written_too(tmp_path):
    class Own(SayEnv):
        async def collect_trajectory(self, item):
            messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": str(item)}]
            return {"tokens": [1, 2], "masks": [-100, 2], "scores": 3.0, "messages": messages}, []

    path = tmp_path / "out.jsonl"
    await process(make_env(Own, "http://127.0.0.1:9", data_path_to_save_groups=str(path), total_steps=1))
    assert [
        (line["reward"], line["tokens"], line["conversation"][1]["content"]) for line in lines_of(path)
    ] == [(3.0, [1, 2], "1")] * 2


@pytest.mark.parametrize("where", ["format_prompt", "compute_reward"])
async def test_a_cancellation_that_nobody_asked_for_is_counted_and_said(tmp_path, where):
    class Stray(SayEnv):
        def format_prompt(self, item):
            if where == "format_prompt":
                raise asyncio.CancelledError
            return super().format_prompt(item)

        async def compute_reward(self, item, result, ctx):
            raise asyncio.CancelledError

    path = tmp_path / "out.jsonl"
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(
            Stray, server.url, data_path_to_save_groups=str(path), total_steps=9, max_num_workers=1
        )
        with pytest.raises(ExceptionGroup, match="unhandled") as caught:
            await process(env)
    (failed,) = caught.value.exceptions
    assert isinstance(failed, EnvironmentFailed) and "Cancelled" in str(failed)
    if where == "compute_reward":
        assert (env.metrics.dropped_groups, env.metrics.outcomes["infra_failed"]) == (3, 6)


async def test_groups_run_at_once(tmp_path):
    four_groups = asyncio.Barrier(8)

    async def together(prompt: str) -> str:
        await four_groups.wait()
        return "x"

    async with PolicyServer(TOKENIZER, together) as server:
        env = make_env(
            SayEnv,
            server.url,
            data_path_to_save_groups=str(tmp_path / "o.jsonl"),
            total_steps=12,
            max_num_workers=4,
        )
        await process(env)
        assert server.most_in_flight == 8


async def test_a_model_cannot_put_markup_into_the_page(tmp_path):
    path = tmp_path / "out.jsonl"
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    async with PolicyServer(TOKENIZER, lambda prompt: attack) as server:
        env = make_env(SayEnv, server.url, data_path_to_save_groups=str(path), total_steps=1)
        await process(env)
    page = path.with_suffix(".html").read_text()
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page


async def test_a_dead_provider_ends_it_with_its_reason(tmp_path):
    path = tmp_path / "out.jsonl"
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        server.status = lambda: 401
        env = make_env(
            SayEnv, server.url, data_path_to_save_groups=str(path), total_steps=9, max_num_workers=1
        )
        with pytest.raises(ExceptionGroup) as caught:
            await process(env)
    (failed,) = caught.value.exceptions
    assert isinstance(failed, EnvironmentFailed) and "401" in str(failed)
    assert path.read_text() == ""


async def test_a_group_that_is_not_whole_is_counted_where_groups_are_written(tmp_path):
    path = tmp_path / "out.jsonl"
    count = iter(range(10_000))
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        server.status = lambda: 400 if next(count) == 2 else 200
        env = make_env(
            SayEnv,
            server.url,
            data_path_to_save_groups=str(path),
            total_steps=4,
            process_format="groups",
            max_num_workers=1,
        )
        await process(env)
    assert len(lines_of(path)) == 3 and env.metrics.dropped_groups == 1


async def test_infrastructure_failures_are_never_rewards(tmp_path):
    """One reply in five fails for good; what is written are only true rewards."""
    path = tmp_path / "out.jsonl"
    count = iter(range(10_000))
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        server.status = lambda: 400 if next(count) % 5 == 0 else 200
        env = make_env(
            SayEnv, server.url, data_path_to_save_groups=str(path), total_steps=10, max_rollout_attempts=1
        )
        await process(env)
    lines = lines_of(path)
    assert 0 < len(lines) < 20
    for line in lines:
        right = line["conversation"][-1]["content"] == line["conversation"][0]["content"][4:-1]
        assert line["reward"] == float(right)


def test_what_utf8_cannot_spell_is_written_all_the_same(tmp_path):
    file = OutputFile(tmp_path / "out.jsonl", 1, "trajectories")
    file.write(0, [{"metadata": {"group": 0}, "said": "a\ud83d"}])
    file.close()
    assert [line["said"] for line in file.lines()] == ["a?"]
