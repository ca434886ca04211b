"""The `web_extract` tool."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.results import cut_middle
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool
from hermes_tools.toolsets.web.fetch import Fetcher
from hermes_tools.toolsets.web.readable import readable

DEFAULT_CHARACTERS, MIN_CHARACTERS, MAX_CHARACTERS = 15_000, 500, 100_000
MAX_URLS = 5


@dataclass(frozen=True, slots=True)
class Extracted:
    """One page.

    Attributes:
        url: The address asked for.
        title: Its title.
        content: Its main text, as Markdown; head and tail when it is long.
        error: Why it could not be read.
        full_content: File in the workspace with all of a long text.
    """

    url: str
    title: str = ""
    content: str = ""
    error: str | None = None
    full_content: str | None = None


@dataclass(frozen=True, slots=True)
class WebExtractResult:
    """Pages.

    Attributes:
        results: One per address, in the order asked for.
    """

    results: list[Extracted]


@tool(toolset="web", deadline=180)
async def web_extract(
    session: ToolSession,
    urls: Annotated[
        list[str],
        Field(min_length=1, max_length=MAX_URLS, description=f"Addresses of up to {MAX_URLS} pages or PDFs."),
    ],
    char_limit: Annotated[
        int,
        Field(
            ge=1,
            description="Most characters of each page; the middle of longer ones is left out.",
        ),
    ] = DEFAULT_CHARACTERS,
) -> WebExtractResult:
    """Read web pages: the main text as Markdown, without menus and advertising. PDFs too."""
    most = max(MIN_CHARACTERS, min(char_limit, MAX_CHARACTERS))
    return WebExtractResult(list(await asyncio.gather(*(_extract(session, url, most) for url in urls))))


async def _extract(session: ToolSession, url: str, limit: int) -> Extracted:
    address = url.strip()
    if "://" not in address:
        address = f"https://{address}"
    try:
        page = await session.state(Fetcher).fetch(address)
        if page.status >= 400:
            raise ToolError(f"The server answered with status {page.status}.")
        found = await readable(page)
    except ToolError as error:
        return Extracted(url, error=str(error))
    note = "\n\n[The page is longer than may be fetched; its end is missing.]" if page.truncated else ""
    text, path = await cut_middle(session, found.text + note, limit)
    return Extracted(url, found.title, text, None, path)
