"""Serving to run-api's own application: whole groups, across restarts, beside faster neighbours."""

import asyncio
import contextlib
import logging

import pytest
from atropos_world import TOKENIZER, ServedApi, Trainer, check_group, make_env
from atroposlib.api import server as atropos_api
from hermes_envs.atropos.errors import EnvironmentFailed
from hermes_envs.config import ConfigError
from policy_server import PolicyServer
from say_env import SayEnv, say_policy

pytestmark = pytest.mark.atropos


@contextlib.asynccontextmanager
async def serving(env):
    task = asyncio.create_task(env.env_manager())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_batches_reach_the_trainer_whole_and_aligned():
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=4)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env):
            batches = await trainer.pull_many(5)
    for batch in batches:
        assert sum(len(group["tokens"]) for group in batch) == 4
        for group in batch:
            check_group(group)
            assert {row["weight_versions"][0] for row in group["overrides"]} == {"7"}
            assert group["generation_params"]["temperature"] == 1.0


async def test_it_ends_after_the_last_step_and_evaluates_on_the_way(tmp_path):
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=2)
        await trainer.register()
        env = make_env(
            SayEnv,
            server.url,
            rollout_server_url=api.url,
            total_steps=6,
            steps_per_eval=2,
            data_dir_to_save_evals=str(tmp_path),
        )
        serving = asyncio.create_task(env.env_manager())
        await trainer.pull_many(3)
        async with asyncio.timeout(60):
            while not list(tmp_path.glob("step-*/metrics.json")):
                assert not serving.done()
                await asyncio.sleep(0.05)
        await trainer.pull_many(3)
        async with asyncio.timeout(60):
            await serving
    assert env.evaluations >= 1


async def test_what_is_missing_is_said_and_a_restarted_api_is_served_again(caplog):
    caplog.set_level(logging.WARNING)

    async def said(text: str) -> None:
        async with asyncio.timeout(60):
            while text not in caplog.text:
                await asyncio.sleep(0.05)

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=4)
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env) as task:
            await said("no trainer has registered")
            await trainer.register()
            await trainer.pull_many(2)
            await api.kill()
            await said("does not answer")
            await api.start()
            await trainer.register()
            batches = await trainer.pull_many(3)
            await said("no longer waiting")
            assert not task.done()
    for batch in batches:
        for group in batch:
            check_group(group)


async def test_a_full_queue_is_no_news(caplog):
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        await Trainer(api, batch_size=4).register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env), asyncio.timeout(60):
            while env.metrics.sent_groups < 6 or env.workers:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.5)
    assert "waiting" not in caplog.text


async def test_another_server_in_place_of_the_api_is_named():
    async with PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(SayEnv, server.url, rollout_server_url=server.url)
        with pytest.raises(EnvironmentFailed, match=f"{server.url}/register-env answered 404"):
            async with asyncio.timeout(60):
                await env.env_manager()


async def test_an_environment_that_fails_in_every_group_ends_with_its_error():
    class Broken(SayEnv):
        def format_prompt(self, item):
            return {}["prompt"]

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        await Trainer(api).register()
        env = make_env(Broken, server.url, rollout_server_url=api.url)
        with pytest.raises(EnvironmentFailed, match="KeyError: 'prompt'"):
            async with asyncio.timeout(60):
                await env.env_manager()


@pytest.mark.parametrize("where", ["get_next_item", "format_prompt"])
async def test_a_cancellation_that_nobody_asked_for_is_an_error_like_another(where):
    class Stray(SayEnv):
        async def get_next_item(self):
            if where == "get_next_item":
                raise asyncio.CancelledError
            return await super().get_next_item()

        def format_prompt(self, item):
            raise asyncio.CancelledError

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        await Trainer(api).register()
        env = make_env(Stray, server.url, rollout_server_url=api.url)
        with pytest.raises(EnvironmentFailed, match="CancelledError"):
            async with asyncio.timeout(60):
                await env.env_manager()


async def test_a_task_that_fails_costs_its_own_group_only():
    class Flawed(SayEnv):
        def format_prompt(self, item):
            if item % 2:
                raise KeyError(item)
            return super().format_prompt(item)

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api)
        await trainer.register()
        env = make_env(Flawed, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env) as task:
            assert len(await trainer.pull_many(5)) == 5
            assert not task.done()


async def test_while_the_infrastructure_fails_one_group_at_a_time_is_tried():
    at_once = []

    def refuse() -> int:
        # As many as there are workers begin together, and two more in place of the first two that are dropped.
        if env.metrics.dropped_groups >= env.max_num_workers + 2:
            at_once.append(len(env.workers))
        return 401

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        server.status = refuse
        trainer = Trainer(api, batch_size=8)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env):
            async with asyncio.timeout(60):
                while env.metrics.dropped_groups < env.max_num_workers + 5:
                    await asyncio.sleep(0.01)
            server.status = lambda: 200
            await trainer.pull_many(2)
    assert set(at_once) == {1}


async def test_a_checkpoint_that_cannot_be_saved_ends_nothing(tmp_path, caplog):
    (tmp_path / "file").touch()
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=4)
        trainer.registration |= {"checkpoint_dir": str(tmp_path / "file"), "save_checkpoint_interval": 1}
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env) as task, asyncio.timeout(60):
            while "was not saved" not in caplog.text:
                await trainer.pull_many(1)
            await trainer.pull_many(3)
            assert not task.done()


async def test_an_api_that_was_restarted_unseen_is_registered_with_anew():
    """Its steps go backwards: our number may be another environment's by now."""
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=4)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, total_steps=1000)
        async with serving(env):
            await trainer.pull_many(2)
            async with asyncio.timeout(60):
                while env.curr_step < 2:
                    await asyncio.sleep(0.05)
            # All in one step of the event loop, so that the environment cannot come first.
            api.forget()
            await atropos_api.register(atropos_api.Registration(**trainer.registration))
            await atropos_api.get_batch()
            other = atropos_api.RegisterEnv(
                max_token_length=1, desired_name="other", weight=1.0, group_size=4
            )
            assert (await atropos_api.register_env_url(other))["env_id"] == 0
            async with asyncio.timeout(60):
                # A trainer needs longer for a step than an environment between two looks: this one waits for it.
                while len(atropos_api.app.state.envs) < 2:
                    await asyncio.sleep(0.05)
                # What was on its way under the old number still comes.
                while {group["env_id"] for group in (await trainer.pull_many(1))[0]} != {1}:
                    pass


async def test_a_slow_environment_progresses_beside_a_fast_one():
    async def slow(prompt: str) -> str:
        await asyncio.sleep(1.0)
        return say(prompt)

    say = say_policy()
    async with (
        ServedApi() as api,
        PolicyServer(TOKENIZER, say_policy()) as fast_server,
        PolicyServer(TOKENIZER, slow) as slow_server,
    ):
        trainer = Trainer(api, batch_size=4)
        await trainer.register()
        settings = {"rollout_server_url": api.url, "total_steps": 10_000, "max_batches_offpolicy": 2}
        quick = make_env(SayEnv, fast_server.url, **settings)
        patient = make_env(SayEnv, slow_server.url, **settings)
        async with serving(quick), serving(patient), asyncio.timeout(60):
            # The trainer takes less than the fast one makes: the queue is full of its groups.
            while min(groups_of(trainer, env) for env in (quick, patient)) < 4:
                await trainer.pull()
                await asyncio.sleep(0.3)


def groups_of(trainer, env):
    return sum(group["env_id"] == env.env_id for group in trainer.groups)


async def test_cancelling_leaves_no_work_behind():
    started = asyncio.Event()

    async def never(prompt: str) -> str:
        started.set()
        await asyncio.sleep(1000)
        return ""

    async with ServedApi() as api, PolicyServer(TOKENIZER, never) as server:
        trainer = Trainer(api)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url)
        async with serving(env):
            await asyncio.wait_for(started.wait(), 60)
        assert not env.workers and not env.running_items
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if "rollout" in repr(task.get_coro())]


async def test_a_group_size_that_cannot_fill_a_batch_is_refused():
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=8)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, group_size=3)
        with pytest.raises(ConfigError, match="divisor"):
            async with asyncio.timeout(60):
                await env.env_manager()


async def test_phase_one_is_refused_unless_it_is_asked_for():
    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        env = make_env(SayEnv, f"{server.url}/v1", server_type="openai", rollout_server_url=api.url)
        with pytest.raises(ConfigError, match="allow_placeholder"):
            await env.env_manager()
        trainer = Trainer(api)
        await trainer.register()
        env = make_env(
            SayEnv,
            f"{server.url}/v1",
            server_type="openai",
            rollout_server_url=api.url,
            allow_placeholder=True,
        )
        async with serving(env):
            (batch,) = await trainer.pull_many(1)
    for group in batch:
        assert all(row["placeholder"] and row["set_advantage_to_zero"] for row in group["overrides"])
        assert all(label == -100 for mask in group["masks"] for label in mask)


async def test_segments_are_rows_with_one_advantage_a_rollout():
    """Re-rendered histories split: every row is sent, in posts of the group's size, padded with rows without effect."""

    async with ServedApi() as api, PolicyServer(TOKENIZER, say_policy()) as server:
        trainer = Trainer(api, batch_size=2)
        await trainer.register()
        env = make_env(SayEnv, server.url, rollout_server_url=api.url, rows="segments", history="template")
        async with serving(env):
            (batch,) = await trainer.pull_many(1)
    (group,) = batch
    advantages = [row[0] for row in group["advantages"]]
    assert all(
        len(row) == len(tokens) for row, tokens in zip(group["advantages"], group["tokens"], strict=True)
    )
    assert sum(advantages) == pytest.approx(0.0, abs=1e-3) and max(advantages) == pytest.approx(1.0, abs=1e-3)
