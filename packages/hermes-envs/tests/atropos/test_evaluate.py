"""evaluate: real standard errors, nothing overwritten, wandb offline for real."""

import asyncio
import json
import math
import statistics

import pytest
from atropos_world import TOKENIZER, make_env
from hermes_envs.atropos.environments.terminal_test import TerminalTestEnv
from hermes_envs.atropos.evaluation import mean_and_error
from hermes_envs.atropos.metrics import readable
from policy_server import PolicyServer, call, file_writer
from say_env import SayEnv, say_policy

pytestmark = pytest.mark.atropos


async def test_metrics_and_samples_per_step_and_nothing_overwritten(tmp_path):
    async with PolicyServer(TOKENIZER, say_policy(3)) as server:
        for _ in range(2):
            env = make_env(SayEnv, server.url, data_dir_to_save_evals=str(tmp_path))
            await env.evaluate_manager()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["step-0", "step-0.2"]
    for folder in tmp_path.iterdir():
        written = json.loads((folder / "metrics.json").read_text())
        samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
        rewards = [sample["score"] for sample in samples]
        found = written["results"]["all"]
        assert len(rewards) == found["graded"] == 3
        assert found["reward"] == pytest.approx(statistics.fmean(rewards))
        assert found["reward_stderr"] == pytest.approx(statistics.stdev(rewards) / math.sqrt(3))
        assert found["reward_stderr"] > 0
        assert written["results"]["atropos|say|0"] == found
        assert written["config_general"]["model_name"] == "policy"


async def test_failures_of_the_infrastructure_are_counted_apart(tmp_path):
    async with PolicyServer(TOKENIZER, say_policy(1000)) as server:
        states = iter([401, 200, 200])
        server.status = lambda: next(states)
        env = make_env(SayEnv, server.url, data_dir_to_save_evals=str(tmp_path), max_eval_workers=1)
        await env.evaluate_manager()
    found = json.loads((tmp_path / "step-0" / "metrics.json").read_text())["results"]["all"]
    assert (found["items"], found["graded"], found["infra_failed"], found["reward"]) == (3, 2, 1, 1.0)
    samples = [json.loads(line) for line in (tmp_path / "step-0" / "samples.jsonl").read_text().splitlines()]
    assert [sample["score"] for sample in samples].count(None) == 1
    assert any("401" in (sample["failure"] or "") for sample in samples)


async def test_an_evaluation_belongs_to_the_step_at_which_it_began(tmp_path):
    class Slow(SayEnv):
        async def evaluate(self, *args, **kwargs):
            self.curr_step += 2  # the trainer goes on
            await self.evaluate_items([1])

    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(Slow, server.url, data_dir_to_save_evals=str(tmp_path))
        env.curr_step = 4
        await env.evaluate_while_serving()
        await env.evaluate()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["step-4", "step-8"]


async def test_times_may_be_on_any_clock(capsys):
    env = make_env(SayEnv, "http://127.0.0.1:9")
    await env.evaluate_log({"reward": 1.0}, start_time=0, end_time=2.5)
    assert "say: 2.5 s" in capsys.readouterr().out


async def test_wandb_is_told_no_secret_when_serving(monkeypatch):
    import wandb

    told = {}
    monkeypatch.setattr(wandb, "init", told.update)
    env = make_env(SayEnv, "http://127.0.0.1:9", use_wandb=True, terminal_env={"NAME": "s3cret"})
    answer = {
        "env_id": 0,
        "wandb_name": "say_0",
        "starting_step": 0,
        "checkpoint_dir": "",
        "checkpoint_interval": 0,
        "num_steps": 1,
    }
    await env.registered(answer, {"batch_size": 2, "max_token_len": 100, "group": "g", "project": "p"})
    assert (told["group"], told["project"]) == ("g", "p")
    assert "NAME" in told["config"]["terminal_env"] and "s3cret" not in repr(told)


def test_a_standard_error_needs_two_values():
    assert mean_and_error([1.0]) == (1.0, None)
    assert mean_and_error([0.0, 1.0])[1] == pytest.approx(0.5)


async def test_wandb_offline_keeps_readable_rollouts(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB__SERVICE_WAIT", "100")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wandb's own
        async with PolicyServer(TOKENIZER, file_writer) as server:
            env = make_env(
                TerminalTestEnv, server.url, use_wandb=True, data_dir_to_save_evals=str(tmp_path / "evals")
            )
            await env.evaluate_manager()
            env = make_env(
                TerminalTestEnv,
                server.url,
                use_wandb=True,
                data_path_to_save_groups=str(tmp_path / "out.jsonl"),
            )
            await env.process_manager()
    runs = list((tmp_path / "wandb").glob("offline-run-*"))
    assert len(runs) == 2
    tables = [json.loads(path.read_text()) for path in (tmp_path / "wandb").rglob("*.table.json")]
    text = json.dumps(tables)
    assert "[CALL terminal]" in text and "printf 'Hello" in text
    # wandb's own process may still be writing when `finish` has returned.
    names = (b"train/tool_errors_count", b"train/reward", b"eval/reward", b"train/groups_same_score")
    async with asyncio.timeout(60):
        while not all(name in logged_in(tmp_path / "wandb") for name in names):
            await asyncio.sleep(0.1)


def logged_in(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*.wandb"))


async def test_tool_errors_are_counted_and_shown():
    def clumsy(prompt: str) -> str:
        said = "<tool_response>" in prompt
        return "Done." if said else call("read_file", path="no-such-file") + call("no_such_tool")

    async with PolicyServer(TOKENIZER, clumsy) as server:
        env = make_env(TerminalTestEnv, server.url, group_size=2, ensure_scores_are_not_same=False)
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
    assert env.metrics.take()["train/tool_errors_count"] == 4
    assert {error.tool_name for error in env.metrics.take_tool_errors()} == {"read_file", "no_such_tool"}
    assert env.metrics.take()["train/tool_errors_count"] == 0


def test_a_conversation_reads_as_text():
    text = readable(
        [
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "hm",
                "tool_calls": [{"function": {"name": "terminal", "arguments": '{"command": "ls"}'}}],
            },
            {"role": "tool", "content": "x" * 9000},
        ]
    )
    assert (
        "[USER]\nGo." in text
        and "[ASSISTANT THINKING]\nhm" in text
        and '[CALL terminal]\n{"command": "ls"}' in text
    )
    assert len(text) < 5000
