"""The agent `hermes`: the agent loop with the configured model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_envs.agents import loop_agent
from hermes_envs.clients import OpenAIClient
from hermes_envs.clients.price import Price

from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.errors import EndpointError, UsageError

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.config import EvaluationConfig, ModelConfig

OPENROUTER = "https://openrouter.ai/api/v1"
OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked: the base URL, and the key where there is one."""

    base_url: str
    api_key: str | None


def endpoint(openai: ModelConfig) -> Endpoint:
    """The endpoint that the configuration and the environment name.

    A key in the configuration, or none, goes with a base URL in the configuration. Without a URL the
    environment's is taken: OPENAI_BASE_URL, else OpenAI with OPENAI_API_KEY, else OpenRouter with OPENROUTER_API_KEY.

    Raises:
        UsageError: Nothing names one.
    """
    given = openai.api_key.get_secret_value() if openai.api_key else None
    key, router_key = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENROUTER_API_KEY")
    url = openai.base_url or os.environ.get("OPENAI_BASE_URL")
    if url:
        return Endpoint(url, given or (router_key if "openrouter.ai" in url and router_key else key))
    if given or key:
        return Endpoint(OPENAI, given or key)
    if router_key:
        return Endpoint(OPENROUTER, router_key)
    raise UsageError(
        "agent hermes needs an endpoint: give --openai.base_url URL (and --openai.api_key KEY), "
        "or set OPENAI_API_KEY or OPENROUTER_API_KEY"
    )


def hermes_agent(config: EvaluationConfig) -> RunAgent:
    """The agent loop with the model of `config.openai`."""
    openai, env = config.openai, config.env
    if not openai.model_name:
        raise UsageError("agent hermes needs a model: give --openai.model_name NAME, or set OPENAI_MODEL")
    where = endpoint(openai)
    price = openai.price
    client = OpenAIClient(
        openai.model_name,
        where.base_url,
        where.api_key,
        parser=openai.parser,
        extra_body=env.extra_body,
        timeout=openai.timeout,
        concurrency=openai.num_max_requests_at_once,
        price=Price(price.prompt, price.completion, price.cached) if price else None,
    )
    agent = loop_agent(client, temperature=env.agent_temperature)

    async def preflight(tasks: Sequence[BenchmarkTask]) -> None:
        await check_endpoint(where)

    return RunAgent(lambda task: agent, openai.model_name, preflight, client.aclose)


async def check_endpoint(where: Endpoint, seconds: float = 20.0) -> None:
    """Ask the endpoint for its models: it costs nothing, and tells a wrong address or key before the first trial.

    Raises:
        EndpointError: Nothing answers, or the key is refused. Any other answer will do: not every server lists models.
    """
    import aiohttp

    headers = {"Authorization": f"Bearer {where.api_key}"} if where.api_key else {}
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=True) as session,
            session.get(where.base_url.rstrip("/") + "/models") as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise EndpointError(
            f"no model endpoint answers at {where.base_url} ({why}); start it, or name another with --openai.base_url"
        ) from None
    if status in (401, 403):
        raise EndpointError(
            f"{where.base_url} refuses the key (HTTP {status}); give --openai.api_key, or set OPENAI_API_KEY"
        )
