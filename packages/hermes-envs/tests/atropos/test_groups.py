"""Groups: one draw each, several servers, and what becomes of failures."""

import asyncio
import contextlib
import logging

import hermes_envs.atropos.serving
import pytest
from atropos_world import TOKENIZER, ServedApi, Trainer, check_group, make_env
from hermes_envs.atropos import HermesAgentEnvConfig, ServerConfig
from hermes_envs.config import ConfigError
from policy_server import PolicyServer
from say_env import SayEnv, say_policy

pytestmark = pytest.mark.atropos


async def test_members_share_a_draw_and_simultaneous_groups_do_not():
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(
            SayEnv, server.url, enabled_toolsets=None, distribution="development", seed=3, group_size=3
        )
        groups = await asyncio.gather(*(env.rolling.run_group(n, env.rolling.group()) for n in range(8)))
    draws = [{rollout.group.toolsets for rollout in group} for group in groups]
    assert all(len(draw) == 1 for draw in draws)
    assert len(set.union(*draws)) > 1
    assert len({rollout.seed for group in groups for rollout in group}) == 24
    assert all(len({rollout.tools for rollout in group}) == 1 for group in groups)


async def test_disabled_toolsets_are_left_out_of_every_draw():
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(
            SayEnv,
            server.url,
            enabled_toolsets=None,
            distribution="terminal_only",
            disabled_toolsets=["file", "process"],
        )
        rollouts = await env.rolling.run_group(1, env.rolling.group())
    assert [rollout.tools for rollout in rollouts] == [("terminal",)] * 2


async def test_an_agent_has_a_little_less_time_than_its_sandbox_lives():
    limits = []

    class Timed(SayEnv):
        async def prepare(self, item, ctx):
            limits.append(ctx.session.spec.limits.deadline)

    async with PolicyServer(TOKENIZER, say_policy()) as server:
        for settings in (
            {},
            {"terminal_lifetime": 100_000},
            {"rollout_timeout": 50},
            {"rollout_timeout": 5000},
        ):
            env = make_env(Timed, server.url, group_size=1, reward_timeout=1000, **settings)
            await env.rolling.run_group(1, env.rolling.group())
    assert limits == [3240, 99_000, 50, 3240]


async def test_each_member_has_a_spec_of_its_own():
    made = []

    class Counting(SayEnv):
        def rollout_spec(self, item):
            made.append(super().rollout_spec(item))
            return made[-1]

    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(Counting, server.url, group_size=3)
        await env.rolling.run_group(1, env.rolling.group())
    assert len(made) == 3


async def test_rollouts_are_spread_over_several_servers_and_stay_with_theirs():
    all_there = asyncio.Barrier(20)

    async def together(prompt: str) -> str:
        await all_there.wait()  # how many each has been given then does not depend on which is the faster
        return "x"

    async with PolicyServer(TOKENIZER, together) as one, PolicyServer(TOKENIZER, together) as two:
        config, _ = SayEnv.config_init()
        servers = [ServerConfig(base_url=s.url, server_type="vllm", model_name="policy") for s in (one, two)]
        env = SayEnv(config, servers)
        await asyncio.gather(*(env.rolling.run_group(n, env.rolling.group()) for n in range(10)))
        await env.aclose()
        assert len(one.requests) == len(two.requests) == 10


def test_servers_of_different_kinds_are_refused():
    servers = [ServerConfig(base_url="http://a", server_type=kind) for kind in ("vllm", "sglang")]
    with pytest.raises(ConfigError, match="one server_type"):
        SayEnv(HermesAgentEnvConfig(enabled_toolsets=[]), servers)


async def test_a_passing_failure_is_run_again_and_a_lasting_one_drops_the_group(caplog):
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(SayEnv, server.url, max_rollout_attempts=2)
        group, _ = await env.collect_trajectories(1)
        assert group is not None and len(group["scores"]) == 2
        server.status = lambda: 401
        group, _ = await env.collect_trajectories(2)
        assert group is None and env.metrics.dropped_groups == 1 and "401" in caplog.text
        assert env.metrics.outcomes["infra_failed"] == 2


async def test_groups_with_equal_scores_are_counted_and_not_sent():
    async with PolicyServer(TOKENIZER, lambda prompt: "I will not.") as server:
        env = make_env(SayEnv, server.url)
        group, _ = await env.collect_trajectories(1)
        assert group is None and env.metrics.same_score_groups == 1
        env = make_env(SayEnv, server.url, ensure_scores_are_not_same=False)
        group, _ = await env.collect_trajectories(1)
        assert group["scores"] == [0.0, 0.0]


async def test_collect_trajectory_gives_one_item():
    async with PolicyServer(TOKENIZER, say_policy(1000)) as server:
        env = make_env(SayEnv, server.url)
        item, backlog = await env.collect_trajectory(5)
    assert item["scores"] == 1.0 and backlog == [] and len(item["inference_logprobs"]) == len(item["tokens"])


class Doubling(SayEnv):
    """Changes each item, as subclasses of Atropos' environments do."""

    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        if scored is not None:
            scored["scores"] *= 2
        return scored, [*backlog, item + 100]


async def test_an_overridden_collect_trajectory_makes_the_groups():
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(Doubling, server.url, enabled_toolsets=None, distribution="development", seed=3)
        with env.rolling.watched() as rollouts:
            group, backlog = await env.collect_trajectories(1)
        assert sorted(group["scores"]) == [0.0, 2.0] and backlog == [101, 101]
        check_group(group)
        assert {rollout.group for rollout in rollouts} == {rollouts[0].group}
        assert len({rollout.seed for rollout in rollouts}) == len({rollout.id for rollout in rollouts}) == 2
        assert env.metrics.outcomes["completed"] == 2
        server.status = lambda: 401
        assert (await env.collect_trajectories(2))[0] is None
    assert (env.metrics.dropped_groups, env.metrics.outcomes["infra_failed"]) == (1, 2)


async def test_a_trainer_that_stops_pulling_is_waited_for(caplog, monkeypatch):
    monkeypatch.setattr(hermes_envs.atropos.serving, "_STEP_PATIENCE", 0.5)
    caplog.set_level(logging.WARNING)
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=2)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, max_batches_offpolicy=1)
        task = asyncio.create_task(env.env_manager())
        async with asyncio.timeout(60):
            while "the trainer takes none of its groups" not in caplog.text:
                await asyncio.sleep(0.1)
        begun = env.iter
        await asyncio.sleep(1.0)
        assert env.iter == begun, "a full queue starts no group"
        await trainer.pull_many(3)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("server_type", ["vllm", "openai"])
def test_a_parser_that_no_model_name_tells_is_an_error_where_one_is_needed(server_type):
    config = HermesAgentEnvConfig(enabled_toolsets=[], tool_call_parser="auto")
    servers = [ServerConfig(base_url="http://a", server_type=server_type, model_name="our-own-7b")]
    if server_type == "openai":  # it reads calls itself
        SayEnv(config, servers)
        return
    with pytest.raises(ConfigError, match=r"our-own-7b.*hermes"):
        SayEnv(config, servers)


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({}, {}),
        ({"thinking_mode": True}, {"reasoning": {"enabled": True}}),
        ({"reasoning_effort": "low"}, {"reasoning": {"enabled": True, "effort": "low"}}),
        ({"max_reasoning_tokens": 2048}, {"reasoning": {"enabled": True, "max_tokens": 2048}}),
    ],
)
async def test_reasoning_is_asked_for_as_atroposlib_does(settings, fields):
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(SayEnv, f"{server.url}/v1", server_type="openai", extra_body={"x": 1}, **settings)
        await env.rolling.run_group(1, env.rolling.group(size=1))
    (asked,) = server.requests
    assert {name: asked[name] for name in ("reasoning", "x") if name in asked} == {**fields, "x": 1}


async def test_openais_own_models_are_asked_in_their_words():
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        address = f"{server.url}/v1#api.openai.com"  # what is not sent, to be taken for OpenAI
        env = make_env(SayEnv, address, server_type="openai", reasoning_effort="low", agent_temperature=0.5)
        (rollout,) = await env.rolling.run_group(1, env.rolling.group(size=1))
    assert rollout.failure is None
    (asked,) = server.requests
    assert (asked["reasoning_effort"], asked["temperature"], "reasoning" in asked) == ("low", 1.0, False)


def test_reasoning_that_a_server_cannot_be_asked_for_is_an_error():
    with pytest.raises(ConfigError, match="thinking_mode"):
        make_env(SayEnv, "http://127.0.0.1:9", reasoning_effort="high")


@pytest.mark.parametrize(
    ("system", "expected"), [(None, "Think first."), ("Be brief.", "Think first.\n\nBe brief.")]
)
async def test_a_thinking_prompt_comes_before_the_system_message(system, expected):
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(
            SayEnv, server.url, custom_thinking_prompt="Think first.", system_prompt=system, group_size=1
        )
        (rollout,) = await env.rolling.run_group(1, env.rolling.group())
    assert rollout.result.messages[:2] == [
        {"role": "system", "content": expected},
        {"role": "user", "content": "Say 1."},
    ]


def test_the_tool_pool_can_be_resized():
    env = make_env(SayEnv, "http://127.0.0.1:9", tool_pool_size=5)
    assert env.rolling.tool_pool.size == 5
    env.resize_tool_pool(2)
    assert env.rolling.tool_pool.size == 2
