"""The verifier's view of a rollout's sandbox, awaitable."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_tools import ResultBudget, call_tool

from hermes_envs.context import files
from hermes_envs.context.results import command_result

if TYPE_CHECKING:
    from hermes_tools import ToolSession

    from hermes_envs.session import RolloutSession

OUTPUT_LIMIT = 64 << 20
"""Bytes of each output stream that `terminal` keeps by default: a bound for the host's memory, not for a reader."""

_RAW = ResultBudget(per_result=1 << 40, per_turn=1 << 40)


class AsyncToolContext:
    """The methods of `ToolContext`, to be awaited.

    Args:
        session: The rollout.
    """

    def __init__(self, session: RolloutSession) -> None:
        self.session = session
        self.sandbox = session.sandbox
        self._tools: ToolSession | None = None
        self._home: str | None = None

    async def terminal(
        self,
        command: str,
        timeout: float | None = 180.0,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes | None = None,
        output_limit: int | None = OUTPUT_LIMIT,
        agent_shell: bool = False,
    ) -> dict[str, Any]:
        """Run a bash script; see `ToolContext.terminal`."""
        if agent_shell:
            arguments = {"command": command} | ({} if timeout is None else {"timeout": int(timeout)})
            return await self._json("terminal", arguments)
        result = await self.sandbox.exec(
            command,
            cwd=cwd,
            env=env,
            user=user,
            stdin=stdin,
            timeout=timeout,
            merge=True,
            output_limit=output_limit,
        )
        return command_result(result, timeout)

    async def read_file(self, path: str) -> dict[str, Any]:
        """A file's text; see `ToolContext.read_file`."""
        path = await self._path(path)
        try:
            data = await files.read(self.sandbox, path)
        except OSError as error:
            return {"path": path, "content": None, "error": f"{error.strerror or error}: {path}"}
        text = data.decode(errors="replace")
        return {"path": path, "content": text, "size": len(data), "binary": b"\0" in data}

    async def read_bytes(self, path: str) -> bytes:
        """A file's bytes; see `ToolContext.read_bytes`."""
        return await files.read(self.sandbox, await self._path(path))

    async def write_file(self, path: str, content: str | bytes, *, mode: int | None = None) -> dict[str, Any]:
        """Write a file; see `ToolContext.write_file`."""
        path = await self._path(path)
        data = content.encode() if isinstance(content, str) else content
        await self.sandbox.write_bytes(path, data, mode=mode)
        return {"path": path, "success": True, "bytes_written": len(data)}

    async def search(self, query: str, path: str = ".", *, limit: int = 1000) -> dict[str, Any]:
        """Search file contents; see `ToolContext.search`."""
        where = posixpath.join(self.sandbox.workdir, await self._path(path))
        return await self._json("search_files", {"pattern": query, "path": where, "limit": limit})

    async def upload_file(self, local: str | Path, remote: str) -> dict[str, Any]:
        """Copy a file in; see `ToolContext.upload_file`."""
        return await files.upload_file(self.sandbox, Path(local), await self._path(remote))

    async def upload_dir(self, local: str | Path, remote: str) -> list[dict[str, Any]]:
        """Copy a tree in; see `ToolContext.upload_dir`."""
        return await files.upload_dir(self.sandbox, Path(local), await self._path(remote))

    async def download_file(self, remote: str, local: str | Path) -> dict[str, Any]:
        """Copy a file out; see `ToolContext.download_file`."""
        return await files.download_file(self.sandbox, await self._path(remote), Path(local))

    async def download_dir(self, remote: str, local: str | Path) -> list[dict[str, Any]]:
        """Copy a tree out; see `ToolContext.download_dir`."""
        return await files.download_dir(self.sandbox, await self._path(remote), Path(local))

    async def web_search(self, query: str, limit: int = 5) -> dict[str, Any]:
        """Search the web."""
        return await self._json("web_search", {"query": query, "limit": limit})

    async def web_extract(self, urls: Sequence[str]) -> dict[str, Any]:
        """The text of web pages."""
        return await self._json("web_extract", {"urls": list(urls)})

    async def browser_navigate(self, url: str) -> dict[str, Any]:
        """Open a page in the rollout's browser."""
        return await self._json("browser_navigate", {"url": url})

    async def browser_snapshot(self) -> dict[str, Any]:
        """The page that the rollout's browser shows, as a tree with references."""
        return await self._json("browser_snapshot", {})

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        args: Mapping[str, Any] | str | None = None,
    ) -> str:
        """Call any tool; see `ToolContext.call_tool`."""
        return (await call_tool(name, arguments or args or {}, self._every_tool())).text

    async def cleanup(self) -> None:
        """Give up the browser, the processes and the sandbox before the rollout's end."""
        await self.session.tools.close()
        await self.sandbox.close()

    async def _json(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return json.loads(await self.call_tool(name, arguments))

    def _every_tool(self) -> ToolSession:
        """The rollout's tool session with every tool that can work here, and no budgets."""
        if self._tools is None:
            self._tools = self.session.tools.widened(budget=_RAW)
        return self._tools

    async def _path(self, path: str) -> str:
        """The path with a leading `~` replaced by the home folder inside the sandbox."""
        if path != "~" and not path.startswith("~/"):
            return path
        if self._home is None:
            result = await self.sandbox.exec('printf %s "$HOME"', timeout=60)
            self._home = result.stdout.decode() or "/"
        return self._home + path[1:]
