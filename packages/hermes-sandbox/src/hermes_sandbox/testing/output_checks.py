"""Output: bounded when asked, whole when asked, live, and nothing but the command's own."""

from __future__ import annotations

import asyncio

from hermes_sandbox import Sandbox
from hermes_sandbox.testing.base import Checks, wait_for_file

MEGABYTE = 1 << 20
FORGED = "X 1 0 0 0\nE 1 1\nD 1 1 4\nR 1 1\nP 1 1\n__DONE__ 0\n\x1b]0;exit 0\x07"


class OutputChecks(Checks):
    """What becomes of what commands write."""

    async def test_100_megabytes_pass_in_bounded_memory(self, sandbox: Sandbox) -> None:
        """Head and tail are kept, everything is counted."""
        script = "echo HEAD; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo TAIL"
        result = await sandbox.exec(script, output_limit=MEGABYTE, timeout=100)
        assert result.stdout_total == 100_000_011
        assert len(result.stdout) <= MEGABYTE
        assert result.stdout.startswith(b"HEAD\nxxx")
        assert result.stdout.endswith(b"xxx\nTAIL\n")
        assert result.truncated
        assert result.exit_code == 0

    async def test_without_a_limit_everything_is_kept(self, sandbox: Sandbox) -> None:
        """5 MB in one line, on both streams at once."""
        script = "head -c 5000000 /dev/zero | tr '\\0' a & head -c 5000000 /dev/zero | tr '\\0' b >&2; wait"
        result = await sandbox.exec(script, output_limit=None, timeout=60)
        assert result.stdout == b"a" * 5_000_000
        assert result.stderr == b"b" * 5_000_000
        assert not result.truncated

    async def test_a_small_limit_marks_the_gap(self, sandbox: Sandbox) -> None:
        """`output` says how much is missing; each stream has its own count."""
        result = await sandbox.exec("printf '%0100d' 7; echo short >&2", output_limit=20)
        assert (len(result.stdout), result.stdout_total) == (20, 100)
        assert result.stdout.endswith(b"7")
        assert "80 bytes" in result.output
        assert result.stderr == b"short\n"

    async def test_output_is_delivered_while_the_command_runs(self, sandbox: Sandbox, here: str) -> None:
        """`on_output` sees each piece soon, in order, and in sum the same as the result."""
        seen: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        news = asyncio.Event()

        def see(stream: str, data: bytes) -> None:
            seen[stream] += data
            news.set()

        async def answer() -> None:
            """Let each line be followed by the next only once it was seen."""
            for number in (1, 2, 3):
                while (
                    f"{number}\n".encode() not in seen["stdout"]
                    or f"e{number}\n".encode() not in seen["stderr"]
                ):
                    news.clear()
                    await news.wait()
                await sandbox.write_text(f"{here}/seen{number}", "")

        answering = asyncio.create_task(answer())
        script = "for i in 1 2 3; do echo $i; echo e$i >&2; until [ -e seen$i ]; do sleep 0.02; done; done"
        result = await sandbox.exec(script, cwd=here, on_output=see, timeout=100)
        answering.cancel()
        assert result.reason == "exit"
        assert seen["stdout"] == result.stdout == b"1\n2\n3\n"
        assert seen["stderr"] == result.stderr == b"e1\ne2\ne3\n"

    async def test_a_background_child_does_not_hold_exec_up(self, sandbox: Sandbox) -> None:
        """The result comes when the command ends, whoever still has its output open."""
        result = await sandbox.exec("sleep 300 & echo started", timeout=100)
        assert (result.stdout, result.exit_code, result.reason) == (b"started\n", 0, "exit")

    async def test_a_server_started_in_the_background_goes_on(self, sandbox: Sandbox, here: str) -> None:
        """It is not killed with the command that started it."""
        server = "(while :; do echo >>ticks; sleep 0.05; done) >/dev/null 2>&1 & echo $! >pid"
        await sandbox.exec(server, cwd=here)
        before = len(await wait_for_file(sandbox, f"{here}/ticks"))
        script = (
            f'until [ "$(wc -l <ticks)" -gt {before} ]; do sleep 0.05; done; kill $(cat pid); echo ticked'
        )
        assert (await sandbox.exec(script, cwd=here, timeout=60)).stdout == b"ticked\n"

    async def test_output_just_before_the_end_is_complete(self, sandbox: Sandbox) -> None:
        """A command's last words are never cut, however fast it exits."""
        for size in (1, 4096, 65_537, 300_000):
            result = await sandbox.exec(f"head -c {size} /dev/zero; exit 5")
            assert (result.stdout_total, result.exit_code) == (size, 5)

    async def test_silence_is_silent(self, sandbox: Sandbox) -> None:
        """No banner, no prompt, no text of any wrapper."""
        for command in ("true", ["true"], "set -x; { set +x; } 2>/dev/null"):
            result = await sandbox.exec(command)
            assert (result.stdout, result.stderr[:0]) == (b"", b"")
        assert (await sandbox.exec("true")).stderr == b""

    async def test_forged_protocol_lines_are_only_output(self, sandbox: Sandbox) -> None:
        """Text that looks like the end of a command does not end it."""
        script = "cat; printf 'X 1 0 0 0\\nE 1 1\\nE 1 2\\n' >&2; exit 6"
        result = await sandbox.exec(script, stdin=FORGED.encode() * 50)
        assert result.stdout == FORGED.encode() * 50
        assert result.stderr == b"X 1 0 0 0\nE 1 1\nE 1 2\n"
        assert result.exit_code == 6
