"""Move much data past a process's streams: as a file inside, through the backend's own file interface."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from hermes_sandbox.backend import Command, Machine
from hermes_sandbox.errors import SandboxError
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.oneshot import collect

_FED = 'file=$1; shift; exec "$@" <"$file"'
_KEPT = 'file=$1; shift; exec "$@" >"$file"'


class Staging:
    """Runs programs whose input or output is a file that the backend moves."""

    def __init__(self, backend: Any, machine: Machine) -> None:
        """Takes a backend that is `MovesFiles`."""
        self._backend, self._machine = backend, machine

    async def feed(self, command: Command, data: AsyncIterator[bytes]) -> tuple[int | None, bytes, bytes]:
        """Run a command on some input; its exit code, output and errors."""
        path = _fresh()
        try:
            await self._backend.put_file(self._machine, path, data)
            return await self._run(_FED, path, command)
        finally:
            await uncancelled(self._remove(path))

    async def keep(
        self, command: Command, receive: Callable[[bytes], Awaitable[None]]
    ) -> tuple[int | None, bytes]:
        """Run a command and hand on what it writes; its exit code and errors."""
        path = _fresh()
        try:
            code, _, said = await self._run(_KEPT, path, command)
            async with aclosing(self._backend.get_file(self._machine, path)) as pieces:
                async for piece in pieces:
                    await receive(piece)
            return code, said
        finally:
            await uncancelled(self._remove(path))

    async def _run(self, wrapper: str, path: str, command: Command) -> tuple[int | None, bytes, bytes]:
        argv = (self._machine.shell, "--norc", "--noprofile", "-c", wrapper, "hermes-sandbox", path)
        wrapped = replace(command, argv=(*argv, *command.argv))
        return await collect(await self._backend.open_process(self._machine, wrapped))

    async def _remove(self, path: str) -> None:
        with suppress(SandboxError, OSError):  # it goes with the sandbox
            await self._backend.remove_file(self._machine, path)


def _fresh() -> str:
    return f"/tmp/.hermes-{secrets.token_hex(8)}"
