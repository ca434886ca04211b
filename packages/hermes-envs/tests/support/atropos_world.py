"""A real run-api, a trainer that pulls batches from it, and a small environment to serve them."""

import asyncio
import sys
import sysconfig
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from atroposlib.api.server import app
from envs_tools import held_port
from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout, run_rollout
from hermes_envs.tokens import FolderTokenizer
from policy_server import logprob

SCRIPTS = Path(sysconfig.get_path("scripts"))
MADE: list[HermesAgentBaseEnv] = []
"""Environments to close when the test ends."""
TOKENIZER = FolderTokenizer(HermesAgentEnvConfig().tokenizer_name)


class RunApi:
    """`run-api` as a process of its own, which can be killed and started again on the same port."""

    def __init__(self) -> None:
        self._held = held_port()  # also while it is down
        self.port = self._held.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "RunApi":
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.kill()
        self._held.close()

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            str(SCRIPTS / "run-api"),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(60), aiohttp.ClientSession() as http:
            while True:
                try:
                    async with http.get(self.url):
                        return
                except aiohttp.ClientError:
                    await asyncio.sleep(0.1)

    async def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            await self.process.wait()
            self.process = None


class ServedApi:
    """The application behind `run-api`, served by uvicorn on this loop: real HTTP without a process's start."""

    def __init__(self) -> None:
        self._held = held_port()  # also while it is down
        self.port = self._held.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "ServedApi":
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.kill()
        self._held.close()

    def forget(self) -> None:
        """Lose everything, as a process that was started anew."""
        for name in list(app.state._state):  # the API keeps everything in its application's state
            delattr(app.state, name)

    async def start(self) -> None:
        """Serve, with nothing remembered."""
        self.forget()
        # Its five seconds for an idle connection may pass while the machine stands still.
        config = uvicorn.Config(app, port=self.port, log_level="critical", ws="none", timeout_keep_alive=600)
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None
        self._task = asyncio.create_task(self._server._serve(None))
        async with asyncio.timeout(60):
            while not self._server.started:
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """Stop answering; requests in flight are dropped."""
        self._server.should_exit = True
        self._server.force_exit = True
        await self._task


class Trainer:
    """Registers and pulls batches."""

    def __init__(
        self, api: RunApi | ServedApi, *, batch_size: int = 4, max_token_len: int = 4096, steps: int = 1000
    ) -> None:
        self.api = api
        self.batch_size = batch_size
        self.registration = {
            "wandb_group": "test",
            "wandb_project": "test",
            "batch_size": batch_size,
            "max_token_len": max_token_len,
            "checkpoint_dir": "",
            "save_checkpoint_interval": 0,
            "starting_step": 0,
            "num_steps": steps,
        }
        self.batches: list[list[dict[str, Any]]] = []

    async def register(self) -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.api.url}/register", json=self.registration),
        ):
            pass
        await self.pull()

    async def pull(self) -> list[dict[str, Any]] | None:
        async with aiohttp.ClientSession() as http, http.get(f"{self.api.url}/batch") as response:
            batch = (await response.json()).get("batch") or None
        if batch:
            self.batches.append(batch)
        return batch

    async def pull_many(self, count: int, *, seconds: float = 60) -> list[list[dict[str, Any]]]:
        wanted = len(self.batches) + count
        async with asyncio.timeout(seconds):
            while len(self.batches) < wanted:
                if not await self.pull():
                    await asyncio.sleep(0.05)
        return self.batches[-count:]

    @property
    def groups(self) -> list[dict[str, Any]]:
        return [group for batch in self.batches for group in batch]


def make_env(cls: type[HermesAgentBaseEnv], url: str, *, server_type: str = "vllm", **settings: Any) -> Any:
    """An environment with its defaults and some settings."""
    config, _ = cls.config_init()
    config = type(config).model_validate({**config.model_dump(exclude_unset=True), **settings})
    env = cls(config, [ServerConfig(base_url=url, server_type=server_type, model_name="policy", api_key="x")])
    MADE.append(env)
    return env


def check_group(group: dict[str, Any], size: int = 2, *, distinct: bool = True) -> None:
    """A group is whole and aligned, and what is trained on is what was said."""
    assert len(group["tokens"]) == len(group["masks"]) == len(group["scores"]) == size
    assert len(set(group["scores"])) > 1 or not distinct
    assert all(isinstance(overrides, dict) for overrides in group["overrides"])
    assert isinstance(group["group_overrides"], dict)
    for tokens, masks, logprobs, messages in zip(
        group["tokens"], group["masks"], group["inference_logprobs"], group["messages"], strict=True
    ):
        assert len(tokens) == len(masks) == len(logprobs)
        trained = [(at, token) for at, token in enumerate(tokens) if masks[at] != -100]
        assert trained and all(masks[at] == token for at, token in trained)
        assert all(logprobs[at] == pytest.approx(logprob(at, token)) for at, token in trained)
        assert all(value == 1.0 for value, label in zip(logprobs, masks, strict=True) if label == -100)
        said = TOKENIZER.decode([token for _, token in trained])
        assert said == messages[-1]["content"] + "<|im_end|>"


async def judged(env: Any, item: Any, act: Any) -> Rollout:
    """The rollout of an agent that does `act(session)` and says `Done.`"""

    async def agent(messages, session):
        said = await act(session)
        return AgentResult(messages=[*messages, {"role": "assistant", "content": said or "Done."}])

    return await run_rollout(env.rollout_spec(item), agent)


def writes(path: str, text: str):
    async def act(session):
        await session.sandbox.write_bytes(path, text.encode())

    return act


async def run_program(*arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None):
    """Run a console script to its end; returns code, stdout, stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, stdout=-1, stderr=-1, env=env, cwd=cwd
    )
    try:
        async with asyncio.timeout(500):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode(), err.decode()
