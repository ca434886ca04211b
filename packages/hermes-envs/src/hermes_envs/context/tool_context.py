"""The verifier's view of a rollout's sandbox, for code written as if it were synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_envs.context.aio import OUTPUT_LIMIT, AsyncToolContext
from hermes_envs.context.bridge import wait

if TYPE_CHECKING:
    from hermes_sandbox import Sandbox

    from hermes_envs.session import RolloutSession

T = TypeVar("T")


class ToolContext:
    """The rollout's own sandbox and every tool, whatever the rollout drew.

    Results are raw: whole, without line numbers. Calls are plain function calls inside a reward function
    (`async def` or not) and do not block other rollouts; anywhere else await the twins in `aio`. What the policy
    left undone (a missing file, a failing command) is in the result; a lost sandbox raises.

    Args:
        session: The rollout.

    Attributes:
        aio: The same methods, to be awaited.
    """

    def __init__(self, session: RolloutSession) -> None:
        self.aio = AsyncToolContext(session)
        self._loop = asyncio.get_running_loop()

    @property
    def session(self) -> RolloutSession:
        """The rollout."""
        return self.aio.session

    @property
    def sandbox(self) -> Sandbox:
        """The rollout's sandbox itself, awaitable."""
        return self.aio.sandbox

    def terminal(
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
        """Run a bash script in a fresh shell, in the workdir, with the image's environment.

        Args:
            command: The script.
            timeout: Seconds; None waits as long as the reward may take.
            cwd: Where to run.
            env: Further variables.
            user: Who runs it.
            stdin: What it reads.
            output_limit: Bytes kept of the output, head and tail; None keeps all.
            agent_shell: Run in the shell that the agent used, in whatever state it left it.

        Returns:
            `output` (both streams in true order), `exit_code` (124 after a timeout, -1 where there is none),
            `error` (None unless it was cut off), `reason`, `duration` in seconds, `truncated`.
        """
        return self._wait(
            lambda: self.aio.terminal(
                command,
                timeout,
                cwd=cwd,
                env=env,
                user=user,
                stdin=stdin,
                output_limit=output_limit,
                agent_shell=agent_shell,
            )
        )

    def read_file(self, path: str) -> dict[str, Any]:
        """A file's text, whole; up to 256 MiB.

        Returns:
            `content`, `size` in bytes, `binary`; or `content: None` and `error` where it cannot be read.
        """
        return self._wait(lambda: self.aio.read_file(path))

    def read_bytes(self, path: str) -> bytes:
        """A file's bytes; up to 256 MiB.

        Raises:
            FileNotFoundError: There is none; so, with other `OSError`s, for folders, pipes, devices, files that may
                not be read and larger ones.
        """
        return self._wait(lambda: self.aio.read_bytes(path))

    def write_file(self, path: str, content: str | bytes, *, mode: int | None = None) -> dict[str, Any]:
        """Write a file, making the folders it needs.

        Returns:
            `success`, `bytes_written`.
        """
        return self._wait(lambda: self.aio.write_file(path, content, mode=mode))

    def search(self, query: str, path: str = ".", *, limit: int = 1000) -> dict[str, Any]:
        """Search file contents for a regular expression; the result of the tool `search_files`."""
        return self._wait(lambda: self.aio.search(query, path, limit=limit))

    def upload_file(self, local: str | Path, remote: str) -> dict[str, Any]:
        """Copy a file of this machine into the sandbox, mode kept.

        Returns:
            `success`, `bytes`.

        Raises:
            FileNotFoundError: It is missing on this machine.
        """
        return self._wait(lambda: self.aio.upload_file(local, remote))

    def upload_dir(self, local: str | Path, remote: str) -> list[dict[str, Any]]:
        """Copy a tree into the sandbox; one entry per file.

        Raises:
            NotADirectoryError: It is missing on this machine.
        """
        return self._wait(lambda: self.aio.upload_dir(local, remote))

    def download_file(self, remote: str, local: str | Path) -> dict[str, Any]:
        """Copy a file out of the sandbox.

        Returns:
            `success` and `bytes`, or `success: False` and `error`.
        """
        return self._wait(lambda: self.aio.download_file(remote, local))

    def download_dir(self, remote: str, local: str | Path) -> list[dict[str, Any]]:
        """Copy a tree out of the sandbox; one entry per file, or one with `success: False`."""
        return self._wait(lambda: self.aio.download_dir(remote, local))

    def web_search(self, query: str, limit: int = 5) -> dict[str, Any]:
        """Search the web."""
        return self._wait(lambda: self.aio.web_search(query, limit))

    def web_extract(self, urls: Sequence[str]) -> dict[str, Any]:
        """The text of web pages."""
        return self._wait(lambda: self.aio.web_extract(urls))

    def browser_navigate(self, url: str) -> dict[str, Any]:
        """Open a page in the rollout's browser."""
        return self._wait(lambda: self.aio.browser_navigate(url))

    def browser_snapshot(self) -> dict[str, Any]:
        """The page that the rollout's browser shows."""
        return self._wait(lambda: self.aio.browser_snapshot())

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        args: Mapping[str, Any] | str | None = None,
    ) -> str:
        """Call any tool by name; its JSON text, whole, as a model would be shown it (`read_file` numbers its lines).

        Args:
            name: The tool's name.
            arguments: Its arguments, or their JSON text.
            args: Another name for `arguments`.
        """
        return self._wait(lambda: self.aio.call_tool(name, arguments, args=args))

    def cleanup(self) -> None:
        """Give up the browser, the processes and the sandbox now instead of at the rollout's end."""
        self._wait(lambda: self.aio.cleanup())

    def _wait(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return wait(make, self._loop)
