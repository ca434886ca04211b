"""GRPO end to end on two CPU cores: a policy that learns to call tools right, through Atropos' API.

    python examples/tiny_grpo/train.py --output runs/tiny_grpo

Starts `run-api` and the environment as programs of their own. This program holds the policy: it serves `/generate`,
pulls batches from the API, and updates the weights that the next rollouts are sampled from. Needs
`hermes-envs[tokens,atropos]`, numpy and matplotlib.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

# Matrices this small are multiplied faster by one thread than by several that wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import aiohttp
import numpy as np
from aiohttp import web

sys.path.insert(0, str(Path(__file__).parent))

from doors import DOORS, conversation, sign_conversation, write_tokenizer
from hermes_envs.tokens import Segment, TokenSession
from policy import Policy, Shape, log_softmax

HERE = Path(__file__).parent
BATCH = 64
CLIP = 0.2
RIGHT = 0.3
"""The share of demonstrations that open the right one of the four doors: where the mean reward starts."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("runs/tiny_grpo"))
    parser.add_argument("--steps", type=int, default=150, help="updates at most")
    parser.add_argument(
        "--target", type=float, default=0.9, help="stop at this mean reward over five batches"
    )
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


# What is learnt from: rows of ids with weights on the ids that the policy is to make more, or less, likely.


def padded(rows: list[list[int]]) -> np.ndarray:
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = tokens
    return ids


def update(
    policy: Policy, ids: np.ndarray, weights: np.ndarray, rate: float, old: np.ndarray | None = None
) -> None:
    """One step up `sum(weights * ratio)`, PPO's clipped ratio to the sampling policy; without `old`, up log-likelihood.

    All belong to the ids themselves, shape (B, T); position 0 is never predicted.
    """
    logits, tape = policy.forward(ids)
    logprobs = log_softmax(logits[:, :-1])
    taken = np.take_along_axis(logprobs, ids[:, 1:, None], -1)[..., 0]
    push = weights[:, 1:].copy()
    if old is not None:
        ratio = np.exp(taken - old[:, 1:])
        clipped = ((push > 0) & (ratio > 1 + CLIP)) | ((push < 0) & (ratio < 1 - CLIP))
        push = np.where(clipped, 0.0, push * ratio)
    d_logits = np.zeros_like(logits)
    d_logits[:, :-1] = np.exp(logprobs) * push[..., None]
    rows, places = np.indices(push.shape)
    d_logits[rows, places, ids[:, 1:]] -= push
    count = max(1, int((weights != 0).sum()))
    policy.step(policy.backward((d_logits / count).astype(np.float32), tape), rate)


def demonstration(tokenizer, spoken: list[tuple[str, str]]) -> Segment:
    """A conversation as the ids that the policy will meet: built like a rollout, with the demonstrator sampling."""
    session = TokenSession(tokenizer)
    end = tokenizer.end_tokens["<|im_end|>"]
    for at, (role, content) in enumerate(spoken):
        if role == "assistant":
            session.prompt([{"role": who, "content": said} for who, said in spoken[:at]])
            ids = [*tokenizer.encode(content), end]
            session.record(ids, [0.0] * len(ids))
    (segment,) = session.segments
    return segment


def warm_start(policy: Policy, tokenizer, steps: int = 120) -> None:
    """Teach the form of the task from demonstrations that open the right door hardly more often than another."""
    shown: list[tuple[Segment, float]] = []
    for sign in DOORS:
        shown.append((demonstration(tokenizer, sign_conversation(sign)), 1.0))
        for door in DOORS:
            share = RIGHT if door == sign else (1 - RIGHT) / (len(DOORS) - 1)
            shown.append((demonstration(tokenizer, conversation(sign, door)), share))
    ids = padded([segment.tokens for segment, _ in shown])
    weights = np.zeros(ids.shape, dtype=np.float32)
    for row, (segment, share) in zip(weights, shown, strict=True):
        row[: len(segment.mask)] = np.asarray(segment.mask) * share
    for _ in range(steps):
        update(policy, ids, weights, 2e-3)


def learn(policy: Policy, batch: list[dict], rate: float) -> float:
    """One GRPO update from a batch of the API; returns the batch's mean reward."""
    rows: list[tuple[list[int], list[int], list[float], float]] = []
    for group in batch:
        reward = np.asarray(group["scores"])
        if reward.std() == 0:
            continue  # nothing to learn from
        advantages = (reward - reward.mean()) / (reward.std() + 1e-6)
        for index, tokens in enumerate(group["tokens"]):
            advantage = (
                0.0 if group["overrides"][index].get("set_advantage_to_zero") else float(advantages[index])
            )
            rows.append((tokens, group["masks"][index], group["inference_logprobs"][index], advantage))
    if rows:
        ids = padded([tokens for tokens, *_ in rows])
        weights, old = (np.zeros(ids.shape, dtype=np.float32) for _ in range(2))
        for at, (_, labels, logprobs, advantage) in enumerate(rows):
            own = np.asarray(labels) != -100
            weights[at, : len(labels)] = own * advantage
            old[at, : len(labels)] = np.where(own, logprobs, 0.0)
        update(policy, ids, weights, rate, old)
    return float(np.mean([score for group in batch for score in group["scores"]]))


# The policy's server, and the loop.


def served(policy: Policy, tokenizer, seed: int) -> web.Application:
    stop = set(tokenizer.end_tokens.values())

    async def generate(request: web.Request) -> web.Response:
        body = await request.json()
        prompt = body["prompt"]["prompt_token_ids"]
        # Each rollout has a seed of its own, so that the order in which requests arrive decides nothing.
        rng = np.random.default_rng([seed, body.get("seed") or 0, len(prompt)])
        sampled, logprobs = policy.sample(
            prompt, body["max_tokens"], stop, body.get("temperature") or 1.0, rng
        )
        finish = "stop" if sampled and sampled[-1] in stop else "length"
        entries = [[{str(token): value}] for token, value in zip(sampled, logprobs, strict=True)]
        return web.json_response(
            {"logprobs": [entries], "finish_reasons": [finish], "weight_version": str(policy.version)}
        )

    app = web.Application()
    app.router.add_post("/generate", generate)
    return app


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


async def train(args: argparse.Namespace) -> list[float]:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    args.output.mkdir(parents=True, exist_ok=True)
    folder = args.output / "policy"
    tokenizer = write_tokenizer(folder)
    policy = Policy(Shape(vocabulary=max(448, len(tokenizer))), args.seed)
    print(f"{policy.parameters:,} parameters")
    warm_start(policy, tokenizer)
    api_port, policy_port = free_port(), free_port()
    api = f"http://127.0.0.1:{api_port}"
    runner = web.AppRunner(served(policy, tokenizer, args.seed))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", policy_port).start()
    with (
        (args.output / "run-api.log").open("w") as api_log,
        (args.output / "environment.log").open("w") as env_log,
    ):
        script = Path(sysconfig.get_path("scripts")) / "run-api"
        programs = [
            subprocess.Popen(
                [script, "--host", "127.0.0.1", "--port", str(api_port)], stdout=api_log, stderr=api_log
            ),
            subprocess.Popen(
                [
                    *(sys.executable, HERE / "environment.py", "serve", "--env.rollout_server_url", api),
                    *("--env.tokenizer_name", folder, "--openai.base_url", f"http://127.0.0.1:{policy_port}"),
                    *("--env.total_steps", str(args.steps + 1), "--env.seed", str(args.seed)),
                ],
                stdout=env_log,
                stderr=env_log,
            ),
        ]
        try:
            return await loop(args, policy, api, programs)
        finally:
            for program in reversed(programs):
                program.terminate()
                program.wait(30)
            await runner.cleanup()


async def loop(
    args: argparse.Namespace, policy: Policy, api: str, programs: list[subprocess.Popen]
) -> list[float]:
    rewards: list[float] = []
    began = time.monotonic()
    async with aiohttp.ClientSession() as http:
        await register(http, api, args.steps)
        while len(rewards) < args.steps and np.mean(rewards[-5:] or [0.0]) < args.target:
            if any(program.poll() is not None for program in programs):
                raise SystemExit(f"a program has ended: see {args.output}/*.log")
            async with http.get(f"{api}/batch") as response:
                batch = (await response.json()).get("batch")
            if not batch:
                await asyncio.sleep(0.05)
                continue
            rewards.append(learn(policy, batch, args.rate))
            print(
                f"step {len(rewards):3d}  reward {rewards[-1]:.3f}  {time.monotonic() - began:5.0f} s",
                flush=True,
            )
            (args.output / "rewards.json").write_text(json.dumps(rewards))
    return rewards


async def register(http: aiohttp.ClientSession, api: str, steps: int) -> None:
    body = {
        "wandb_group": "tiny",
        "wandb_project": "tiny",
        "batch_size": BATCH,
        "max_token_len": 256,
        "checkpoint_dir": "",
        "save_checkpoint_interval": 0,
        "starting_step": 0,
        "num_steps": steps,
    }
    async with asyncio.timeout(120):
        while True:
            try:
                async with http.post(f"{api}/register", json=body):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)


def draw(rewards: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(range(1, len(rewards) + 1), rewards, color="#9ec5fe", label="batch")
    smooth = [np.mean(rewards[max(0, at - 4) : at + 1]) for at in range(len(rewards))]
    axes.plot(range(1, len(rewards) + 1), smooth, color="#0b5ed7", label="mean of five")
    axes.set(
        xlabel="update",
        ylabel="mean reward",
        ylim=(0, 1.02),
        title="tiny GRPO: open the door named on the sign",
    )
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    args = options()
    rewards = asyncio.run(train(args))
    draw(rewards, args.output / "rewards.png")
    print(
        f"mean reward {np.mean(rewards[:2]):.3f} -> {np.mean(rewards[-5:]):.3f}; curve: {args.output}/rewards.png"
    )


if __name__ == "__main__":
    main()
