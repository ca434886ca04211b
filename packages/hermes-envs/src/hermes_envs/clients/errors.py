"""Errors of asking a model.

ProviderError                  retryable, status
├── RateLimited                429 or quota; retry_after seconds
├── ProviderTimeout            no answer in time
├── ProviderUnavailable        connection failed, 5xx, overloaded
├── AuthenticationFailed       401, 403: check the key
├── ModelNotFound              404: check the model's name and the base URL
├── BadRequest                 other 4xx: the request itself is refused
│   └── ContextOverflow        the conversation does not fit the model's context
├── ContentFiltered            the provider's filter refused the prompt
└── BadResponse                an answer that is not a chat completion
"""

from __future__ import annotations

from hermes_envs.outcome import EnvsError, StopReason


class ProviderError(EnvsError):
    """The model could not be asked.

    Attributes:
        status: The HTTP status, None without one.
        retryable: Whether asking again may help.
        retry_after: Seconds that the server asked to wait, None where it did not say.
        stop_reason: How it ends an agent.
    """

    boundary = "provider"
    stop_reason = StopReason.provider_error
    default_retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after = retry_after


class RateLimited(ProviderError):
    """Too many requests, or a quota is spent."""

    default_retryable = True


class ProviderTimeout(ProviderError):
    """No answer in time."""

    default_retryable = True


class ProviderUnavailable(ProviderError):
    """The server cannot be reached, or fails."""

    default_retryable = True


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong, or not allowed to use this model."""


class ModelNotFound(ProviderError):
    """The server knows no such model, or the base URL is not an OpenAI-compatible one."""


class BadRequest(ProviderError):
    """The server refuses the request as it is."""


class ContextOverflow(BadRequest):
    """The conversation does not fit the model's context."""

    stop_reason = StopReason.context_full


class ContentFiltered(ProviderError):
    """The provider's content filter refused the prompt."""

    stop_reason = StopReason.refused


class BadResponse(ProviderError):
    """The server's answer is not a chat completion."""

    default_retryable = True
