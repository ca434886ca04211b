"""Fetches pages: public addresses only, redirects checked one by one, sizes and times limited."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.toolsets.web.addresses import RefusedAddress, check_literal, public_resolver, refusal
from hermes_tools.toolsets.web.options import WebOptions
from hermes_tools.toolsets.web.robots import MAX_BYTES as MAX_ROBOTS
from hermes_tools.toolsets.web.robots import Robots

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

ROBOTS_SECONDS = 10.0
REDIRECTS = frozenset((301, 302, 303, 307, 308))
CHUNK = 64 << 10


@dataclass(frozen=True, slots=True)
class Page:
    """Something fetched.

    Attributes:
        url: Where it came from in the end.
        status: HTTP status.
        media_type: Media type, in lower case, without parameters.
        charset: Character set the server named, or None.
        data: The bytes, up to the limit.
        truncated: Whether there were more.
    """

    url: str
    status: int
    media_type: str
    charset: str | None
    data: bytes
    truncated: bool


class Fetcher:
    """One session's way to the web."""

    def __init__(self, session: ToolSession) -> None:
        self._options = session.option(WebOptions)
        self._clients: dict[bool, ClientSession] = {}
        self._robots: dict[str, asyncio.Task[Robots | None]] = {}

    def client(self, *, private: bool) -> "ClientSession":
        """The HTTP client; with `private` it goes anywhere."""
        if private not in self._clients:
            import aiohttp

            connector = aiohttp.TCPConnector(resolver=None if private else public_resolver(), limit=20)
            self._clients[private] = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": self._options.user_agent, "Accept": "text/html,*/*;q=0.8"},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._clients[private]

    async def fetch(self, url: str, limit: int | None = None) -> Page:
        """Fetch a page.

        Args:
            url: Its address, http or https.
            limit: Most bytes; by default the options'.

        Raises:
            ToolError: It says why the page cannot be had.
        """
        seconds = self._options.page_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(url, limit)
        except TimeoutError:
            raise ToolError(f"The page did not come within {seconds:g} seconds.") from None

    async def _follow(self, url: str, limit: int | None) -> Page:
        for _ in range(self._options.max_redirects + 1):
            if self._options.respect_robots and not await self._allowed(url):
                raise ToolError("The site's robots.txt forbids fetching this page.")
            page = await self._get(url, limit)
            if isinstance(page, Page):
                return page
            url = page
        raise ToolError(f"The page redirects more than {self._options.max_redirects} times.")

    async def _get(self, url: str, limit: int | None) -> Page | str:
        """The page, or where it redirects to."""
        private = self._may_be_private(url)
        import aiohttp

        try:
            async with self.client(private=private).get(url, allow_redirects=False) as response:
                location = response.headers.get("Location")
                if response.status in REDIRECTS and location:
                    return urljoin(url, location)
                return await self._read(response, limit)
        except aiohttp.ClientError as error:
            if isinstance(error.__cause__, RefusedAddress) or isinstance(error, RefusedAddress):
                raise refusal(urlsplit(url).hostname or url) from None
            raise ToolError(f"The page could not be fetched: {type(error).__name__}: {error}") from None
        except (ValueError, UnicodeError) as error:
            raise ToolError(f"{url!r} is no valid address: {error}") from None

    async def _read(self, response: "ClientResponse", limit: int | None) -> Page:
        pdf = response.content_type == "application/pdf"
        most = limit or self._options.max_bytes * (4 if pdf else 1)
        data = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK):
            data += chunk
            if len(data) > most:
                break
        truncated = len(data) > most
        charset = response.charset
        media_type = response.content_type.lower() if "Content-Type" in response.headers else ""
        return Page(str(response.url), response.status, media_type, charset, bytes(data[:most]), truncated)

    def _may_be_private(self, url: str) -> bool:
        """Whether this address may be private. Refuses what is no web address, or a private one that may not be."""
        from yarl import URL

        # Read as the client reads it: it takes other digits, such as those in circles, for plain ones.
        try:
            address = URL(url)
            host, port = address.raw_host, address.port
        except ValueError as error:
            raise ToolError(f"{url!r} is no valid address: {error}") from None
        if address.scheme not in ("http", "https") or not host or not port:
            raise ToolError(f"{url!r} is no web address: it must begin with http:// or https:// and a host.")
        if self._options.may_be_private(host, port):
            return True
        check_literal(host)
        return False

    async def _allowed(self, url: str) -> bool:
        self._may_be_private(url)
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._robots:
            self._robots[origin] = asyncio.create_task(self._load_robots(origin))
        robots = await asyncio.shield(self._robots[origin])
        path = parts.path or "/"
        return robots is None or robots.allows(f"{path}?{parts.query}" if parts.query else path)

    async def _load_robots(self, origin: str) -> Robots | None:
        """The site's rules; None where there are none. A server that fails forbids everything (RFC 9309, 2.3.1.4)."""
        agent = self._options.user_agent.partition("/")[0].strip()
        url = f"{origin}/robots.txt"
        try:
            async with asyncio.timeout(ROBOTS_SECONDS):
                for _ in range(self._options.max_redirects + 1):
                    page = await self._get(url, MAX_ROBOTS)
                    if isinstance(page, Page):
                        break
                    url = page
                else:
                    return None
        except (ToolError, TimeoutError):
            # The page itself will fail in the same way, and say why.
            return None
        if page.status >= 500:
            return Robots("User-agent: *\nDisallow: /", agent)
        return Robots(page.data.decode("utf-8", "replace"), agent) if page.status < 300 else None

    async def aclose(self) -> None:
        """Close all connections."""
        tasks: list[Any] = list(self._robots.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.close()
