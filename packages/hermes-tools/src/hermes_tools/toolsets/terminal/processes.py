"""The background processes of one session, under ids that are the same in every run."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Literal

from hermes_tools.errors import ToolError, nearest
from hermes_tools.session import ToolSession
from hermes_tools.workspace import WorkspaceProcess

MAX_RUNNING = 64
KEPT_BYTES = 200_000
CHUNK = 1 << 20
UPDATE_SECONDS = 10.0
TERM_SECONDS, KILL_SECONDS = 2.0, 20.0


@dataclass(slots=True)
class Background:
    """One background process.

    Attributes:
        session_id: What the model calls it by.
        handle: The workspace's process.
        started: Monotonic time of its start.
        kept: The last `KEPT_BYTES` of its output.
        total: Bytes of output read so far.
    """

    session_id: str
    handle: WorkspaceProcess
    started: float = field(default_factory=time.monotonic)
    kept: bytearray = field(default_factory=bytearray)
    total: int = 0

    async def update(self) -> None:
        """Take in what it has written since; of one that writes faster than is read, what can be read in a while."""
        deadline = time.monotonic() + UPDATE_SECONDS
        while time.monotonic() < deadline:
            start = self.total
            piece = await self.handle.read(start, CHUNK)
            if not piece.data:
                return
            if self.total != start:  # A call beside this one took it in.
                continue
            self.total = piece.next_offset
            self.kept += piece.data
            del self.kept[:-KEPT_BYTES]

    @property
    def text(self) -> str:
        """The kept output."""
        return self.kept.decode("utf-8", "replace")

    async def status(self) -> tuple[Literal["running", "exited"], int | None]:
        """Whether it runs, and its exit code."""
        code = await self.handle.poll()
        return ("running", None) if code is None else ("exited", code)

    async def kill(self) -> int | None:
        """End it: TERM, then KILL."""
        for name, seconds in (("TERM", TERM_SECONDS), ("KILL", KILL_SECONDS)):
            if await self.handle.poll() is None:
                await self.handle.signal(name)
                await self.handle.wait(seconds)
        return await self.handle.poll()


class Processes:
    """The background processes of one session."""

    def __init__(self, session: ToolSession) -> None:
        self._workspace = session.workspace
        self._known: dict[str, Background] = {}

    async def start(self, command: str, cwd: str) -> Background:
        """Start one.

        Raises:
            ToolError: Too many are running.
        """
        running = [item for item in self._known.values() if await item.handle.poll() is None]
        if len(running) >= MAX_RUNNING:
            raise ToolError(f"{MAX_RUNNING} background processes are running already: kill some first.")
        handle = await self._workspace.spawn(command, cwd=cwd)
        item = Background(f"proc_{len(self._known) + 1}", handle)
        self._known[item.session_id] = item
        return item

    def get(self, session_id: str | None) -> Background:
        """The process of this id.

        Raises:
            ToolError: There is none; it names those there are.
        """
        if session_id is None:
            raise ToolError("This action needs a session_id, as the terminal tool gave it.")
        if session_id not in self._known:
            raise ToolError(
                f"There is no background process {session_id!r}. {nearest(session_id, self._known)}"
            )
        return self._known[session_id]

    def all(self) -> list[Background]:
        """All of them, the finished ones too, in the order they were started."""
        return list(self._known.values())

    async def aclose(self) -> None:
        """Kill all that run."""
        items, self._known = self.all(), {}
        await asyncio.gather(*(item.kill() for item in items))
