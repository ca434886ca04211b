"""A real MCP server of the SDK: `python hermes_tools_mcp_server.py stdio|PORT`."""

import asyncio
import base64
import os
import sys

try:
    from mcp.server.mcpserver import Image, MCPServer
except ImportError:  # version 1 of the SDK
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp import Image

server = MCPServer("test")
calls = 0


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def count() -> str:
    """How often this process was asked."""
    global calls
    calls += 1
    return f"{os.getpid()}:{calls}:{os.environ.get('WHO', '')}"


@server.tool()
def broken() -> str:
    """Fails."""
    raise ValueError("it broke")


@server.tool()
async def slow() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return ""


@server.tool()
def draw() -> Image:
    """A picture."""
    return Image(data=base64.b64decode("iVBORw0KGgo="), format="png")


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        try:
            server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
        except TypeError:
            server.settings.host, server.settings.port = "127.0.0.1", int(sys.argv[1])
            server.run("streamable-http")
