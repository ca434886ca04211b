"""What an exception of an HTTP client means: one place that knows how providers say things."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

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

# OpenAI, vLLM, SGLang, llama.cpp and llama-cpp-python, TGI, Ollama, TensorRT-LLM, Anthropic, Gemini, Mistral, xAI,
# Bedrock, Fireworks, OpenRouter, DashScope, Zhipu, MiniMax, LM Studio, LiteLLM, DeepInfra, Moonshot and Cohere, in this
# order of appearance. Cohere's colon tells its message from "too many tokens", by which others mean a rate limit.
_OVERFLOW = re.compile(
    r"context_length_exceeded|maximum context length|exceeds? (the )?context window|maximum model length"
    r"|context length (is|of) only|longer than the model's context length|exceed_context_size"
    r"|exceeds? the available context size|tokens? \+ `?max_new_tokens`? must be|must have less than \d+ tokens"
    r"|exceeds? maximum context|max_seq_len|prompt is too long"
    r"|exceed context limit|input token count .{0,40}exceeds|too large for model with|maximum prompt length"
    r"|input is too long|range of input length|prompt exceeds max length|context window exceeds"
    r"|reduce the length of the messages|max_tokens must be at least 1|greater than the context length"
    r"|ContextWindowExceeded|exceeds? maximum input length|exceeded model token limit|too many tokens:",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content_filter|content management policy|content_policy_violation|safety system", re.IGNORECASE
)
_QUOTA = re.compile(
    r"insufficient_quota|insufficient credits|exceeded your current quota|billing", re.IGNORECASE
)
_MESSAGE_LIMIT = 600


def provider_error(error: BaseException) -> ProviderError:
    """Class an exception of an OpenAI SDK, httpx, aiohttp or tenacity wrapper around them."""
    error = _unwrapped(error)
    if isinstance(error, ProviderError):
        return error
    status = _status(error)
    if status is not None:
        return from_status(status, _text(error), retry_after(getattr(error, "response", None)))
    chain = list(_chain(error))
    names = {cls.__name__ for one in chain for cls in type(one).__mro__}
    text = _text(error)
    timed_out = any(isinstance(one, TimeoutError) for one in chain)
    # The SDK's aiohttp transport reports a refused connection as a timeout; its cause tells the truth.
    if "ClientConnectionError" in names and not timed_out:
        return ProviderUnavailable(f"cannot reach the model's server: {chain[-1]}")
    if timed_out or names & {"APITimeoutError", "TimeoutException"}:
        return ProviderTimeout(text or "the model did not answer in time")
    if isinstance(error, OSError) or names & {"APIConnectionError", "ClientError", "TransportError"}:
        return ProviderUnavailable(f"cannot reach the model's server: {chain[-1]}")
    if isinstance(error, ValueError) or "APIResponseValidationError" in names:
        return BadResponse(f"the server's answer cannot be read: {text}")
    return ProviderError(f"{type(error).__name__}: {text}")


def from_status(status: int, text: str, wait: float | None = None) -> ProviderError:
    """The error that an HTTP status and the body's text stand for.

    Args:
        status: HTTP status.
        text: The error's text, with its code if it has one.
        wait: Seconds that the server asked to wait.
    """
    message = f"HTTP {status}: {text[:_MESSAGE_LIMIT]}"
    if status == 429 or status == 402:
        spent = status == 402 or bool(_QUOTA.search(text))
        return RateLimited(message, status=status, retryable=not spent, retry_after=wait)
    if status in (400, 413, 422, 500) and _OVERFLOW.search(text):
        return ContextOverflow(message, status=status)
    if status in (400, 403, 451) and _FILTER.search(text):
        return ContentFiltered(message, status=status)
    if status in (401, 403):
        return AuthenticationFailed(f"{message}. Check the API key and what it may use.", status=status)
    if status in (404, 405):
        return ModelNotFound(f"{message}. Check the base URL and the model's name.", status=status)
    if status in (408, 504):
        return ProviderTimeout(message, status=status, retry_after=wait)
    if status in (409, 425) or (status >= 500 and status != 501):
        return ProviderUnavailable(message, status=status, retry_after=wait)
    return BadRequest(message, status=status)


def from_error_body(error: Any) -> ProviderError:
    """The error that a 200 answer carries in its body, as gateways send when the upstream fails."""
    fields = cast("Mapping[str, Any]", error) if isinstance(error, Mapping) else {"message": str(error)}
    code = fields.get("code")
    text = _body_text(fields)
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return from_status(code, text)
    return (
        from_status(400, text)
        if _OVERFLOW.search(text)
        else BadResponse(f"the server answered an error: {text}")
    )


def retry_after(response: Any) -> float | None:
    """Seconds that a response's headers ask to wait (RFC 9110 Retry-After, and OpenAI's retry-after-ms)."""
    headers = getattr(response, "headers", None)
    if headers is None:
        return None
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if value is None else max(0.0, float(value))
    except ValueError:
        when = email.utils.parsedate_tz(str(value))
        return None if when is None else max(0.0, email.utils.mktime_tz(when) - time.time())


def _unwrapped(error: BaseException) -> BaseException:
    """The error inside tenacity's RetryError, which atroposlib nests."""
    for _ in range(8):
        attempt = getattr(error, "last_attempt", None)
        inner = attempt.exception() if attempt is not None else None
        if inner is None:
            break
        error = inner
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, the root last."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__


def _status(error: BaseException) -> int | None:
    for name in ("status_code", "status"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return None


def _text(error: BaseException) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        return _body_text(cast("Mapping[str, Any]", body))
    return str(getattr(error, "message", None) or error)


def _body_text(body: Mapping[str, Any]) -> str:
    inner = body.get("error", body)
    if not isinstance(inner, Mapping):
        return str(inner)
    fields = cast("Mapping[str, Any]", inner)
    text = str(fields.get("message") or fields.get("detail") or dict(fields))
    labels = [str(fields[key]) for key in ("code", "type") if isinstance(fields.get(key), str)]
    metadata = fields.get("metadata")
    if isinstance(metadata, Mapping) and (raw := cast("Mapping[str, Any]", metadata).get("raw")):
        text = f"{text}: {raw}"
    return f"{text} ({', '.join(labels)})" if labels else text
