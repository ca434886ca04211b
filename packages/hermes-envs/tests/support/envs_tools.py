"""Tools and conversations for tests of the engine."""

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from typing import Any

from hermes_parsers import ToolCall
from hermes_tools import HostWorkspace, ToolRegistry, ToolSession, tool
from hermes_tools.results import Content

PIXEL = "data:image/png;base64,iVBORw0KGgo="


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def nap(seconds: float, name: str) -> str:
    """Sleep, then say the name."""
    await asyncio.sleep(seconds)
    return name


@tool
async def explode() -> str:
    """Fail."""
    raise RuntimeError("boom")


@tool
async def look() -> Content:
    """Return a picture."""
    return Content({"seen": "a pixel"}, (PIXEL,))


TOOLS = (add, nap, explode, look)
REGISTRY = ToolRegistry().with_tools(*TOOLS)


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def held_port() -> socket.socket:
    """A port of loopback that no other program is given while this is open.

    Nobody listens on it, so that connections are refused; but a server that is told its number can.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@asynccontextmanager
async def tool_session(path: Any, **options: Any):
    """A session with `TOOLS` in a folder of this machine."""
    async with ToolSession(REGISTRY, list(TOOLS), HostWorkspace(path), **options) as session:
        yield session


async def no_task_is_left():
    """See that this task ends up alone: one that lets go of a process, say, ends soon after what it served."""
    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            while asyncio.all_tasks() != {asyncio.current_task()}:
                await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}
