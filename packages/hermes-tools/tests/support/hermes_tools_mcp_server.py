"""A real MCP server of the SDK: `python hermes_tools_mcp_server.py stdio`, or the number of a socket that listens."""

import asyncio
import base64
import os
import socket
import sys
from pathlib import Path

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
async def slow(mark: str) -> str:
    """Takes long, after it has made a file that tells."""
    Path(mark).touch()
    await asyncio.sleep(300)
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
        import uvicorn

        config = uvicorn.Config(server.streamable_http_app())
        uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
