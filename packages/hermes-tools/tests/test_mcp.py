"""MCP servers of the real SDK as toolsets, over stdio and HTTP."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hermes_tools import (
    ToolDefinitionError,
    ToolError,
    ToolRegistry,
    ToolSession,
    call_tool,
    default_registry,
)
from hermes_tools.mcp import McpServer, load_mcp_toolset
from hermes_tools_calls import fail, succeed
from hermes_tools_waiting import ended, until

SERVER = str(Path(__file__).parent / "support" / "hermes_tools_mcp_server.py")
STDIO = McpServer(command=(sys.executable, SERVER, "stdio"), env={"WHO": "me"}, deadline=60)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr("hermes_tools.mcp.CONNECT_SECONDS", 100.0)


@pytest.fixture
async def registry() -> ToolRegistry:
    return default_registry().with_toolset(await load_mcp_toolset("test", STDIO, prefix="t_"))


@pytest.fixture
async def http_server() -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            SERVER,
            str(listening.fileno()),
            pass_fds=[listening.fileno()],
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            process.kill()
            await process.wait()


async def check_tools(session: ToolSession, prefix: str) -> None:
    """What both transports must do."""
    tool = session.tool(f"{prefix}add")
    assert tool.description == "Add two numbers."
    assert tool.parameters["required"] == ["a"] and set(tool.parameters["properties"]) == {"a", "b"}
    assert await succeed(session, f"{prefix}add", a="2", b=3) == {"result": 5}
    assert "`a`: must be an integer" in await fail(session, f"{prefix}add", a="two")
    assert "broken" in await fail(session, f"{prefix}broken")
    drawn = await call_tool(f"{prefix}draw", {}, session)
    assert drawn.parts[1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    several = await asyncio.gather(*(succeed(session, f"{prefix}add", a=n) for n in range(10)))
    assert [item["result"] for item in several] == list(range(1, 11))


async def test_over_stdio(open_session, registry):
    await check_tools(open_session("test", registry=registry), "t_")


async def test_over_http(open_session, http_server):
    toolset = await load_mcp_toolset("web", McpServer(url=http_server))
    await check_tools(open_session("web", registry=ToolRegistry([toolset])), "")


async def test_sessions_have_processes_of_their_own_that_end_with_them(open_session, registry):
    one, two = open_session("test", registry=registry), open_session("test", registry=registry)
    seen = [(await succeed(session, "t_count"))["result"].split(":") for session in (one, one, two)]
    assert [item[1:] for item in seen] == [["1", "me"], ["2", "me"], ["1", "me"]]
    pid = int(seen[0][0])
    assert Path(f"/proc/{pid}").exists()
    await one.close()
    await ended([pid])
    assert (await succeed(two, "t_count"))["result"].endswith(":2:me")


async def test_calls_have_a_deadline_and_can_be_cancelled(open_session, tmp_path):
    server = McpServer(command=STDIO.command, deadline=1)
    session = open_session("test", registry=ToolRegistry([await load_mcp_toolset("test", server)]))
    assert "within 1 seconds" in await fail(session, "slow", mark=str(tmp_path / "late"))
    object.__setattr__(server, "deadline", 60)  # for calls that are to end well
    task = asyncio.create_task(call_tool("slow", {"mark": str(tmp_path / "begun")}, session))
    await until((tmp_path / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await succeed(session, "add", a=1) == {"result": 2}


async def test_a_server_that_dies_is_an_error_and_is_started_again(open_session, registry):
    session = open_session("test", registry=registry)
    assert "MCP server" in await fail(session, "t_die")

    async def answer():
        output = await call_tool("t_add", {"a": 1}, session)
        return output.error is None and output.text

    assert await until(answer) == '{"result": 2}'


@pytest.mark.parametrize(
    ("server", "part"),
    [
        (McpServer(command=("/no/such/program",)), "No such file"),
        (McpServer(command=("bash", "-c", "echo oops >&2; exit 1")), "oops"),
        (McpServer(url="http://127.0.0.1:1/mcp"), "cannot be used"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(server, part):
    with pytest.raises(ToolError, match=part):
        await load_mcp_toolset("x", server)


def test_a_server_is_a_command_or_an_address():
    with pytest.raises(ToolDefinitionError):
        McpServer()
    with pytest.raises(ToolDefinitionError):
        McpServer(command=("a",), url="http://b")
