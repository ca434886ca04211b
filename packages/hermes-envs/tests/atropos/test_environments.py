"""The environments that ship: what they ask, and what they pay for."""

import asyncio
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from atropos_world import TOKENIZER, judged, make_env, writes
from hermes_envs.atropos.environments.harbor import HarborEnv
from hermes_envs.atropos.environments.terminal_test import TRAIN_TASKS, TerminalTestEnv
from hermes_envs.config import ConfigError
from hermes_envs.spec import Reward
from policy_server import PolicyServer, call, file_writer

pytestmark = pytest.mark.atropos


# terminal-test


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("Hello from Hermes Agent", 1.0),
        ("Hello from Hermes Agent\n", 1.0),
        (">> Hello from Hermes Agent", 0.5),
        ("x", 0),
    ],
)
async def test_terminal_test_pays_for_exact_content(text, reward):
    env = make_env(TerminalTestEnv, "http://127.0.0.1:9")
    rollout = await judged(env, TRAIN_TASKS[0], writes("greeting.txt", text))
    assert rollout.reward == reward


async def test_rollouts_do_not_share_files():
    env = make_env(TerminalTestEnv, "http://127.0.0.1:9")
    first, second = await asyncio.gather(
        judged(env, TRAIN_TASKS[0], writes("greeting.txt", TRAIN_TASKS[0].content)),
        judged(env, TRAIN_TASKS[0], writes("other.txt", "x")),
    )
    assert (first.reward, second.reward) == (1.0, 0.0)


@pytest.mark.docker
async def test_terminal_test_in_docker(test_image):
    async with PolicyServer(TOKENIZER, file_writer) as server:
        env = make_env(TerminalTestEnv, server.url, terminal_backend="docker", terminal_image=test_image)
        rollouts = await env.rolling.run_group(TRAIN_TASKS[1], env.rolling.group(size=2))
    assert [rollout.reward for rollout in rollouts] == [1.0, 1.0]


# harbor-env


TASK_TOML = """
version = "1.0"
[metadata]
difficulty = "easy"
local = true
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 60.0
[environment]
docker_image = "{image}"
"""
TEST_SH = """#!/bin/bash
mkdir -p "${TASK_ROOT:-}/logs/verifier"
if grep -qx done "${TASK_ROOT:-}/app/answer.txt"; then echo 1; else echo 0; fi > "${TASK_ROOT:-}/logs/verifier/reward.txt"
"""


def write_task(folder, name, image="debian:bookworm-slim"):
    task = folder / name
    (task / "tests").mkdir(parents=True)
    (task / "environment").mkdir()
    (task / "solution").mkdir()
    (task / "task.toml").write_text(TASK_TOML.format(image=image))
    (task / "instruction.md").write_text("Write done into answer.txt in the current directory.")
    (task / "tests" / "test.sh").write_text(TEST_SH)
    (task / "environment" / "setup.sh").write_text("true\n")
    (task / "environment" / "Dockerfile").write_text(f"FROM {image}\nWORKDIR /app\n")
    (task / "solution" / "solve.sh").write_text("echo done > answer.txt\n")


async def test_harbor_tasks_are_judged_by_their_own_tests(tmp_path):
    for name in ("one", "two", "kept"):
        write_task(tmp_path, name)
    turns = iter(range(100))

    def reply(prompt: str) -> str:
        if "<tool_response>" in prompt:
            return "Done."
        return call("terminal", command="echo done > answer.txt" if next(turns) % 2 else "true")

    async with PolicyServer(TOKENIZER, reply) as server:
        env = make_env(
            HarborEnv, server.url, dataset_name=str(tmp_path), terminal_backend="local", eval_tasks=["kept"]
        )
        await env.setup()
        items = [await env.get_next_item() for _ in range(4)]
        assert (
            sorted(item.name for item in items[:2])
            == ["one", "two"]
            == sorted(item.name for item in items[2:])
        )
        rollouts = await env.rolling.run_group(items[0], env.rolling.group(size=4))
    assert [rollout.failure for rollout in rollouts] == [None] * 4
    assert sorted(rollout.reward for rollout in rollouts) == [0.0, 0.0, 1.0, 1.0]


async def test_harbor_names_what_is_wrong(tmp_path):
    env = make_env(HarborEnv, "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match="dataset_name"):
        await env.setup()
    write_task(tmp_path, "one")
    env = make_env(HarborEnv, "http://127.0.0.1:9", dataset_name=str(tmp_path), task_filter=["oen"])
    with pytest.raises(ConfigError, match="one"):
        await env.setup()


async def harbor_spec(tmp_path, cls=HarborEnv, **settings):
    write_task(tmp_path, "one")
    env = make_env(cls, "http://127.0.0.1:9", dataset_name=str(tmp_path), **settings)
    await env.setup()
    return env.rollout_spec(await env.get_next_item())


async def test_what_is_said_of_sandboxes_holds_for_harbor_tasks_too(tmp_path):
    spec = await harbor_spec(
        tmp_path,
        terminal_network="none",
        terminal_env={"A": "b"},
        terminal_memory_mb=77,
        terminal_lifetime=99,
        terminal_image="another:1",
        terminal_strict=False,
    )
    sandbox = spec.sandbox
    assert (sandbox.network, sandbox.env["A"], sandbox.memory_mb) == ("none", "b", 77)
    assert (sandbox.lifetime, sandbox.image, sandbox.strict) == (99, "another:1", False)


async def test_a_harbor_task_keeps_its_own_sandbox_which_outlives_its_limits(tmp_path):
    spec = await harbor_spec(tmp_path, timeout_multiplier=60)
    assert spec.sandbox.image == "debian:bookworm-slim" and spec.sandbox.strict
    assert spec.limits.deadline == 3600
    assert spec.sandbox.lifetime > spec.limits.deadline + spec.limits.reward_timeout


async def test_a_subclass_of_harbor_env_has_its_hooks_called(tmp_path):
    class Shaped(HarborEnv):
        def format_prompt(self, item):
            return super().format_prompt(item) + " Be brief."

        def sandbox_spec(self, item):
            return replace(super().sandbox_spec(item), env={"MINE": "1"})

        async def prepare(self, item, ctx):
            ctx.terminal("echo $MINE > mine.txt")

        async def compute_reward(self, item, result, ctx):
            verdict = await super().compute_reward(item, result, ctx)
            return Reward(verdict.value / 2, {"mine": ctx.read_file("mine.txt")["content"].strip()})

    write_task(tmp_path, "one")
    env = make_env(Shaped, "http://127.0.0.1:9", dataset_name=str(tmp_path), terminal_backend="local")
    await env.setup()
    task = await env.get_next_item()
    rollout = await judged(env, task, writes("answer.txt", "done\n"))
    assert (rollout.reward, rollout.reward_details) == (0.5, {"mine": "1"}), rollout.failure
    assert rollout.result.messages[0]["content"].endswith("directory. Be brief.")


SAMPLE_SET = Path(__file__).parents[4] / "packages/hermes-benchmarks/src/hermes_benchmarks/datasets/sample"


def solver(task: Path):
    """A policy that plays the task's own script of turns."""
    turns = json.loads((task / "solution" / "turns.json").read_text())

    def reply(prompt: str) -> str:
        turn = turns[min(prompt.count("<|im_start|>assistant") - 1, len(turns) - 1)]
        said = [turn.get("say", "")] + [call(c["name"], **c["arguments"]) for c in turn.get("calls", ())]
        return "\n".join(said)

    return reply


@pytest.mark.docker
@pytest.mark.parametrize(
    "name", ["git-recover", *(pytest.param(n, marks=pytest.mark.slow) for n in ("log-report", "fix-cache"))]
)
@pytest.mark.timeout(300)
async def test_the_sample_set_in_docker_by_way_of_process(name, tmp_path, test_image):
    path = tmp_path / "out.jsonl"
    solve, begun = solver(SAMPLE_SET / name), itertools.count()

    def policy(prompt: str) -> str:
        going = "<tool_response>" in prompt
        return solve(prompt) if going or next(begun) % 2 else "I will not."

    async with PolicyServer(TOKENIZER, policy) as server:
        env = make_env(
            HarborEnv,
            server.url,
            dataset_name=str(SAMPLE_SET),
            task_filter=[name],
            data_path_to_save_groups=str(path),
            total_steps=1,
            group_size=2,
        )
        async with asyncio.timeout(200):
            await env.process_manager()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["reward"] for line in lines) == [0.0, 1.0], [line["metadata"] for line in lines]
    assert {line["metadata"]["item"] for line in lines} == {name}
    assert all(len(line["tokens"]) == len(line["masks"]) for line in lines)
