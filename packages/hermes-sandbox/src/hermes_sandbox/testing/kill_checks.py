"""Timeouts, cancellation and signals: what is ended is ended, inside the sandbox, and nothing else is."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from hermes_sandbox import Sandbox
from hermes_sandbox.testing.base import Checks, gone, struck, wait_for_file

FAMILIES = {
    "children": ("sleep 3600 & echo $! >>pids; sleep 3600 & echo $! >>pids; echo $$ >>pids", 3),
    "deaf to TERM": ("trap '' TERM INT HUP; echo $$ >>pids", 1),
    "a session of its own": ("setsid bash -c 'echo $$ >>pids; exec sleep 3600' &", 1),
    "detached and renamed": (
        "(setsid nohup bash -c 'echo $BASHPID >>pids; exec -a quiet sleep 3600' >/dev/null 2>&1 &)",
        1,
    ),
    "deaf children of a pipe": ("bash -c 'trap \"\" TERM; echo $$ >>pids; sleep 3600' | cat &", 1),
}
"""What a command starts, and how many processes note their numbers in the file `pids`."""

HANG = "while :; do sleep 1; done"


class KillChecks(Checks):
    """How commands end when they do not end by themselves."""

    async def test_a_timeout_is_a_result_at_its_time(self, sandbox: Sandbox) -> None:
        """No exception; no exit code, because there was none."""
        start = time.monotonic()
        result = await sandbox.exec("sleep 600", timeout=0.6)
        assert (result.reason, result.exit_code, result.timed_out, result.ok) == (
            "timeout",
            None,
            True,
            False,
        )
        assert 0.5 <= result.duration <= time.monotonic() - start < 0.6 + 7 * self.features.slack

    async def test_output_before_the_timeout_is_kept(self, sandbox: Sandbox) -> None:
        """On both streams."""
        script = "echo out; echo err >&2; printf unfinished; sleep 600"
        result = await struck(lambda timeout: sandbox.exec(script, timeout=timeout), b"unfinished")
        assert (result.stdout, result.stderr, result.reason) == (b"out\nunfinished", b"err\n", "timeout")

    async def test_a_timeout_ends_whole_families(self, sandbox: Sandbox, here: str) -> None:
        """Children, those that ignore TERM, and those that left for a session of their own."""

        async def one(number: int, family: str) -> None:
            begin, count = FAMILIES[family]
            ready = f'until [ "$(wc -l <pids)" = {count} ]; do sleep 0.05; done; echo ready'
            folder = f"{here}/{number}"
            await sandbox.mkdir(folder)
            result = await struck(
                lambda timeout: sandbox.exec(
                    f": >pids\n{begin}\n{ready}; {HANG}", cwd=folder, timeout=timeout
                ),
                b"ready",
            )
            assert (result.reason, result.stdout) == ("timeout", b"ready\n"), family
            for pid in (await sandbox.read_text(f"{folder}/pids")).split():
                assert await gone(sandbox, int(pid)), f"{family}: process {pid} outlived the timeout"

        await asyncio.gather(*(one(number, family) for number, family in enumerate(FAMILIES)))

    async def test_a_handler_of_term_may_clean_up(self, sandbox: Sandbox) -> None:
        """TERM comes before KILL, and what it makes a command say is kept."""
        script = "trap 'echo cleaned up; exit 0' TERM; sleep 600 & echo ready; wait"
        result = await struck(lambda timeout: sandbox.exec(script, timeout=timeout), b"ready")
        assert (result.stdout, result.reason) == (b"ready\ncleaned up\n", "timeout")

    async def test_a_flood_can_be_ended(self, sandbox: Sandbox) -> None:
        """A command that writes without end is stopped, in bounded memory."""
        result = await struck(
            lambda timeout: sandbox.exec("yes flood", timeout=timeout, output_limit=1000), b"flood\n" * 80
        )
        assert result.reason == "timeout"
        assert len(result.stdout) <= 1000 < result.stdout_total

    async def test_the_sandbox_is_as_good_as_before(self, sandbox: Sandbox, here: str) -> None:
        """Files stay, other commands run, several timeouts in a row leave nothing."""
        sleep = (
            f"sleep {random.randrange(10**8, 10**9)}"  # nobody else's, where the host's processes are seen
        )
        for _ in range(2):
            assert (await sandbox.exec(sleep, cwd=here, timeout=0.2)).timed_out
        await struck(
            lambda timeout: sandbox.exec(f"touch kept; echo kept; {sleep}", cwd=here, timeout=timeout),
            b"kept",
        )
        result = await sandbox.exec("ls; echo fine", cwd=here)
        assert result.stdout == b"kept\nfine\n"
        count = (
            'n=0; for f in /proc/[0-9]*/cmdline; do a=(); { mapfile -d "" -t a <"$f"; } 2>/dev/null; '
            f'[ "${{a[*]}}" != "{sleep}" ] || n=$((n + 1)); done; echo $n'
        )
        assert (await sandbox.exec(count)).stdout == b"0\n"

    async def test_a_timeout_hits_only_its_own_command(self, sandbox: Sandbox, here: str) -> None:
        """A neighbour that runs at the same time goes on."""
        script = "echo >up; until [ -e stop ]; do sleep 0.05; done; echo alive"
        neighbour = asyncio.create_task(sandbox.exec(script, cwd=here, timeout=110))
        await wait_for_file(sandbox, f"{here}/up")
        assert (await sandbox.exec("sleep 600", timeout=0.3)).timed_out
        await sandbox.write_text(f"{here}/stop", "")
        assert (await neighbour).stdout == b"alive\n"

    async def test_cancelling_the_await_kills_the_command(self, sandbox: Sandbox, here: str) -> None:
        """And raises CancelledError as always."""
        script = "setsid sleep 3600 & echo $$ $! >draft; mv draft pids; sleep 3600"
        task = asyncio.create_task(sandbox.exec(script, cwd=here))
        pids = await wait_for_file(sandbox, f"{here}/pids")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for pid in pids.split():
            assert await gone(sandbox, int(pid))

    async def test_the_callers_own_timeout_kills_too(self, sandbox: Sandbox, here: str) -> None:
        """`asyncio.timeout` around the call works like a cancellation."""
        scope = asyncio.timeout(None)

        async def strike() -> bytes:
            pid = await wait_for_file(sandbox, f"{here}/pid")
            scope.reschedule(0)
            return pid

        striking = asyncio.create_task(strike())
        with pytest.raises(TimeoutError):
            async with scope:
                await sandbox.exec("echo $$ >draft; mv draft pid; exec sleep 3600", cwd=here)
        assert await gone(sandbox, int(await striking))

    @pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("SEGV", 139)])
    async def test_death_by_a_signal_is_not_a_timeout(self, sandbox: Sandbox, name: str, code: int) -> None:
        """128+n, and `reason` says that it was a signal."""
        result = await sandbox.exec(f"echo x; kill -{name} $$; sleep 60", timeout=60)
        assert (result.exit_code, result.reason, result.stdout) == (code, "signal", b"x\n")

    async def test_a_command_that_kills_its_parent_harms_only_itself(
        self, sandbox: Sandbox, here: str
    ) -> None:
        """What runs commands may be killed by one; the next command runs again."""
        self.need("survives_runner")
        await sandbox.write_text(f"{here}/kept", "x")
        result = await sandbox.exec("kill -9 $PPID; sleep 1; echo over", timeout=60)
        assert result.reason in ("exit", "lost", "signal")
        assert (await sandbox.exec(f"cat {here}/kept", timeout=60)).stdout == b"x"
