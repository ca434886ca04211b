"""The way from a browser context to the web: a proxy that connects to public addresses only.

A browser resolves names and follows redirects by itself, so checking what it is told to open is not enough. Behind this
proxy the check is made on the address that is connected to, for every connection of a page.
"""

import asyncio
import contextlib
import socket
from urllib.parse import urlsplit

from hermes_tools.toolsets.web.addresses import is_public
from hermes_tools.toolsets.web.options import WebOptions

PROXY_HEADER = "x-hermes-proxy"
MAX_HEAD = 64 << 10
CONNECT_SECONDS = 20.0
CHUNK = 64 << 10


class _Refused(Exception):
    """The target is not public."""


class PublicProxy:
    """An HTTP proxy on this machine's loopback.

    Attributes:
        problems: Why hosts were not connected to, by host.
    """

    def __init__(self, options: WebOptions) -> None:
        self._options = options
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.problems: dict[str, str] = {}

    async def start(self) -> str:
        """Start it; its address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        """Stop it, and all connections through it."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # The page sees a closed connection; there is nobody else to tell.
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, _, headers = head.partition("\r\n")
        method, target, version = line.split(" ", 2)
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname or "", parts.port or 80
        upstream = await self._upstream(host, port)
        if isinstance(upstream, str):
            self.problems[host] = upstream
            await _answer(writer, upstream)
            return
        self.problems.pop(host, None)
        upstream_reader, upstream_writer = upstream
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                upstream_writer.write(_forwarded(method, parts.path, parts.query, version, headers))
            await _pipe_both(reader, writer, upstream_reader, upstream_writer)
        finally:
            upstream_writer.close()

    async def _upstream(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | str:
        """A connection, or why there is none."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._connect(host, port)
        except _Refused:
            return f"{host} is a private address, which may not be visited."
        except (OSError, TimeoutError) as error:
            return f"{host} cannot be reached: {error or 'no answer'}"

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(item[4][0]) for item in found]
        if not self._options.may_be_private(host, port) and not all(map(is_public, addresses)):
            raise _Refused(host)
        # To the addresses that were checked, not to the name again.
        failure: OSError = OSError("no address")
        for address in addresses:
            try:
                return await asyncio.open_connection(address, port)
            except OSError as error:
                failure = error
        raise failure


def _forwarded(method: str, path: str, query: str, version: str, headers: str) -> bytes:
    """The request as the server expects it; the connection is not used for a second one."""
    kept = [
        line
        for line in headers.split("\r\n")
        if line
        and line.partition(":")[0].strip().lower() not in ("proxy-connection", "connection", "keep-alive")
    ]
    target = (path or "/") + (f"?{query}" if query else "")
    return "\r\n".join([f"{method} {target} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")


async def _answer(writer: asyncio.StreamWriter, text: str) -> None:
    body = text.encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        f"{PROXY_HEADER}: 1\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("latin-1") + body)
    await writer.drain()


async def _pipe_both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream_reader: asyncio.StreamReader,
    upstream_writer: asyncio.StreamWriter,
) -> None:
    """Pass bytes in both directions until the server's side ends."""
    sending = asyncio.create_task(_pipe(reader, upstream_writer))
    try:
        await _pipe(upstream_reader, writer)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
