"""What the agent loop costs: CPU per turn, many rollouts at once, and clients over HTTP.

    python perf/loop.py [--quick] [--json FILE]

CPU figures are this process's own; the HTTP server runs in another. Wall times on a shared machine are noise.
"""

import argparse
import asyncio
import gc
import json
import logging
import multiprocessing
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import hermes_envs
from hermes_envs import HermesAgentLoop, LagMonitor
from hermes_envs.clients import OpenAIClient, ScriptedClient, Turn, Usage
from hermes_parsers import ToolCall
from hermes_tools import HostWorkspace, ToolRegistry, ToolSession, tool

TURNS = 10
ASK = [{"role": "system", "content": "You are helpful. " * 20}, {"role": "user", "content": "Add them up."}]


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reply(turn):
    if turn == TURNS - 1:
        return Turn("The sum is 45.", usage=Usage(1000, 10))
    call = ToolCall(id=f"call_{turn}", name="add", arguments=json.dumps({"a": turn, "b": 1}))
    return Turn("Next.", tool_calls=(call,), finish_reason="tool_calls", usage=Usage(1000, 20))


SCRIPT = [reply(turn) for turn in range(TURNS)]


async def rollout(client, registry, folder):
    async with ToolSession(registry, [add], HostWorkspace(folder)) as session:
        result = await HermesAgentLoop(client, session, temperature=1.0).run(ASK)
    assert result.finished_naturally and result.turns_used == TURNS, result.error
    return result


async def in_process(registry, folder, rollouts):
    """CPU per turn with a client that answers at once."""
    client = ScriptedClient(SCRIPT)
    await rollout(client, registry, folder)
    began = time.process_time()
    for _ in range(rollouts):
        await rollout(client, registry, folder)
    return {"cpu_ms_per_turn": 1000 * (time.process_time() - began) / rollouts / TURNS}


def rss_kb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


async def many(registry, folder, rollouts):
    """Many rollouts at once, each turn waiting half a second to two as for a model."""
    latency = random.Random(0)

    async def policy(messages, tools):
        turn = sum(message["role"] == "assistant" for message in messages)
        await asyncio.sleep(latency.uniform(0.5, 2.0))
        return SCRIPT[turn]

    client = ScriptedClient(policy)
    gc.collect()
    before = rss_kb()
    began, cpu = time.perf_counter(), time.process_time()
    async with LagMonitor(threshold=0.25) as lag:
        tasks = [asyncio.create_task(rollout(client, registry, folder)) for _ in range(rollouts)]
        peak = before
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0.25)
            peak = max(peak, rss_kb())
        results = [task.result() for task in tasks]
        p99, own = lag.percentile(0.99), lag.percentile(0.99, computing=True)
        worst = lag.worst
    messages = sum(len(json.dumps(result.messages)) for result in results) / 1024
    return {
        "rollouts": len(results),
        "cpu_ms_per_turn": 1000 * (time.process_time() - cpu) / rollouts / TURNS,
        "wall_s": time.perf_counter() - began,
        "lag_p99_ms": 1000 * p99,
        "lag_p99_ms_own_cpu": 1000 * own,
        "lag_worst_ms": 1000 * worst,
        "rss_kb_per_rollout": (peak - before) / rollouts,
        "messages_kb_per_rollout": messages / rollouts,
    }


def serve(port):
    """A minimal OpenAI-compatible server, in a process of its own."""
    from aiohttp import web

    async def answer(request):
        body = await request.json()
        turn = SCRIPT[sum(message["role"] == "assistant" for message in body["messages"])]
        message = {"role": "assistant", "content": turn.content}
        if turn.tool_calls:
            message["tool_calls"] = [call.to_openai() for call in turn.tool_calls]
        choice = {"index": 0, "message": message, "finish_reason": turn.finish_reason}
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        return web.json_response({"id": "x", "model": "m", "choices": [choice], "usage": usage})

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", answer)
    web.run_app(app, host="127.0.0.1", port=port, print=None, backlog=8192)


async def over_http(registry, folder, port, concurrent, rounds):
    """CPU per turn of the client's side at a given concurrency."""
    async with OpenAIClient("m", f"http://127.0.0.1:{port}/v1", concurrency=concurrent) as client:
        await rollout(client, registry, folder)
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            await asyncio.gather(*(rollout(client, registry, folder) for _ in range(concurrent)))
        turns = rounds * concurrent * TURNS
        return {
            "concurrent": concurrent,
            "cpu_ms_per_turn": 1000 * (time.process_time() - cpu) / turns,
            "turns_per_s": turns / (time.perf_counter() - began),
        }


def token_turns(session, tokenizer, messages, turns):
    """Play turns of a token session; CPU milliseconds of each."""
    sampled = tokenizer.encode("I will look at the next file, then run the tests again.<|im_end|>")
    costs = []
    for _ in range(turns):
        began = time.process_time()
        session.prompt(messages)
        session.record(sampled, [-0.1] * len(sampled))
        costs.append(1000 * (time.process_time() - began))
        messages.append(
            {"role": "assistant", "content": "I will look at the next file, then run the tests again."}
        )
        messages.append({"role": "user", "content": f"Output {len(messages)}: " + "ok line\n" * 40})
    return costs


def tokens(turns):
    """CPU of a turn in a token session as its history doubles; 500 turns are more than 64k tokens."""
    from hermes_envs.tokens import TokenSession, load_tokenizer

    tokenizer = load_tokenizer(str(Path(hermes_envs.__file__).parent / "atropos" / "tokenizer"))
    session, messages = TokenSession(tokenizer), list(ASK)
    costs = token_turns(session, tokenizer, messages, 2 * turns)
    window = turns // 5
    half, whole = (statistics.median(costs[n - window : n]) for n in (turns, 2 * turns))
    return {
        "turns": 2 * turns,
        "tokens": len(session.segments[0].tokens),
        "segments": len(session.segments),
        "ms_at_half": half,
        "ms_at_end": whole,
        "ratio_of_doubling": whole / half,
    }


async def wait_for(port):
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise TimeoutError("the server did not start")


async def measure(quick):
    registry = ToolRegistry().with_tools(add)
    port = 20000 + os.getpid() % 20000
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures = {"in process": await in_process(registry, folder, 20 if quick else 200)}
            figures["many at once"] = await many(registry, folder, 100 if quick else 2000)
            await wait_for(port)
            for concurrent in (50,) if quick else (50, 500):
                figures[f"over HTTP, {concurrent}"] = await over_http(registry, folder, port, concurrent, 1)
    finally:
        server.terminate()
        server.join()
    figures["token session"] = tokens(50 if quick else 500)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it runs")
    parser.add_argument("--stalls", action="store_true", help="log what held the event loop up")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    if not options.stalls:
        logging.getLogger("hermes_envs.lag").setLevel(logging.ERROR)
    figures = asyncio.run(measure(options.quick))
    for name, values in figures.items():
        print(name)
        for key, value in values.items():
            print(f"    {key:26} {value:10.3f}")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
