"""Running commands: arguments, streams, environment, exit codes."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from hermes_sandbox import Sandbox
from hermes_sandbox.errors import CommandFailed, SandboxError
from hermes_sandbox.testing.base import Checks, lines

ODD_WORDS = [
    "",
    " ",
    "a b",
    "$HOME",
    "`id`",
    "it's",
    '"q"',
    "new\nline",
    "*",
    "\\",
    "-n",
    "ünï",
    "~",
    "a=b;c&d|e>f",
]
EVERY_BYTE = bytes(range(256)) * 4


class ExecChecks(Checks):
    """What `exec` means."""

    @pytest.mark.parametrize("code", [0, 1, 3, 42, 137, 255])
    async def test_exit_codes_are_exact_and_reported_as_an_exit(self, sandbox: Sandbox, code: int) -> None:
        """`exit 137` is an exit, not a signal."""
        result = await sandbox.exec(f"exit {code}")
        assert (result.exit_code, result.reason, result.timed_out) == (code, "exit", False)
        assert result.ok == (code == 0)

    async def test_streams_are_kept_apart(self, sandbox: Sandbox) -> None:
        """Standard output and standard error come back separately and in full."""
        result = await sandbox.exec("echo out; echo err >&2; echo out2")
        assert (result.stdout, result.stderr) == (b"out\nout2\n", b"err\n")
        assert (result.stdout_total, result.stderr_total, result.truncated) == (9, 4, False)

    async def test_merged_streams_keep_their_order(self, sandbox: Sandbox) -> None:
        """With `merge=True` both streams are one, in the order of writing."""
        result = await sandbox.exec("for i in {1..60}; do echo o$i; echo e$i >&2; done", merge=True)
        assert lines(result.stdout) == [f"{kind}{i}" for i in range(1, 61) for kind in "oe"]
        assert result.stderr == b""

    async def test_all_bytes_pass_in_both_directions(self, sandbox: Sandbox) -> None:
        """NUL, invalid UTF-8 and every other byte."""
        result = await sandbox.exec("cat; cat /dev/null >&2", stdin=EVERY_BYTE)
        assert result.stdout == EVERY_BYTE

    async def test_invalid_utf8_output_is_kept_as_bytes(self, sandbox: Sandbox) -> None:
        """Bytes that are no text are neither dropped nor replaced, on either stream."""
        result = await sandbox.exec(r"printf '\377\300\200'; printf '\376x\0y' >&2")
        assert (result.stdout, result.stderr) == (b"\xff\xc0\x80", b"\xfex\0y")

    async def test_a_string_is_a_bash_script(self, sandbox: Sandbox) -> None:
        """Arrays, process substitution, pipes and functions work."""
        script = 'a=(1 "2 3"); f() { echo "$#:${a[1]}"; }; f x y | cat <(echo first) -; [[ abc == a* ]] && echo yes'
        result = await sandbox.exec(script)
        assert (result.stdout, result.stderr, result.exit_code) == (b"first\n2:2 3\nyes\n", b"", 0)

    async def test_a_list_is_an_argv_that_no_shell_reads(self, sandbox: Sandbox) -> None:
        """Spaces, quotes, dollars, newlines, globs and empty arguments arrive as they are."""
        result = await sandbox.exec(["printf", "%s\\0", *ODD_WORDS])
        assert result.stdout == "".join(f"{word}\0" for word in ODD_WORDS).encode()

    async def test_heredocs_with_every_quote(self, sandbox: Sandbox) -> None:
        """The script is not wrapped in quotes or in a heredoc of somebody else."""
        text = "'single' \"double\" `tick` $dollar \\back EOF2\n\n  indented\tTab"
        result = await sandbox.exec(f"cat <<'EOF'\n{text}\nEOF")
        assert result.stdout == text.encode() + b"\n"

    async def test_a_megabyte_of_script(self, sandbox: Sandbox) -> None:
        """A script is not limited by the length of an argument."""
        result = await sandbox.exec(
            "x=0\n" + ": 'padding that is long enough to matter'\n" * 25_000 + "echo end"
        )
        assert (result.stdout, result.exit_code) == (b"end\n", 0)

    async def test_stdin_arrives_whole_and_ends(self, sandbox: Sandbox) -> None:
        """Bytes in, then end of file."""
        data = b"line\n" * 300_000
        result = await sandbox.exec("wc -c; cat; echo ended", stdin=data)
        assert lines(result.stdout) == [str(len(data)), "ended"]

    async def test_stdin_that_nobody_reads_does_not_hang(self, sandbox: Sandbox) -> None:
        """10 MB for a command that exits without reading."""
        result = await sandbox.exec("exit 4", stdin=bytes(10_000_000), timeout=100)
        assert (result.exit_code, result.reason) == (4, "exit")

    async def test_what_cannot_be_passed_on_is_refused_at_once(self, sandbox: Sandbox, here: str) -> None:
        """Text where bytes are needed, and a callback that nobody awaits: no command begins, nothing waits."""
        text: Any = "text"

        async def late(*_: object) -> None: ...

        nobody_waits: Any = late
        shell, process = await sandbox.open_shell(), await sandbox.spawn("exec cat")
        refused = (
            (sandbox.exec(f"touch {here}/ran; cat", stdin=text), "stdin must be bytes, not str"),
            (shell.run(f"touch {here}/ran; cat", stdin=text), "stdin must be bytes, not str"),
            (process.write(text), "data must be bytes, not str"),
            (sandbox.write_bytes(f"{here}/ran", text), "data must be bytes, not str"),
            (sandbox.exec(f"touch {here}/ran", on_output=nobody_waits), "plain function"),
            (shell.run(f"touch {here}/ran", on_output=nobody_waits), "plain function"),
        )
        for call, said in refused:
            with pytest.raises(TypeError, match=said):
                await asyncio.wait_for(call, 60)
        assert not await sandbox.exists(f"{here}/ran")
        await process.close_stdin()
        await shell.close()

    async def test_without_stdin_a_read_ends_at_once(self, sandbox: Sandbox) -> None:
        """No terminal, no inherited input."""
        result = await sandbox.exec("cat; read -r line || echo end of file", timeout=60)
        assert result.stdout == b"end of file\n"

    async def test_a_script_can_read_its_own_stdin(self, sandbox: Sandbox) -> None:
        """`read` and what follows it share the input exactly."""
        result = await sandbox.exec('read -r a; read -r b; echo "$b $a"; cat', stdin=b"1\n2\nrest")
        assert result.stdout == b"2 1\nrest"

    async def test_cwd_is_per_call(self, sandbox: Sandbox, here: str) -> None:
        """A given folder counts once; the default is the workdir; a relative one starts there."""
        assert (await sandbox.exec("pwd", cwd=here)).stdout == f"{here}\n".encode()
        assert (await sandbox.exec("cd /; pwd")).stdout == b"/\n"
        assert (await sandbox.exec(["pwd"])).stdout == f"{sandbox.workdir}\n".encode()

    async def test_a_missing_cwd_is_126(self, sandbox: Sandbox, here: str) -> None:
        """And says so on standard error."""
        result = await sandbox.exec("echo not here", cwd=f"{here}/none")
        assert (result.exit_code, result.stdout) == (126, b"")
        assert b"none" in result.stderr

    async def test_env_values_arrive_exactly(self, sandbox: Sandbox) -> None:
        """Newlines, quotes, equals signs, unicode, emptiness."""
        env = {f"V{n}": word for n, word in enumerate(ODD_WORDS)} | {"EQ": "a=b=c"}
        result = await sandbox.exec(["env", "-0"], env=env)
        found = dict(item.split(b"=", 1) for item in result.stdout.split(b"\0") if item)
        assert {name: found[name.encode()].decode() for name in env} == env
        assert (await sandbox.exec("echo ${V1-unset}")).stdout == b"unset\n"

    async def test_any_env_name_arrives(self, sandbox: Sandbox) -> None:
        """Also one that no shell can set, or not to this value. What no process can hold is refused."""
        env = {"MY-VAR": "a b", "a.b": "", "1st": "it's", "UID": "77", "RAW": "\udcff\udcfe", "PLAIN": "p"}
        result = await sandbox.exec(["env", "-0"], env=env)
        found = dict(item.split(b"=", 1) for item in result.stdout.split(b"\0") if item)
        assert {name: os.fsdecode(found[name.encode()]) for name in env} == env
        assert (await sandbox.exec("echo $PLAIN; exit 3", env=env)).output == "p\n"
        shell = await sandbox.open_shell(env={"RAW": "\udcff"})
        assert (await shell.run("printf %s $RAW")).stdout == b"\xff"
        await shell.close()
        for wrong in ("", "A=B", "A\0"):
            with pytest.raises(ValueError, match="no process can hold"):
                await sandbox.exec("true", env={wrong: "x"})

    async def test_the_hosts_environment_stays_out(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A secret of this process is not seen inside."""
        monkeypatch.setenv("HERMES_CONFORMANCE_SECRET", "hunter2")
        assert b"hunter2" not in (await sandbox.exec("env; cat /proc/self/environ")).stdout

    async def test_a_missing_program_is_127(self, sandbox: Sandbox) -> None:
        """As a string and as an argv; it is a result, not an exception."""
        for command in ("no-such-program-x", ["no-such-program-x", "1"]):
            result = await sandbox.exec(command)
            assert (result.exit_code, result.reason) == (127, "exit")
            assert b"no-such-program-x" in result.stderr

    async def test_a_file_that_cannot_be_executed_is_126(self, sandbox: Sandbox, here: str) -> None:
        """It exists but is no program."""
        await sandbox.write_bytes(f"{here}/plain", b"text", mode=0o644)
        assert (await sandbox.exec([f"{here}/plain"])).exit_code == 126

    async def test_what_the_kernel_refuses_is_126(self, sandbox: Sandbox, here: str) -> None:
        """A result on every backend, never an exception."""
        await sandbox.write_bytes(f"{here}/junk", b"\x7fELF\2\1\1" + bytes(100), mode=0o755)
        await sandbox.exec("ln -s loop loop", cwd=here)
        for argv in (["echo", "x" * 200_000], [f"{here}/junk"], [f"{here}/loop"]):
            assert (await sandbox.exec(argv)).exit_code == 126, argv[0]
        for cwd in (f"{here}/loop", "x" * 300, "x/" * 3000):
            assert (await sandbox.exec("true", cwd=cwd)).exit_code == 126, cwd[:9]

    async def test_a_script_that_names_no_interpreter_is_bashs(self, sandbox: Sandbox, here: str) -> None:
        """As when bash starts it."""
        await sandbox.write_text(f"{here}/script", "[[ $1 == b ]] && echo it is $1", mode=0o755)
        for argv in ([f"{here}/script", "b"], ["./script", "b"]):
            assert (await sandbox.exec(argv, cwd=here)).output == "it is b\n"

    async def test_set_e_and_early_exit(self, sandbox: Sandbox) -> None:
        """A script's own rules about failure hold."""
        assert (await sandbox.exec("set -e\nfalse\necho never")).stdout == b""
        assert (await sandbox.exec("echo before; exit 7; echo never")).exit_code == 7
        assert (await sandbox.exec("false\necho goes on")).stdout == b"goes on\n"

    async def test_a_syntax_error_is_a_result(self, sandbox: Sandbox) -> None:
        """An unterminated quote or block fails alone and harms nothing after it."""
        for broken in ("echo 'unterminated", "if true; then", "cat <<EOF\nno end", "(", "}"):
            assert (await sandbox.exec(broken, timeout=60)).reason == "exit"
        assert (await sandbox.exec("echo fine")).stdout == b"fine\n"

    async def test_output_without_a_final_newline(self, sandbox: Sandbox) -> None:
        """Nothing is added."""
        result = await sandbox.exec("printf a; printf b >&2")
        assert (result.stdout, result.stderr) == (b"a", b"b")

    async def test_another_user(self, sandbox: Sandbox) -> None:
        """`user=` switches; the next command is back."""
        self.need("other_user")
        name = self.features.other_user
        assert (await sandbox.exec("id -un", user=name)).stdout == f"{name}\n".encode()
        assert (await sandbox.exec("id -un")).stdout != f"{name}\n".encode()

    async def test_an_unknown_user_fails_without_running_anything(self, sandbox: Sandbox, here: str) -> None:
        """The command does not run as somebody else instead; it is a result, which names the user."""
        self.need("other_user")
        result = await sandbox.exec(f"touch {here}/ran", user="no-such-user-x", timeout=60)
        assert (result.exit_code, result.reason, result.stdout) == (126, "exit", b"")
        assert b"no-such-user-x" in result.stderr
        with pytest.raises(SandboxError, match="no-such-user-x"):
            await sandbox.open_shell(user="no-such-user-x")
        assert not await sandbox.exists(f"{here}/ran")

    async def test_check_raises_with_the_result(self, sandbox: Sandbox) -> None:
        """`check=True` turns a failure into an exception that holds everything."""
        with pytest.raises(CommandFailed, match="complaint") as caught:
            await sandbox.exec("echo complaint >&2; exit 9", check=True)
        assert caught.value.result.exit_code == 9

    async def test_32_at_once_get_their_own_results(self, sandbox: Sandbox) -> None:
        """Output, input and exit code belong together."""

        async def one(n: int) -> None:
            result = await sandbox.exec(f"cat; echo err{n} >&2; exit {n}", stdin=f"in{n}".encode() * 1000)
            assert (result.stdout, result.stderr) == (f"in{n}".encode() * 1000, f"err{n}\n".encode())
            assert result.exit_code == n

        await asyncio.gather(*(one(n) for n in range(32)))

    async def test_trusted_commands_ignore_what_the_sandbox_prepared(
        self, sandbox: Sandbox, here: str
    ) -> None:
        """A `BASH_ENV`, an exported function and a doctored PATH of earlier commands do not reach them."""
        await sandbox.write_bytes(f"{here}/cat", b"#!/bin/bash\necho doctored\n", mode=0o755)
        result = await sandbox.exec("echo real | cat; exit 3", trusted=True, timeout=60)
        assert (result.stdout, result.exit_code) == (b"real\n", 3)
        assert here not in (await sandbox.exec("echo $PATH", trusted=True, timeout=60)).output
