"""Tools and conversations for tests of the engine."""

import asyncio
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def tool_session(path: Any, **options: Any):
    """A session with `TOOLS` in a folder of this machine."""
    async with ToolSession(REGISTRY, list(TOOLS), HostWorkspace(path), **options) as session:
        yield session
