"""A worker that is cancelled leaves nothing: no sandbox, no process, on any backend."""

import asyncio
import secrets
from pathlib import Path

import pytest
from atropos_world import TOKENIZER, ServedApi, Trainer, make_env
from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig
from hermes_sandbox.errors import SandboxGone
from hermes_sandbox.registry import attach_sandbox
from policy_server import PolicyServer, call

pytestmark = pytest.mark.atropos


class ShellEnv(HermesAgentBaseEnv):
    """One task, with a terminal."""

    name = "shell"

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(enabled_toolsets=["terminal"], group_size=2, max_token_length=200)
        return config, [ServerConfig()]

    async def setup(self) -> None:
        self.left = 1
        self.sandboxes: list[str] = []

    async def get_next_item(self) -> str | None:
        self.left -= 1
        return "Wait." if self.left >= 0 else None

    def format_prompt(self, item: str) -> str:
        return item

    async def prepare(self, item, ctx) -> None:
        self.sandboxes.append(ctx.sandbox.id)

    async def compute_reward(self, item, result, ctx) -> float:
        return 1.0


def running(mark: str) -> int:
    """How many processes of this machine, those in containers included, have the mark in their command line."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        count += words[:2] == [b"sleep", mark.encode()]
    return count


@pytest.mark.parametrize("backend", ["local", pytest.param("docker", marks=pytest.mark.docker)])
async def test_a_stale_worker_is_cancelled_and_leaves_nothing(backend, test_image):
    mark = f"9{secrets.randbelow(10**9):09d}"
    command = f"setsid sleep {mark} & nohup sleep {mark} >/dev/null & sleep {mark}"
    reply = call("terminal", command=command, timeout=100)
    async with ServedApi() as api, PolicyServer(TOKENIZER, lambda prompt: reply) as server:
        await Trainer(api).register()
        image = {"terminal_image": test_image} if backend == "docker" else {}
        env = make_env(
            ShellEnv, server.url, rollout_server_url=api.url, terminal_backend=backend, seed=1, **image
        )
        serving = asyncio.create_task(env.env_manager())
        async with asyncio.timeout(90):
            while running(mark) < 6:  # two rollouts, three processes each
                assert not serving.done()
                await asyncio.sleep(0.1)
        env.config.worker_timeout = 0.001
        async with asyncio.timeout(60):
            await serving  # there is no other task, so that this is the end
        assert len(env.sandboxes) == 2
        for sandbox in env.sandboxes:
            with pytest.raises(SandboxGone):
                await attach_sandbox(backend, sandbox)
        assert running(mark) == 0
        assert env.metrics.sent_groups == 0 and not env.workers
