"""Shells: a live bash whose state lasts, and that survives what its commands do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hermes_sandbox import Sandbox, Shell
from hermes_sandbox.testing.base import Checks, gone, lines, struck, wait_for_file

ENDINGS = {
    "exit": ("exit 5", 5),
    "kill -9": ("kill -9 $$", 137),
    "exec": ("exec bash -c 'exit 9'", 9),
    "set -e": ("set -e; false; echo never", 1),
}


class ShellChecks(Checks):
    """What `open_shell` gives."""

    @pytest_asyncio.fixture(loop_scope="class")
    async def shell(self, sandbox: Sandbox) -> AsyncIterator[Shell]:
        """A fresh shell."""
        shell = await sandbox.open_shell()
        yield shell
        await shell.close()

    async def test_state_lasts(self, shell: Shell, here: str) -> None:
        """Folder, variables, exports, functions, aliases and options."""
        await shell.run(
            f"cd {here}; plain='a b'; export OUT=1; f() {{ echo f:$1; }}; shopt -s expand_aliases; alias hi='echo alias'"
        )
        result = await shell.run("pwd; echo $plain; bash -c 'echo $OUT'; f x\nhi there")
        assert lines(result.stdout) == [here, "a b", "1", "f:x", "alias there"]
        assert shell.cwd == here
        assert (await shell.run("echo $?")).stdout == b"0\n"

    @pytest.mark.parametrize("settings", ["set +e", "set -e", "set -eo pipefail; trap 'true' EXIT"])
    async def test_the_last_status_lasts(self, shell: Shell, settings: str) -> None:
        """`$?` of the next command is the code of this one, also where that one ended the shell."""
        failures = {"false": 1, "false && true": 1, "! true": 1, "(exit 3)": 3, "f() { return 4; }; f": 4}
        failures |= {"if then": 2, "return 5": 5, "true | false && :": 1, "exit 6": 6}
        for number, (command, code) in enumerate(failures.items()):
            await shell.run(settings)
            assert (await shell.run(command, timeout=60)).exit_code == code, command
            call = {"cwd": "/"} if number % 3 == 1 else {"env": {"NEW": "1"}} if number % 3 == 2 else {}
            assert (await shell.run("echo $?", **call)).stdout == f"{code}\n".encode(), command  # type: ignore[arg-type]
            assert (await shell.run("echo $?")).stdout == b"0\n", command

    async def test_showing_what_bash_does_harms_nothing(self, shell: Shell) -> None:
        """Input, commands and traces may be shown among the output; they are not taken for the end."""
        for show in ("set -v", "exec 7>&1; BASH_XTRACEFD=7; set -x", "trap 'echo \"$BASH_COMMAND\"' DEBUG"):
            assert (await shell.run(show, timeout=60)).exit_code == 0
            result = await shell.run("kept=1; false", timeout=60)
            assert (result.exit_code, result.restarted) == (1, False), show
            assert "kept: 1" in lines((await shell.run("echo kept: $kept; set +xv", timeout=60)).stdout), show

    async def test_what_bash_says_between_commands_is_no_output(self, shell: Shell, here: str) -> None:
        """Prompts, however they are set, and the lines that bash itself is driven by."""
        rc = "PS1='\\[\\e]0;title\\a\\]\\u@\\h:\\w\\$ '\ntrap 'echo bye' EXIT\n"
        await shell.run(f"cd {here}; mkdir -p v/bin; echo \"PS1='(v) '; export PS1\" >v/bin/activate")
        await shell.run(f"cat >.bashrc <<'E'\n{rc}E")
        for setting in (
            ". v/bin/activate",
            "source .bashrc",
            "PS0=ps0 PS2=ps2 PROMPT_COMMAND='echo prompted; false'",
        ):
            assert (await shell.run(f"{setting}\necho set", timeout=60)).stdout == b"set\n"
            assert (await shell.run("echo 1\necho 2", cwd="/", env={"A": "b"})).stdout == b"1\n2\n", setting
        result = await struck(lambda timeout: shell.run("echo begun; sleep 600", timeout=timeout), b"begun")
        assert result.stdout == b"begun\n"
        result = await shell.run("set -v; echo hi", timeout=60)
        assert result.stdout.startswith(b"hi\n")
        for word in (b"hermes_end", b"hermes_begin", b"hermes_out", b"/dev/fd"):
            assert word not in result.stdout + (await shell.run("echo hi; set +v", timeout=60)).stdout
        result = await shell.run("set -e; echo last; false", timeout=60)
        assert (result.stdout, result.exit_code) == (b"last\nbye\n", 1)

    async def test_jobs_last(self, shell: Shell) -> None:
        """A job of one command is known to the next, and does not hold the first up."""
        result = await shell.run("sleep 300 & echo started", timeout=60)
        assert (result.reason, b"started" in result.stdout) == ("exit", True)
        assert b"sleep 300" in (await shell.run("jobs")).stdout
        assert (await shell.run("kill %1; wait %1 2>/dev/null; echo gone")).stdout.endswith(b"gone\n")

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_shell_that_ends_is_replaced(self, shell: Shell, here: str, ending: str) -> None:
        """The command has its code; the next one finds the folder and the exported variables again."""
        command, code = ENDINGS[ending]
        await shell.run(f"cd {here}; export KEPT='yes it is'; lost=1")
        result = await shell.run(f"echo last words; {command}", timeout=60)
        assert (result.exit_code, result.stdout) == (code, b"last words\n")
        after = await shell.run('pwd; echo "$KEPT"; echo "${lost-unset}"')
        assert lines(after.stdout)[:2] == [here, "yes it is"]

    async def test_set_e_means_what_it_means_to_bash(self, shell: Shell, here: str) -> None:
        """A failure that bash overlooks ends nothing; another one ends the shell with its code."""
        await shell.run(f"cd {here}; echo echo sourced >file; set -e; lost=1")
        overlooked = {"! true": 1, "false && true": 1, "false || (exit 0)": 0, "if false; then :; fi": 0}
        for command, code in overlooked.items():
            result = await shell.run(f"{command}", timeout=60)
            assert (result.exit_code, result.restarted, result.stdout) == (code, False, b""), command
        result = await shell.run('! true; . ./file; [[ $- == *e* ]] && echo "still on $lost"')
        assert result.stdout == b"sourced\nstill on 1\n"
        result = await shell.run("echo last; (exit 7); echo never", timeout=60)
        assert (result.stdout, result.exit_code, result.restarted) == (b"last\n", 7, True)
        assert (await shell.run('[[ $- == *e* ]]; echo "$? ${lost-unset}"; pwd')).stdout == (
            f"1 unset\n{here}\n".encode()
        )

    async def test_a_timeout_kills_the_command_not_the_shell(self, shell: Shell, here: str) -> None:
        """Variables that were never exported are still there."""
        await shell.run(f"cd {here}; private=still")
        result = await struck(lambda timeout: shell.run("echo begun; sleep 600", timeout=timeout), b"begun")
        assert (result.reason, result.exit_code, result.stdout) == ("timeout", None, b"begun\n")
        assert (await shell.run("echo $private; pwd")).stdout == f"still\n{here}\n".encode()

    async def test_a_timeout_ends_children_that_left(self, sandbox: Sandbox, shell: Shell, here: str) -> None:
        """Also in shells a session of its own is no way out."""
        script = (
            f": >{here}/pid; setsid bash -c 'echo $$ >{here}/pid; sleep 3600' & "
            f"until [ -s {here}/pid ]; do sleep 0.05; done; echo ready; sleep 600"
        )
        assert (await struck(lambda timeout: shell.run(script, timeout=timeout), b"ready")).timed_out
        assert await gone(sandbox, int(await sandbox.read_text(f"{here}/pid")))

    async def test_a_timeout_spares_earlier_jobs(self, shell: Shell, here: str) -> None:
        """A server started by an earlier command is not part of the one that timed out."""
        await shell.run("sleep 3600 & server=$!")
        assert (await shell.run("sleep 600", timeout=0.3)).timed_out
        assert (await shell.run("kill -0 $server && echo up; kill $server")).stdout == b"up\n"

    async def test_cancelling_kills_the_command_and_keeps_the_shell(
        self, sandbox: Sandbox, shell: Shell, here: str
    ) -> None:
        """The state is that from before the cancelled command."""
        await shell.run(f"cd {here}; private=still")
        task = asyncio.create_task(shell.run("echo >begun; sleep 600"))
        await wait_for_file(sandbox, f"{here}/begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await shell.run("echo $private", timeout=60)).stdout == b"still\n"

    async def test_a_failing_callback_ends_the_command_and_keeps_the_shell(
        self, sandbox: Sandbox, shell: Shell, here: str
    ) -> None:
        """What it raised is raised; what the command started does not go on."""

        def fail(*_: object) -> None:
            raise KeyError("mine")

        await shell.run(f"cd {here}; private=still")
        with pytest.raises(KeyError, match="mine"):
            await shell.run("sleep 600 & echo $! >pid; echo out; wait", on_output=fail, timeout=60)
        assert await gone(sandbox, int(await sandbox.read_text(f"{here}/pid")))
        assert (await shell.run("echo $private", timeout=60)).stdout == b"still\n"

    async def test_cwd_and_env_of_a_call_do_not_stick(self, shell: Shell, here: str) -> None:
        """They count for that command alone."""
        await shell.run("cd /; export V=mine")
        result = await shell.run("pwd; echo $V $W", cwd=here, env={"V": "other", "W": "w"})
        assert lines(result.stdout) == [here, "other w"]
        assert lines((await shell.run("pwd; echo $V ${W-unset}")).stdout) == ["/", "mine unset"]

    async def test_shells_are_independent(self, sandbox: Sandbox, shell: Shell, here: str) -> None:
        """Several at once, each with a state of its own."""
        other = await sandbox.open_shell(cwd=here, env={"WHO": "other"})
        await shell.run("WHO=first; cd /")
        both = await asyncio.gather(shell.run("sleep 0.1; echo $WHO; pwd"), other.run("echo $WHO; pwd"))
        assert [result.stdout for result in both] == [b"first\n/\n", f"other\n{here}\n".encode()]
        await other.close()

    async def test_output_is_interleaved_in_order(self, shell: Shell) -> None:
        """Both streams as one, in the order of writing."""
        result = await shell.run("for i in {1..60}; do echo o$i; echo e$i >&2; done")
        assert lines(result.stdout) == [f"{kind}{i}" for i in range(1, 61) for kind in "oe"]

    async def test_output_is_exact(self, shell: Shell) -> None:
        """No newline is added, no byte is lost, no prompt is seen."""
        assert (await shell.run(r"printf 'a\0\377b'")).stdout == b"a\0\xffb"
        assert (await shell.run("true")).stdout == b""
        result = await shell.run("head -c 3000000 /dev/zero", output_limit=1000)
        assert (result.stdout_total, len(result.stdout), result.exit_code) == (3_000_000, 1000, 0)

    async def test_markers_cannot_be_forged(self, shell: Shell) -> None:
        """Printing what looks like an ending ends nothing."""
        forged = "X 1 0 0 0\nE 1 1\n__EXIT__:0\n"
        result = await shell.run(
            f"printf '{forged}'; printf '{forged}' >&2; sleep 0.2; echo really; (exit 8)"
        )
        assert result.stdout == (forged * 2 + "really\n").encode()
        assert result.exit_code == 8

    async def test_broken_syntax_harms_one_command(self, shell: Shell) -> None:
        """An unterminated quote does not swallow what comes next."""
        await shell.run("kept=1")
        for broken in ("echo 'unterminated", "if true; then", "done", "cat <<EOF\nno end"):
            await shell.run(broken, timeout=60)
        assert (await shell.run("echo $kept fine")).stdout == b"1 fine\n"

    async def test_commands_cannot_eat_the_shells_own_input(self, shell: Shell) -> None:
        """Reading standard input meets its end, or the bytes that were given."""
        assert (await shell.run("cat; echo end", timeout=60)).stdout == b"end\n"
        assert (await shell.run("read -r a; echo got:$a; cat", stdin=b"one\ntwo")).stdout == b"got:one\ntwo"
        assert (await shell.run("echo next")).stdout == b"next\n"

    async def test_multi_line_scripts_and_heredocs(self, shell: Shell) -> None:
        """The same text means the same as in a script."""
        result = await shell.run("for x in a b; do\n  cat <<EOF\n$x 'q' \"d\"\nEOF\ndone\n# comment")
        assert result.stdout == b"a 'q' \"d\"\nb 'q' \"d\"\n"
