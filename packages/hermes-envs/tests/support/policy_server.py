"""Loopback servers that a scripted policy answers: chat completions, and token routes with true ids."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web
from hermes_envs.tokens import Tokenizer

Reply = Callable[[str], str | Awaitable[str]]
"""What the policy writes after a prompt, both as raw text in the policy's own markup."""


def call(name: str, **arguments: Any) -> str:
    """A tool call in Hermes markup."""
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def logprob(position: int, token: int) -> float:
    """The log-probability that the server claims for a token: anything that is easy to check."""
    return -((token * 31 + position) % 997) / 1000 - 0.001


class PolicyServer:
    """Answers `/v1/chat/completions`, `/generate` (Atropos and SGLang) and `/inference/v1/generate` on loopback.

    Args:
        tokenizer: The policy's tokenizer.
        reply: The policy.
        routes: The token routes that exist.
        end: The token that ends a turn.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        reply: Reply,
        *,
        routes: Sequence[str] = ("/generate", "/inference/v1/generate"),
        end: str = "<|im_end|>",
    ) -> None:
        self.tokenizer = tokenizer
        self.reply = reply
        self.end = end
        self.requests: list[dict[str, Any]] = []
        self.prompts: list[list[int]] = []
        self.samples: list[list[int]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.status: Callable[[], int] = lambda: 200
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/health", self._health)
        handlers = {"/generate": self._generate, "/inference/v1/generate": self._inference}
        for route in routes:
            app.router.add_post(route, handlers[route])
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
        self.url = ""

    async def __aenter__(self) -> "PolicyServer":
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({})

    async def _said(self, prompt: str) -> str:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            said = self.reply(prompt)
            return said if isinstance(said, str) else await said
        finally:
            self.in_flight -= 1

    async def _sample(self, ids: list[int], limit: int) -> tuple[list[int], list[float], str]:
        said = await self._said(self.tokenizer.decode(ids))
        sampled = self.tokenizer.encode(said + self.end)
        finish = "stop" if len(sampled) <= limit else "length"
        sampled = sampled[:limit]
        self.prompts.append(ids)
        self.samples.append(sampled)
        return sampled, [logprob(len(ids) + n, token) for n, token in enumerate(sampled)], finish

    async def _generate(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        if (status := self.status()) != 200:
            return web.json_response({"error": "scripted"}, status=status)
        if "input_ids" in body:
            return await self._sglang(body)
        ids = body["prompt"]["prompt_token_ids"]
        sampled, logprobs, finish = await self._sample(ids, body["max_tokens"])
        entries = [[{str(token): value}] for token, value in zip(sampled, logprobs, strict=True)]
        return web.json_response({"logprobs": [entries], "finish_reasons": [finish], "weight_version": "7"})

    async def _sglang(self, body: dict[str, Any]) -> web.Response:
        sampled, logprobs, finish = await self._sample(
            body["input_ids"], body["sampling_params"]["max_new_tokens"]
        )
        entries = [[value, token, None] for token, value in zip(sampled, logprobs, strict=True)]
        meta = {"output_token_logprobs": entries, "finish_reason": {"type": finish}, "weight_version": "7"}
        return web.json_response({"text": "", "meta_info": meta})

    async def _inference(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        if (status := self.status()) != 200:
            return web.json_response({"error": "scripted"}, status=status)
        sampled, logprobs, finish = await self._sample(
            body["token_ids"], body["sampling_params"]["max_tokens"]
        )
        content = [
            {"token": f"token_id:{token}", "logprob": value}
            for token, value in zip(sampled, logprobs, strict=True)
        ]
        choice = {"index": 0, "token_ids": sampled, "logprobs": {"content": content}, "finish_reason": finish}
        return web.json_response({"request_id": "r", "choices": [choice]})

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        if (status := self.status()) != 200:
            return web.json_response({"error": {"message": "scripted"}}, status=status)
        prompt = self.tokenizer.render(body["messages"], body.get("tools"), add_generation_prompt=True)
        said = await self._said(prompt)
        from hermes_parsers import get_parser

        parsed = get_parser("hermes", tools=body.get("tools")).parse(said)
        message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
        if parsed.tool_calls:
            message["tool_calls"] = [tool_call.to_openai() for tool_call in parsed.tool_calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if parsed.tool_calls else "stop",
        }
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(said),
            "total_tokens": len(prompt) + len(said),
        }
        return web.json_response(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [choice],
                "usage": usage,
            }
        )


def file_writer(prompt: str) -> str:
    """A policy that solves the tasks of terminal-test: one command, then an answer."""
    if "<tool_response>" in prompt.rsplit("<|im_start|>user", 1)[-1]:
        return "Done."
    commands = {
        "greeting.txt": "printf 'Hello from Hermes Agent' > greeting.txt",
        "count.txt": "mkdir -p numbers && seq 5 > numbers/count.txt",
        "answer.txt": "echo 579 > answer.txt",
        "result.txt": "echo 42 > result.txt",
        "note.txt": "mkdir -p copy && printf 'keep this' | tee note.txt > copy/note.txt",
    }
    asked = prompt.rsplit("<|im_start|>user", 1)[-1]
    command = next((text for name, text in commands.items() if name in asked), "true")
    return "I write the file.\n" + call("terminal", command=command)


def alternating(*replies: Reply) -> Reply:
    """Policies that take turns, one conversation each, by the number of conversations begun."""
    begun = -1
    lock = asyncio.Lock()

    async def reply(prompt: str) -> str:
        nonlocal begun
        async with lock:
            first = "<tool_response>" not in prompt
            if first:
                begun += 1
            chosen = replies[begun % len(replies)]
        said = chosen(prompt)
        return said if isinstance(said, str) else await said

    return reply
