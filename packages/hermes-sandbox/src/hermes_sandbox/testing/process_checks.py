"""Background processes: started, watched, fed, signalled, listed."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

from hermes_sandbox import Process, Sandbox
from hermes_sandbox.testing.base import Checks, gone


async def read_until(process: Process, wanted: bytes, offset: int = 0) -> tuple[bytes, int]:
    """Read from `offset` until `wanted` was seen: the data and the next offset."""
    data = b""
    async with asyncio.timeout(60):
        while wanted not in data:
            output = await process.read(offset)
            data, offset = data + output.data, output.next_offset
            await asyncio.sleep(0.02)
    return data, offset


class ProcessChecks(Checks):
    """What `spawn` gives."""

    async def test_output_is_read_by_offset(self, sandbox: Sandbox) -> None:
        """New output only, as often as wanted, also again from the start and after the end."""
        process = await sandbox.spawn("echo one; read -r _; echo two >&2; exit 3")
        data, offset = await read_until(process, b"one\n")
        assert (data, offset) == (b"one\n", 4)
        assert (await process.read(offset)).data == b""
        assert await process.poll() is None
        await process.write(b"go\n")
        data, offset = await read_until(process, b"two\n", offset)
        assert (data, offset) == (b"two\n", 8)
        assert await process.wait(60) == 3
        assert (await process.read(0)).data == b"one\ntwo\n"
        assert (await process.read(4, 2)).data == b"tw"
        assert await process.poll() == 3

    async def test_stdin_can_be_written_and_closed(self, sandbox: Sandbox) -> None:
        """All bytes, in pieces; the process sees the end when it is closed."""
        process = await sandbox.spawn(["cat"])
        await process.write(b"a\0b")
        await read_until(process, b"a\0b")
        await process.write(b"\xff\n")
        await process.close_stdin()
        assert await process.wait(60) == 0
        assert (await read_until(process, b"\xff\n"))[0] == b"a\0b\xff\n"

    async def test_signals_arrive(self, sandbox: Sandbox) -> None:
        """By name and by number."""
        process = await sandbox.spawn("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done")
        await read_until(process, b"ready")
        await process.signal("USR1")
        await read_until(process, b"usr1")
        await process.signal(9)
        assert await process.wait(60) == 137

    async def test_waiting_has_a_deadline(self, sandbox: Sandbox) -> None:
        """None while it still runs."""
        process = await sandbox.spawn("sleep 3600")
        assert await process.wait(0.1) is None
        assert await process.poll() is None
        await process.signal("TERM")
        assert await process.wait(60) == 143
        assert await gone(sandbox, process.pid)

    async def test_processes_are_listed(self, sandbox: Sandbox) -> None:
        """Each with its id, pid and command; they run beside exec and shells."""
        process = await sandbox.spawn("sleep 3600 # findme")
        assert (await sandbox.exec("echo beside")).stdout == b"beside\n"
        listed = {each.id: each for each in await sandbox.processes()}
        assert "findme" in listed[process.id].command
        assert listed[process.id].pid == process.pid
        await process.signal("KILL")
        await process.wait(60)

    async def test_cwd_and_env(self, sandbox: Sandbox, here: str) -> None:
        """As for exec."""
        process = await sandbox.spawn('pwd; echo "$V"', cwd=here, env={"V": "a b"})
        assert await process.wait(60) == 0
        assert (await read_until(process, b"b\n"))[0] == f"{here}\na b\n".encode()

    async def test_a_cancelled_start_leaves_no_process(self, sandbox: Sandbox) -> None:
        """At whatever moment it is cancelled."""
        left, right = secrets.token_hex(4), secrets.token_hex(4)
        for step in range(12):
            task = asyncio.create_task(sandbox.spawn(["bash", "-c", "sleep 600; :", f"{left}{right}"]))
            await asyncio.sleep(0.001 * step)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                started = await task
                await started.signal("KILL")
                assert await started.wait(60) is not None
        look = (
            f"word={left}; word+={right}; for file in /proc/[0-9]*/cmdline; do "
            "text=; { mapfile -d '' text <$file; } 2>/dev/null; [[ ${text[*]} != *$word* ]] || echo $file; done"
        )
        # A bash that was killed as it forked leaves a child that shows the word until it becomes sleep.
        async with asyncio.timeout(60):
            while (await sandbox.exec(look)).stdout:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
