"""Any MCP server as a toolset.

    toolset = await load_mcp_toolset("weather", McpServer(command=("python", "server.py")))
    registry = default_registry().with_toolset(toolset)
    async with ToolSession(registry, ["weather", "terminal"], workspace) as session: ...

Each session has a connection, and for a server that is started by command a process, of its own, opened by its first call
and closed with it. The servers run beside this process, not in the sandbox. Needs `pip install "hermes-tools[mcp]"`.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, cast

from hermes_tools.errors import ToolDefinitionError, ToolError
from hermes_tools.registry import Toolset
from hermes_tools.results import Content, JsonDict
from hermes_tools.session import ToolSession
from hermes_tools.tool import Tool

if TYPE_CHECKING:
    from mcp import ClientSession

CONNECT_SECONDS = 30.0
CLOSE_SECONDS = 10.0
MAX_PAGES = 100
CONNECTION_CLOSED = -32000
_WRONG_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class McpServer:
    """How to reach an MCP server: a command to start, or an address.

    Attributes:
        command: Program and arguments of a server that speaks over standard input and output.
        url: Address of a server that speaks streamable HTTP.
        env: Variables for the command, beside a few harmless ones of this process.
        cwd: Folder for the command.
        headers: HTTP headers, such as an authorization.
        deadline: Seconds one call may take.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    deadline: float = 120.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ToolDefinitionError("An McpServer has either a command or a url.")


async def load_mcp_toolset(name: str, server: McpServer, *, prefix: str = "") -> Toolset:
    """Ask a server for its tools and make a toolset of them.

    Args:
        name: The toolset's name.
        server: How to reach it.
        prefix: Put before each tool's name, such as `weather_`.

    Raises:
        ToolError: The server cannot be reached or does not speak MCP.
        ToolDefinitionError: The SDK is not installed.
    """
    if find_spec("mcp") is None:
        raise ToolDefinitionError('MCP servers need the SDK: pip install "hermes-tools[mcp]"')
    async with _connected(server) as client:
        listed = await _list_tools(client)
    return Toolset(
        name, f"Tools of the MCP server {name}.", tuple(_tool(name, server, prefix, item) for item in listed)
    )


def _tool(toolset: str, server: McpServer, prefix: str, listed: JsonDict) -> Tool:
    remote = str(listed["name"])

    async def call(session: ToolSession, arguments: JsonDict) -> Any:
        connections = session.state(_Connections)
        client = await connections.client(server)
        try:
            async with asyncio.timeout(server.deadline):
                return _result(_plain(await client.call_tool(remote, arguments)))
        except TimeoutError:
            raise ToolError(f"{remote} did not finish within {server.deadline:g} seconds.") from None
        except ToolError:
            raise
        except Exception as error:
            # The SDK raises errors of many kinds. Only one with a code of its own came from a server that lives.
            if _code(error) in (None, CONNECTION_CLOSED):
                await connections.drop(server)
            raise ToolError(f"The MCP server failed at {remote}: {type(error).__name__}: {error}") from None

    return Tool.from_schema(
        _WRONG_CHARACTERS.sub("_", prefix + remote)[:64],
        str(listed.get("description") or listed.get("title") or ""),
        cast(JsonDict, listed.get("inputSchema") or {"type": "object"}),
        call,
        toolset=toolset,
        # Connecting takes its own time, and each call has the deadline of its server.
        deadline=None,
    )


async def _list_tools(client: "ClientSession") -> list[JsonDict]:
    from mcp.types import PaginatedRequestParams

    found: list[JsonDict] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        page = _plain(await client.list_tools(params=params))
        found += page["tools"]
        cursor = page.get("nextCursor")
        if not cursor:
            break
    return found


def _plain(message: Any) -> JsonDict:
    # By the names of the protocol, which both versions 1 and 2 of the SDK know.
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)


def _code(error: Exception) -> int | None:
    """The code of an error that the protocol carried, in both versions of the SDK."""
    return getattr(getattr(error, "error", None), "code", None)


def _result(answer: JsonDict) -> Any:
    texts: list[str] = []
    images: list[str] = []
    for block in cast(list[JsonDict], answer.get("content", [])):
        kind = block.get("type")
        if kind == "text":
            texts.append(str(block["text"]))
        elif kind == "image":
            images.append(f"data:{block['mimeType']};base64,{block['data']}")
        elif kind == "resource":
            resource = cast(JsonDict, block["resource"])
            texts.append(str(resource.get("text") or f"[binary resource {resource.get('uri')}]"))
        elif kind == "resource_link":
            texts.append(f"[resource {block.get('uri')}]")
        else:
            texts.append(f"[{kind}]")
    text = "\n".join(texts)
    if answer.get("isError"):
        raise ToolError(text or "The tool failed.")
    value: Any = answer.get("structuredContent")
    return Content({"result": text} if value is None else value, tuple(images))


class _Connections:
    """One session's connections to MCP servers."""

    def __init__(self, session: ToolSession) -> None:
        self._open: dict[int, _Connection] = {}

    async def client(self, server: McpServer) -> "ClientSession":
        connection = self._open.setdefault(id(server), _Connection(server))
        try:
            return await connection.client()
        except ToolError:
            await self.drop(server)
            raise

    async def drop(self, server: McpServer) -> None:
        """Forget a connection that broke; the next call makes a new one."""
        if (connection := self._open.pop(id(server), None)) is not None:
            await connection.close()

    async def aclose(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._open.values()))


class _Connection:
    """A connection that lives in a task of its own, since the SDK must open and close it in the same one."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._live())

    async def client(self) -> "ClientSession":
        if self._ready.done() and self._task.done():
            raise ToolError("The connection to the MCP server was lost.")
        return await asyncio.shield(self._ready)

    async def _live(self) -> None:
        try:
            async with _connected(self._server) as client:
                self._ready.set_result(client)
                await self._stop.wait()
        except (Exception, asyncio.CancelledError) as error:
            if not self._ready.done():
                self._ready.set_exception(error if isinstance(error, ToolError) else ToolError(str(error)))
                # Marked as seen: nobody may be waiting any more.
                self._ready.exception()

    async def close(self) -> None:
        self._stop.set()
        done, _ = await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if not done:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


@asynccontextmanager
async def _connected(server: McpServer) -> AsyncGenerator["ClientSession"]:
    from mcp import ClientSession

    ready = False
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            async with _streams(server, log) as (read, write), ClientSession(read, write) as client:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await client.initialize()
                ready = True
                yield client
        except Exception as error:
            if ready:
                raise
            log.seek(0)
            told = log.read()[-1_000:].strip()
            reason = _innermost(error)
            name = " ".join(server.command) or server.url
            raise ToolError(
                f"The MCP server {name} cannot be used: {type(reason).__name__}: {reason}{f'. It said: {told}' if told else ''}"
            ) from None


@asynccontextmanager
async def _streams(server: McpServer, log: IO[str]) -> AsyncGenerator[tuple[Any, Any]]:
    if server.command:
        from mcp import StdioServerParameters, stdio_client

        command, *args = server.command
        parameters = StdioServerParameters(command=command, args=args, env=dict(server.env), cwd=server.cwd)
        async with stdio_client(parameters, errlog=cast(Any, log)) as (read, write):
            yield read, write
        return
    from mcp.client.streamable_http import (
        create_mcp_http_client,  # pyright: ignore[reportPrivateImportUsage]
        streamable_http_client,
    )

    async with (
        create_mcp_http_client(headers=dict(server.headers)) as http,
        streamable_http_client(str(server.url), http_client=http) as streams,
    ):
        yield streams[0], streams[1]


def _innermost(error: BaseException) -> BaseException:
    """The first cause inside exception groups, in which the SDK wraps what happened."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
