"""The client side of Atropos' API (`run-api`): registration, status and posts that outlast a restart."""

import asyncio
import gzip
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
from pydantic_core import to_json

from .errors import EnvironmentFailed

_log = logging.getLogger(__name__)
_COMPRESS_FROM = 1024
_NUMBERS_AT_ONCE = 8192
_TIMEOUT = aiohttp.ClientTimeout(total=120, sock_connect=10)
_LONGEST_PAUSE = 5.0
_SAY_EVERY = 30.0


class ApiGone(Exception):
    """The API does not answer as it should.

    Attributes:
        forgot: Whether what it knew is lost: its process is gone, or it says that it knows no such environment.
    """

    def __init__(self, message: str, *, forgot: bool = False) -> None:
        super().__init__(message)
        self.forgot = forgot


class Refused(EnvironmentFailed):
    """The API will not take a request; asking again will not help."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the API says to an environment.

    Attributes:
        step: The trainer's step.
        queue: Groups of this environment's size that wait, of all environments.
        own_queue: Groups of this environment that wait.
        weight: This environment's share of inference, 0 to 1.
    """

    step: int
    queue: int
    own_queue: int
    weight: float


class AtroposApi:
    """Talks to `run-api` over one connection pool.

    JSON and compression run in threads, so that long sequences do not hold the event loop up.

    Args:
        url: The API's root.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._http: aiohttp.ClientSession | None = None

    async def get(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON answer to a GET.

        Raises:
            ApiGone: No answer, or a server error.
        """
        return await self._ask("GET", path, None if body is None else json.dumps(body).encode(), {})

    async def post(self, path: str, body: Any) -> dict[str, Any]:
        """The JSON answer to a POST, large bodies compressed.

        Raises:
            ApiGone: No answer, or a server error.
            Refused: The API will not take this body.
        """
        data, headers = await asyncio.to_thread(_encoded, body)
        return await self._ask("POST", path, data, headers)

    async def status(self, env_id: int) -> Status:
        """What the API says to the environment `env_id`."""
        answer = await self.get("/status-env", {"env_id": env_id})
        return Status(
            step=int(answer["current_step"]),
            queue=int(answer["queue_size"]),
            own_queue=int(answer.get("self_queue_size", 0)),
            weight=float(answer.get("env_weight", 1.0)),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _ask(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=_TIMEOUT)
        sent = {"Content-Type": "application/json", **headers}
        try:
            async with self._http.request(method, self.url + path, data=data, headers=sent) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            refused = isinstance(error, aiohttp.ClientConnectorError)
            raise ApiGone(
                f"{self.url} does not answer ({error or type(error).__name__})", forgot=refused
            ) from error
        if response.status >= 500:
            raise ApiGone(f"{self.url}{path} answered {response.status}", forgot=True)
        if response.status >= 400:
            raise Refused(f"{self.url}{path} answered {response.status}: {text[:500]}")
        try:
            return cast("dict[str, Any]", json.loads(text))
        except ValueError as error:
            raise ApiGone(f"{self.url}{path} does not answer as run-api does: {text[:100]!r}") from error


class Waiting:
    """Says what is being waited for: each thing at once and then every half minute, and when it is over.

    Args:
        patience: Seconds of waiting that are not worth a word.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self._patience = patience
        self._since: float | None = None
        self._said: dict[str, float] = {}

    def say(self, what: str) -> None:
        """Wait for `what`."""
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        if now - self._since < self._patience or now - self._said.get(what, float("-inf")) < _SAY_EVERY:
            return
        _log.warning("waiting: %s", what)
        self._said[what] = now

    def over(self) -> None:
        """What was waited for has come."""
        if self._said:
            _log.warning("going on: no longer waiting (%s)", "; ".join(self._said))
        self._since, self._said = None, {}


async def pause(tries: int) -> None:
    """A pause before asking again that grows to five seconds."""
    await asyncio.sleep(min(_LONGEST_PAUSE, 0.25 * 2**tries))


def _encoded(body: Any) -> tuple[bytes, dict[str, str]]:
    data = b"".join(_pieces(body))
    if len(data) < _COMPRESS_FROM:
        return data, {}
    packed = gzip.compress(data, compresslevel=1)
    return (packed, {"Content-Encoding": "gzip"}) if len(packed) < len(data) else (data, {})


def _pieces(value: Any) -> Iterator[bytes]:
    """JSON in small pieces: encoding a long list at once would hold the interpreter, and so the event loop, up."""
    if isinstance(value, Mapping):
        yield b"{"
        for index, (key, inner) in enumerate(cast("Mapping[str, Any]", value).items()):
            yield (b"," if index else b"") + to_json(key) + b":"
            yield from _pieces(inner)
        yield b"}"
    elif isinstance(value, list) and value:
        yield from _list_pieces(cast("Sequence[Any]", value))
    else:
        yield to_json(value)


def _list_pieces(values: Sequence[Any]) -> Iterator[bytes]:
    yield b"["
    if isinstance(values[0], int | float):
        for start in range(0, len(values), _NUMBERS_AT_ONCE):
            yield (b"," if start else b"") + to_json(values[start : start + _NUMBERS_AT_ONCE])[1:-1]
    else:
        for index, inner in enumerate(values):
            yield b"," if index else b""
            yield from _pieces(inner)
    yield b"]"


def post_path(groups: Sequence[Any]) -> str:
    """Where one group, or several at once, are posted."""
    return "/scored_data" if len(groups) == 1 else "/scored_data_list"
