"""Run a small program in a process of its own, past the resident runner."""

from __future__ import annotations

import asyncio

from hermes_sandbox.backend import Backend, ByteProcess, ByteReader, Command, Machine, Tree
from hermes_sandbox.runner.programs import kill_program

PATIENCE = 30.0


async def read_all(reader: ByteReader) -> bytes:
    """Everything until the end of a stream."""
    parts: list[bytes] = []
    while data := await reader.read(1 << 16):
        parts.append(data)
    return b"".join(parts)


async def collect(process: ByteProcess) -> tuple[int | None, bytes, bytes]:
    """The exit code, output and errors of a process that reads nothing."""
    try:
        await process.close_stdin()
        stdout, stderr, code = await asyncio.gather(
            read_all(process.stdout), read_all(process.stderr), process.wait()
        )
    finally:
        await process.close()
    return code, stdout, stderr


async def signal_once(
    backend: Backend, machine: Machine, tree: Tree, signal: int, user: str | None = None
) -> int:
    """One round of signals from a fresh process; how many processes it found."""
    arguments = (str(signal), tree.mark, str(tree.root or 0), tree.shell, " ".join(map(str, tree.spare)))
    argv = (machine.shell, "--norc", "--noprofile", "-c", kill_program(), "signal", *arguments)
    async with asyncio.timeout(PATIENCE):
        process = await backend.open_process(machine, Command(argv, cwd="/", user=user))
        _, stdout, _ = await collect(process)
    text = stdout.split()[-1:] or [b"0"]
    return int(text[0]) if text[0].isdigit() else 0
