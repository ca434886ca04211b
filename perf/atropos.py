"""What the Atropos adapter costs: per group, against ManagedServer, and on the event loop.

    python perf/atropos.py [--output perf/results/atropos.json]

Three measurements, each a ratio within this one run:

* CPU of a group of 8 rollouts without model or sandbox time, over Atropos' own bare environment doing the same.
* Rollouts per second of 64 groups of 4 at once against a server that answers at once, over Atropos' ManagedServer.
* The event loop's lag while groups of 8 sequences of 32k tokens are posted.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import time
import warnings
from pathlib import Path

import aiohttp
from aiohttp import web
from atroposlib.envs.base import BaseEnv, ScoredDataItem
from atroposlib.envs.server_handling.server_manager import ServerManager
from hermes_envs.atropos import HermesAgentBaseEnv, HermesAgentEnvConfig, ServerConfig
from hermes_envs.atropos.api import AtroposApi
from hermes_envs.atropos.rows import Row, as_group
from hermes_envs.atropos.serving import Serving
from hermes_envs.outcome import Outcome
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout
from hermes_envs.tokens import Segment, Span, load_tokenizer

TOKENIZER = load_tokenizer(HermesAgentEnvConfig().tokenizer_name)
MESSAGES = [{"role": "user", "content": "Say something."}]


@contextlib.asynccontextmanager
async def serving(app: web.Application):
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def sink():
    """An HTTP server that reads what is posted and unpacks nothing: its own work does not show in the loop's lag."""
    answer = b'{"status": "received"}'
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                left = int(asked.split(b"content-length:")[1].split(b"\r\n")[0])
                while left:
                    left -= len(await reader.read(min(left, 1 << 16)))
                writer.write(head + answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def policy_app(reply_tokens: int = 40) -> web.Application:
    """A `/generate` that answers at once."""
    ids = [*TOKENIZER.encode("word " * reply_tokens)[:reply_tokens], TOKENIZER.end_tokens["<|im_end|>"]]
    answer = json.dumps(
        {"logprobs": [[[{str(token): -0.5}] for token in ids]], "finish_reasons": ["stop"]}
    ).encode()

    async def generate(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer, content_type="application/json")

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/generate", generate)
    return app


class Plain(HermesAgentBaseEnv):
    """No tools and no sandbox work."""

    name = "plain"

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(
            enabled_toolsets=[], group_size=4, max_token_length=64, max_sandboxes=256
        )
        return config, [ServerConfig(server_type="vllm")]

    def format_prompt(self, item):
        return MESSAGES[0]["content"]

    async def compute_reward(self, item, result, ctx):
        return 0.5


class Bare(BaseEnv):
    """Atropos' own collecting, with trajectories that are already there."""

    item: ScoredDataItem

    async def setup(self):
        pass

    async def get_next_item(self):
        return {}

    async def evaluate(self, *args, **kwargs):
        pass

    async def collect_trajectory(self, item):
        return dict(self.item), []


def server(url: str) -> ServerConfig:
    return ServerConfig(
        base_url=url,
        server_type="vllm",
        model_name="policy",
        api_key="x",
        tokenizer_name=config().tokenizer_name,
    )


def config(**settings) -> HermesAgentEnvConfig:
    base, _ = Plain.config_init()
    return base.model_copy(update={"ensure_scores_are_not_same": False, **settings})


def finished(tokens: int) -> Rollout:
    """A rollout that has ended, with its tokens."""
    segment = Segment(
        list(range(tokens)),
        [False] * (tokens // 2) + [True] * (tokens - tokens // 2),
        [-0.5] * tokens,
        (Span(0, tokens // 2, tokens, 1.0),),
    )
    result = AgentResult(messages=[*MESSAGES, {"role": "assistant", "content": "x"}], segments=[segment])
    return Rollout(id="r", outcome=Outcome.completed, reward=0.5, result=result)


async def group_overhead(repeats: int = 300) -> dict:
    """CPU from 8 finished rollouts to the trainer's API: here, and in atroposlib with the same data."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"status": "received"})

    rollouts = [finished(1000) for _ in range(8)]

    class Ours(Plain):
        async def collect_trajectories(self, item):
            return (await self.scoring.sendable(rollouts))[0], []

    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/scored_data", take)
    async with serving(app) as url:
        settings = {"group_size": 8, "rollout_server_url": url}
        ours, bare = (cls(config(**settings), [server("http://127.0.0.1:9")]) for cls in (Ours, Bare))
        ours.env_id = bare.env_id = 0
        ours._serving = Serving(ours)
        ours._serving._registered.set()
        row = ours.scoring.rows(rollouts[0])[0]
        bare.item = ScoredDataItem(
            tokens=row.tokens,
            masks=row.masks,
            scores=0.5,
            messages=row.messages,
            overrides={},
            group_overrides={},
        )
        logging.disable(logging.CRITICAL)
        costs = []
        for env in (ours, bare):
            for number in range(repeats + 10):
                if number == 10:
                    clock = time.process_time()
                env.running_items["x"] = {"item": {}, "worker": None, "start_time": 0.0}
                await env.handle_env("x")
            costs.append((time.process_time() - clock) / repeats * 1000)
        await ours.aclose()
    return {"ours_ms": costs[0], "atropos_ms": costs[1], "ratio": costs[0] / costs[1]}


async def throughput(groups: int = 64, size: int = 4) -> dict:
    """Rollouts per second of one-turn conversations: this adapter without sandbox, and ManagedServer."""
    async with serving(policy_app()) as url:
        env = Plain(config(), [server(url)])
        client = env.policy.pick("train")

        async def ours() -> None:
            turns = client.for_rollout()
            await turns.complete(MESSAGES, None, temperature=1.0, max_tokens=64)
            _ = turns.segments

        manager = ServerManager([server(url)])

        async def theirs() -> None:
            async with manager.managed_server(tokenizer=env.tokenizer) as managed:
                await managed.chat_completion(messages=MESSAGES, n=1, max_tokens=64, temperature=1.0)
                managed.get_state()

        rates = {}
        for name, one in (("ours", ours), ("managed_server", theirs)):
            await asyncio.gather(*(one() for _ in range(16)))
            began, clock = time.perf_counter(), time.process_time()
            for _ in range(4):
                await asyncio.gather(*(one() for _ in range(groups * size)))
            count = 4 * groups * size
            rates[f"{name}_per_s"] = count / (time.perf_counter() - began)
            rates[f"{name}_cpu_ms"] = (time.process_time() - clock) / count * 1000
        began = time.perf_counter()
        await asyncio.gather(
            *(env.rolling.run_group({}, env.rolling.group(size=size)) for _ in range(groups))
        )
        rates["whole_rollouts_with_sandbox_per_s"] = groups * size / (time.perf_counter() - began)
        await env.aclose()
    return {**rates, "ratio": rates["ours_per_s"] / rates["managed_server_per_s"]}


async def posting_lag(posts: int = 10) -> dict:
    """The loop's lag while large groups are posted."""

    row = Row(list(range(32768)), list(range(32768)), [-0.123456] * 32768, 0.5, MESSAGES, {})
    group = dict(as_group([row] * 8, generation_params={}, with_messages=True))
    lags: list[float] = []

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - began - 0.005)

    async with sink() as url:
        watcher = asyncio.create_task(watch())
        await asyncio.sleep(2.0)
        watcher.cancel()
        idle = sorted(lags)
        lags.clear()
        api = AtroposApi(url)
        watcher = asyncio.create_task(watch())
        for _ in range(posts):
            await api.post("/scored_data", group)
        watcher.cancel()
        await api.aclose()
        ours = sorted(lags)
        lags.clear()
        bare = Bare(config(), [server("http://127.0.0.1:9")])
        watcher = asyncio.create_task(watch())
        async with aiohttp.ClientSession() as http:
            for _ in range(posts):
                async with bare._post_json_with_compression(http, f"{url}/scored_data", group):
                    pass
                await asyncio.sleep(0.02)
        watcher.cancel()
    theirs = sorted(lags)
    return {
        "p99_ms": ours[int(len(ours) * 0.99)] * 1000,
        "max_ms": ours[-1] * 1000,
        "idle_p99_ms": idle[int(len(idle) * 0.99)] * 1000,
        "atropos_max_ms": theirs[-1] * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("perf/results/atropos.json"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {
        "group overhead (target: ratio <= 1.2)": asyncio.run(group_overhead()),
        "throughput (target: ratio >= 1)": asyncio.run(throughput()),
        "posting 8 x 32k tokens (target: p99 < 50 ms)": asyncio.run(posting_lag()),
    }
    for name, numbers in results.items():
        print(name)
        for key, value in numbers.items():
            print(f"  {key:<36}{value:10.3f}")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
