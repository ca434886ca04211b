"""Search providers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from hermes_tools.errors import ToolError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MAX_DESCRIPTION = 500
MAX_ANSWER = 4 << 20


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Attributes:
        title: Title of the page.
        url: Its address.
        description: A piece of its text.
        position: Its rank, from 1.
    """

    title: str
    url: str
    description: str
    position: int


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a provider is asked.

    Attributes:
        query: The words.
        limit: Most results.
        key: The provider's key, or nothing.
        endpoint: The provider's address.
        client: The HTTP client.
    """

    query: str
    limit: int
    key: str
    endpoint: str
    client: "ClientSession"


Provider = Callable[[SearchRequest], Awaitable[list[Hit]]]


async def _brave(request: SearchRequest) -> list[Hit]:
    """https://api-dashboard.search.brave.com/app/documentation/web-search."""
    headers = {"X-Subscription-Token": request.key, "Accept": "application/json"}
    params = {"q": request.query, "count": str(min(20, request.limit))}
    async with request.client.get(request.endpoint, params=params, headers=headers) as response:
        answer = await _json("Brave", response)
    return _hits(_items(_part(answer, "web"), "results"), request.limit, "description")


async def _tavily(request: SearchRequest) -> list[Hit]:
    """https://docs.tavily.com/documentation/api-reference/endpoint/search."""
    headers = {"Authorization": f"Bearer {request.key}"}
    body = {"query": request.query, "max_results": min(20, request.limit)}
    async with request.client.post(request.endpoint, json=body, headers=headers) as response:
        answer = await _json("Tavily", response)
    return _hits(_items(answer, "results"), request.limit, "content")


async def _exa(request: SearchRequest) -> list[Hit]:
    """https://docs.exa.ai/reference/search."""
    body = {
        "query": request.query,
        "numResults": request.limit,
        "contents": {"text": {"maxCharacters": MAX_DESCRIPTION}},
    }
    async with request.client.post(
        request.endpoint, json=body, headers={"x-api-key": request.key}
    ) as response:
        answer = await _json("Exa", response)
    return _hits(_items(answer, "results"), request.limit, "text")


async def _searxng(request: SearchRequest) -> list[Hit]:
    """https://docs.searxng.org/dev/search_api.html; the instance must allow the JSON format."""
    params = {"q": request.query, "format": "json"}
    async with request.client.get(f"{request.endpoint.rstrip('/')}/search", params=params) as response:
        answer = await _json("SearXNG", response)
    return _hits(_items(answer, "results"), request.limit, "content")


async def _duckduckgo(request: SearchRequest) -> list[Hit]:
    """DuckDuckGo's page for browsers without scripts; it asks for no key."""
    async with request.client.post(request.endpoint, data={"q": request.query}) as response:
        await _check("DuckDuckGo", response)
        text = (await response.content.read(MAX_ANSWER)).decode("utf-8", "replace")
    page = _DuckDuckGoPage()
    page.feed(text)
    if not page.items and ("anomaly" in text or response.status == 202):
        raise ToolError(
            "DuckDuckGo refuses to answer for a while. Search again later, or configure a provider with a key."
        )
    return _hits(page.items, request.limit, "description")


PROVIDERS: Mapping[str, tuple[Provider, str]] = {
    "brave": (_brave, "https://api.search.brave.com/res/v1/web/search"),
    "tavily": (_tavily, "https://api.tavily.com/search"),
    "exa": (_exa, "https://api.exa.ai/search"),
    "searxng": (_searxng, ""),
    "duckduckgo": (_duckduckgo, "https://html.duckduckgo.com/html/"),
}


async def _check(name: str, response: "ClientResponse") -> None:
    if response.status < 400:
        return
    text = (await response.content.read(2_000)).decode("utf-8", "replace")[:300]
    reason = {401: "the key is refused", 403: "access is refused", 429: "too many searches; try again later"}
    raise ToolError(f"{name} answered with status {response.status}: {reason.get(response.status, text)}")


async def _json(name: str, response: "ClientResponse") -> Mapping[str, Any]:
    await _check(name, response)
    try:
        answer = await response.json(content_type=None)
    except ValueError as error:
        raise ToolError(f"{name} did not answer with JSON: {error}") from None
    if not isinstance(answer, dict):
        raise ToolError(f"{name} gave an answer of an unknown form.")
    return cast("Mapping[str, Any]", answer)


def _part(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = answer.get(name)
    return cast("Mapping[str, Any]", part) if isinstance(part, dict) else {}


def _items(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    items = answer.get(name)
    found = cast("list[Any]", items) if isinstance(items, list) else []
    return [cast("Mapping[str, Any]", item) for item in found if isinstance(item, dict)]


def _hits(items: Sequence[Mapping[str, Any]], limit: int, description: str) -> list[Hit]:
    usable = [item for item in items if item.get("url")]
    return [
        Hit(
            _plain(item.get("title")),
            str(item["url"]),
            _plain(item.get(description))[:MAX_DESCRIPTION],
            position,
        )
        for position, item in enumerate(usable[:limit], 1)
    ]


class _Text(HTMLParser):
    """Gathers text without tags."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def _plain(value: object) -> str:
    """Text without the tags some providers mark words with."""
    parser = _Text()
    parser.feed(str(value or ""))
    parser.close()
    return " ".join("".join(parser.pieces).split())


class _DuckDuckGoPage(HTMLParser):
    """Reads the results of DuckDuckGo's plain page."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[dict[str, Any]] = []
        self._field: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        classes = (values.get("class") or "").split()
        if tag == "a" and "result__a" in classes:
            url = _target(values.get("href") or "")
            self._field = "title" if url else None
            if url:
                self.items.append({"url": url, "title": "", "description": ""})
        elif "result__snippet" in classes and self.items:
            self._field = "description"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("a", "div", "td"):
            self._field = None

    def handle_data(self, data: str) -> None:
        if self._field:
            self.items[-1][self._field] += data


def _target(href: str) -> str:
    """Where a result leads: results link through a redirect that names the target; advertisements have none."""
    parts = urlsplit(href)
    if parts.path.startswith("/l/"):
        return parse_qs(parts.query).get("uddg", [""])[0]
    return href if parts.scheme in ("http", "https") and not parts.path.startswith("/y.js") else ""
