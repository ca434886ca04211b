"""The rollout's shell: opened on first use, one command at a time."""

import asyncio
import posixpath
import shlex
from typing import TYPE_CHECKING

from hermes_tools.errors import ToolError
from hermes_tools.workspace import CommandResult, WorkspaceShell

if TYPE_CHECKING:
    from hermes_tools.session import ToolSession


class SessionShell:
    """One session's shell, and the place its relative paths start from."""

    def __init__(self, session: "ToolSession") -> None:
        self._workspace = session.workspace
        self._shell: WorkspaceShell | None = None
        self._lock = asyncio.Lock()
        self._home: str | None = None

    @property
    def cwd(self) -> str:
        """The folder the shell is in; the workspace's until a shell was opened."""
        return self._shell.cwd if self._shell is not None else self._workspace.workdir

    async def run(
        self, command: str, *, timeout: float, workdir: str | None, output_limit: int
    ) -> CommandResult:
        """Run a command; in `workdir` for this command alone, where given."""
        async with self._lock:
            if self._shell is None:
                self._shell = await self._workspace.open_shell()
            return await self._shell.run(
                _inside(workdir, command), timeout=timeout, output_limit=output_limit
            )

    async def resolve(self, path: str) -> str:
        """An absolute path, from where the shell is. `~` is the workspace's home folder.

        Raises:
            ToolError: The path is empty or no path.
        """
        if not path.strip() or "\0" in path:
            raise ToolError(
                "The path is empty." if not path.strip() else "A path cannot contain a null byte."
            )
        if path == "~" or path.startswith("~/"):
            path = posixpath.join(await self.home(), path[2:])
        return posixpath.normpath(posixpath.join(self.cwd, path))

    async def home(self) -> str:
        """The home folder inside the workspace."""
        if self._home is None:
            found = await self._workspace.exec('printf %s "${HOME:-/}"', timeout=30)
            self._home = found.stdout.decode("utf-8", "replace") or "/"
        return self._home

    async def aclose(self) -> None:
        """End the shell."""
        if self._shell is not None:
            shell, self._shell = self._shell, None
            await shell.close()


def _inside(workdir: str | None, command: str) -> str:
    if workdir is None:
        return command
    # A subshell keeps the change of folder, and all else the command changes, to this command.
    return f"(cd -- {shlex.quote(workdir)} && eval {shlex.quote(command)})"
