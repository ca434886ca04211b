"""Clients: how the agent loop asks a model."""

from hermes_envs.clients.concurrency import AdaptiveConcurrency
from hermes_envs.clients.errors import (
    AuthenticationFailed,
    BadRequest,
    BadResponse,
    ContentFiltered,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
)
from hermes_envs.clients.openai_client import OpenAIClient
from hermes_envs.clients.price import Price
from hermes_envs.clients.replay import RecordClient, ReplayClient
from hermes_envs.clients.retry import RetryPolicy
from hermes_envs.clients.scripted import ScriptedClient
from hermes_envs.clients.server import ServerClient, as_client
from hermes_envs.clients.token_client import TokenClient
from hermes_envs.clients.turn import ChatClient, RecordingClient, RolloutClient, Turn, Usage

__all__ = [
    "AdaptiveConcurrency",
    "AuthenticationFailed",
    "BadRequest",
    "BadResponse",
    "ChatClient",
    "ContentFiltered",
    "ContextOverflow",
    "ModelNotFound",
    "OpenAIClient",
    "Price",
    "ProviderError",
    "ProviderTimeout",
    "ProviderUnavailable",
    "RateLimited",
    "RecordClient",
    "RecordingClient",
    "ReplayClient",
    "RetryPolicy",
    "RolloutClient",
    "ScriptedClient",
    "ServerClient",
    "TokenClient",
    "Turn",
    "Usage",
    "as_client",
]
