"""The `web_search` tool."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool
from hermes_tools.toolsets.web.fetch import Fetcher
from hermes_tools.toolsets.web.options import WebOptions
from hermes_tools.toolsets.web.providers import PROVIDERS, Hit, SearchRequest

SECONDS = 30.0
MAX_HITS = 20


@dataclass(frozen=True, slots=True)
class WebHits:
    """Results of a search.

    Attributes:
        web: Pages, the best first.
    """

    web: list[Hit]


@dataclass(frozen=True, slots=True)
class WebSearchResult:
    """What a search found.

    Attributes:
        success: True; a search that fails is an error.
        data: The results.
    """

    success: bool
    data: WebHits


@tool(toolset="web", deadline=60)
async def web_search(
    session: ToolSession,
    query: Annotated[str, Field(min_length=1, description="What to search for.")],
    limit: Annotated[int, Field(ge=1, description=f"Most results; {MAX_HITS} at most.")] = 5,
) -> WebSearchResult:
    """Search the web. Gives titles, addresses and short descriptions; read pages with web_extract."""
    import aiohttp

    options = session.option(WebOptions)
    name = options.chosen()
    search, endpoint = PROVIDERS[name]
    key = options.key(name)
    if name == "searxng":
        endpoint = key or ""
    if key is None and name != "duckduckgo":
        raise ToolError(f"The search provider {name} has no key here.")
    # The provider was chosen by who runs this, so it may be a private address.
    client = session.state(Fetcher).client(private=True)
    request = SearchRequest(
        query, min(limit, MAX_HITS), key or "", options.endpoints.get(name, endpoint), client
    )
    try:
        async with asyncio.timeout(SECONDS):
            return WebSearchResult(True, WebHits(await search(request)))
    except TimeoutError:
        raise ToolError(f"The search provider {name} did not answer within {SECONDS:g} seconds.") from None
    except aiohttp.ClientError as error:
        raise ToolError(
            f"The search provider {name} cannot be reached: {type(error).__name__}: {error}"
        ) from None
