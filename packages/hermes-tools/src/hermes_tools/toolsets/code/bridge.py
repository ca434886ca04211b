"""The host's side of a running script: takes its output and serves its calls."""

import asyncio
import json
import re
from typing import Any, cast

from hermes_tools.dispatch import call_tool
from hermes_tools.headtail import HeadTail
from hermes_tools.results import error_text
from hermes_tools.session import ToolSession
from hermes_tools.toolsets.code.script import INLINE_CALL, INLINE_REPLY
from hermes_tools.workspace import WorkspaceProcess

CHUNK = 1 << 20
CAPTURED_BYTES = 8 << 20
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.2


class Bridge:
    """One running script.

    Attributes:
        output: What the script has written.
        calls: How many calls of tools it has made.
    """

    def __init__(
        self,
        session: ToolSession,
        process: WorkspaceProcess,
        folder: str,
        mark: str,
        allowed: frozenset[str],
        most: int,
    ) -> None:
        self._session = session
        self._process = process
        self._folder = folder
        self._allowed = allowed
        self._most = most
        self._mark = re.compile(rb"\x1e%s ([^\x1e]*)\x1e" % mark.encode())
        self._longest_mark = len(mark) + INLINE_CALL + 8
        self._served = asyncio.Event()
        self._offset = 0
        self._rest = b""
        self.output = HeadTail(CAPTURED_BYTES)
        self.calls = 0

    async def run(self) -> int | None:
        """Serve the script until it ends; its exit code."""
        serving: set[asyncio.Task[None]] = set()
        pause = FIRST_PAUSE
        try:
            while True:
                ended = await self._process.poll()
                piece = await self._process.read(self._offset, CHUNK)
                self._offset = piece.next_offset
                requests = self._take(piece.data, final=ended is not None)
                serving |= {asyncio.create_task(self._serve(request)) for request in requests}
                for task in [task for task in serving if task.done()]:
                    serving.remove(task)
                    task.result()
                if piece.data:
                    pause = FIRST_PAUSE
                elif ended is not None:
                    return ended
                else:
                    pause = await self._rest_for(pause)
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)

    async def take_rest(self) -> None:
        """Take what a script that was killed had written since it was last looked at; nothing is served any more."""
        for _ in range(CAPTURED_BYTES // CHUNK):  # what outlives it may write without end
            piece = await self._process.read(self._offset, CHUNK)
            self._offset = piece.next_offset
            self._take(piece.data, final=True)
        self._take(b"", final=True)

    async def _rest_for(self, pause: float) -> float:
        """Wait before looking again: ever longer, but not once an answer was given, for the script goes on then."""
        self._served.clear()
        try:
            async with asyncio.timeout(pause):
                await self._served.wait()
        except TimeoutError:
            return min(pause * 1.5, LONGEST_PAUSE)
        return FIRST_PAUSE

    def _take(self, data: bytes, *, final: bool) -> list[bytes]:
        """Split new output into the script's own and its marks."""
        text = self._rest + data
        requests: list[bytes] = [found[1] for found in self._mark.finditer(text)]
        plain = self._mark.sub(b"", text) if requests else text
        # The beginning of a mark may be at the very end.
        start = plain.rfind(b"\x1e", max(0, len(plain) - self._longest_mark))
        cut = len(plain) if start < 0 or (final and not data) else start
        self.output.add(plain[:cut])
        self._rest = plain[cut:]
        return requests

    async def _serve(self, request: bytes) -> None:
        number, name, arguments = _read(request)
        if not name:
            path = f"{self._folder}/call-{number}.json"
            number, name, arguments = _read(await self._session.workspace.read_bytes(path))
        reply = await self._reply(name, arguments)
        if len(reply) > INLINE_REPLY:
            await self._session.workspace.write_bytes(f"{self._folder}/reply-{number}.json", reply)
            reply = b""
        try:
            await self._process.write(b"%d %s\n" % (number, reply))
        except (OSError, ValueError):
            # The script ended without waiting for its answer.
            return
        finally:
            self._served.set()

    async def _reply(self, name: str, arguments: dict[str, Any]) -> bytes:
        self.calls += 1
        if self.calls > self._most:
            return error_text(f"A script may call tools {self._most} times at most.").encode()
        if name not in self._allowed:
            return error_text(f"A script cannot call {name}.").encode()
        return (await call_tool(name, arguments, self._session, whole=True)).text.encode("utf-8")


def _read(request: bytes) -> tuple[int, str, dict[str, Any]]:
    return cast("tuple[int, str, dict[str, Any]]", json.loads(request))
