"""The terminal and process tools on this machine."""

import asyncio
from types import SimpleNamespace

import pytest
from hermes_tools import ResultBudget, call_tool
from hermes_tools.toolsets.terminal import processes
from hermes_tools.toolsets.terminal.processes import Background
from hermes_tools_calls import call, fail, succeed
from hermes_tools_waiting import LIMITS, ended, numbers, until

FOREVER = "sleep 300 & echo $$ $! > running; wait"


@pytest.fixture
def session(open_session):
    return open_session("terminal", terminal_timeout=60)


async def test_state_lasts_from_call_to_call(session, tmp_path):
    await succeed(session, "terminal", command="mkdir sub && cd sub && export X=1 && f() { echo f$X; }")
    result = await succeed(session, "terminal", command="f; pwd; echo e >&2; false")
    assert result == {"output": f"f1\n{tmp_path}/sub\ne\n", "exit_code": 1}


async def test_workdir_is_for_one_command(session, tmp_path):
    (tmp_path / "a b").mkdir()
    assert (await succeed(session, "terminal", command="pwd", workdir="a b"))["output"] == f"{tmp_path}/a b\n"
    assert (await succeed(session, "terminal", command="pwd"))["output"] == f"{tmp_path}\n"
    missing = await succeed(session, "terminal", command="echo no", workdir="none")
    assert missing["exit_code"] != 0 and "no\n" not in missing["output"]


async def test_a_timeout_keeps_output_and_shell(session):
    await succeed(session, "terminal", command="export X=7")
    for seconds in LIMITS:
        result = await call(session, "terminal", command="echo begun; sleep 300 | cat", timeout=str(seconds))
        assert result["exit_code"] == 124 and f"{seconds} seconds" in result["error"]
        if result["output"]:
            break
    assert result["output"] == "begun\n"
    assert (await succeed(session, "terminal", command="echo $X"))["output"] == "7\n"


async def test_a_timeout_is_no_failed_call(session):
    output = await call_tool("terminal", {"command": "sleep 60", "timeout": 0.2}, session)
    assert output.error is None and '"exit_code": 124' in output.text


async def test_cancelling_kills_what_runs(session, tmp_path):
    task = asyncio.create_task(call_tool("terminal", {"command": FOREVER}, session))
    running = await numbers(tmp_path / "running")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(running)
    assert (await succeed(session, "terminal", command="echo on"))["output"] == "on\n"


async def test_long_output_is_cut_in_the_middle_and_kept(session, workspace):
    result = await succeed(session, "terminal", command="seq 1 50000")
    assert len(result["output"]) < 51_000
    assert result["output"].startswith("1\n2\n") and result["output"].endswith("49999\n50000\n")
    assert "238,894 of 288,894" in result["output"] and result["full_output"] in result["output"]
    whole = await workspace.read_bytes(result["full_output"])
    assert whole == b"".join(b"%d\n" % n for n in range(1, 50_001))


async def test_output_beyond_all_bounds(session):
    result = await succeed(session, "terminal", command="head -c 30000000 /dev/zero | tr '\\0' x; echo end")
    assert result["output"].endswith("xend\n") and "left out" in result["output"]


async def test_a_small_budget_holds_for_the_terminal(open_session):
    session = open_session("terminal", budget=ResultBudget(per_result=3_000))
    output = await call_tool("terminal", {"command": "seq 1 5000"}, session)
    assert len(output.text) < 3_500 and "full_output" in output.text


async def test_odd_output_is_text(session):
    result = await succeed(
        session, "terminal", command=r"printf '\033[31mred\033[0m\377\0\033]0;title\007end'"
    )
    assert result["output"] == "red\ufffd\0end"


async def test_commands_get_no_input(session):
    assert (await succeed(session, "terminal", command="cat; echo done"))["output"] == "done\n"


@pytest.mark.parametrize("command", ["echo 'a", "if true", "((", "cat <<E\nx", ")", "\\"])
async def test_broken_syntax_ends_and_harms_nothing(session, command):
    await call(session, "terminal", command=command, timeout=5)
    assert (await succeed(session, "terminal", command="echo on"))["output"] == "on\n"


async def test_wrong_arguments(session):
    assert "null byte" in await fail(session, "terminal", command="a\0b")
    assert "timeout" in await fail(session, "terminal", command="true", timeout=-1)
    assert "Did you mean 'command'" in await fail(session, "terminal", comand="true")


async def test_a_long_script(session):
    script = "\n".join(f"x{n}={n}" for n in range(12_000)) + "\necho $x11999"
    assert (await succeed(session, "terminal", command=script))["output"] == "11999\n"


async def test_a_background_process_from_start_to_end(session, tmp_path):
    await succeed(session, "terminal", command="mkdir sub; cd sub")
    script = "pwd; while read x; do echo got:$x; done; echo bye; exit 5"
    started = await succeed(session, "terminal", command=script, background=True)
    assert started["session_id"] == "proc_1" and started["exit_code"] == 0
    one = {"session_id": "proc_1"}
    assert await succeed(session, "process", action="write", data="a\nb", **one) == {
        "session_id": "proc_1",
        "status": "running",
        "bytes_written": 3,
    }
    await succeed(session, "process", action="submit", data="c", **one)

    async def answered():
        polled = await succeed(session, "process", action="poll", **one)
        return polled["output_preview"].endswith("got:bc\n") and polled

    assert await until(answered) == {
        "session_id": "proc_1",
        "status": "running",
        "output_preview": f"{tmp_path}/sub\ngot:a\ngot:bc\n",
    }
    assert (await succeed(session, "process", action="wait", timeout=0.1, **one))["status"] == "timeout"
    await succeed(session, "process", action="close", **one)
    ended = await succeed(session, "process", action="wait", **one)
    assert (
        ended["status"] == "exited" and ended["exit_code"] == 5 and ended["output_preview"].endswith("bye\n")
    )
    log = await succeed(session, "process", action="log", offset=1, limit=2, **one)
    assert log["output"] == "got:a\ngot:bc" and log["total_lines"] == 4 and log["next_offset"] == 3
    assert (await succeed(session, "process", action="log", limit=1, **one))["output"] == "bye"
    assert "has exited" in await fail(session, "process", action="write", data="x", **one)
    listed = (await succeed(session, "process", action="list"))["processes"]
    assert [(item["session_id"], item["status"], item["exit_code"]) for item in listed] == [
        ("proc_1", "exited", 5)
    ]


async def test_killing(session, monkeypatch):
    monkeypatch.setattr(processes, "TERM_SECONDS", 0.2)
    await succeed(
        session, "terminal", command="trap '' TERM; echo up; sleep 300 & wait; sleep 300", background=True
    )

    async def shown():
        return (await succeed(session, "process", action="poll", session_id="proc_1"))["output_preview"]

    await until(shown)
    killed = await succeed(session, "process", action="kill", session_id="proc_1")
    assert killed["status"] == "killed" and killed["exit_code"] == 137
    again = await succeed(session, "process", action="kill", session_id="proc_1")
    assert again["status"] == "exited"


async def test_a_noisy_process_keeps_its_last_output(session):
    await succeed(session, "terminal", command="seq 1 200000", background=True)
    ended = await succeed(session, "process", action="wait", session_id="proc_1")
    assert ended["output_preview"].endswith("199999\n200000\n") and len(ended["output_preview"]) == 2_000
    log = await succeed(session, "process", action="log", session_id="proc_1", limit=3)
    assert log["output"] == "199998\n199999\n200000"


async def test_input_that_is_not_read_does_not_hold_the_call_up(open_session):
    session = open_session("terminal", terminal_timeout=0.5)
    await succeed(session, "terminal", command="sleep 300", background=True)
    error = await fail(session, "process", action="write", session_id="proc_1", data="x" * 1_000_000)
    assert "did not read" in error
    assert (await succeed(session, "process", action="kill", session_id="proc_1"))["status"] == "killed"


async def test_output_read_by_calls_beside_each_other_is_kept_once():
    class Handle:
        async def read(self, offset, limit):
            await asyncio.sleep(0)
            data = b"some output"[offset : offset + 4]
            return SimpleNamespace(data=data, next_offset=offset + len(data))

    item = Background("proc_1", Handle())
    await asyncio.gather(*(item.update() for _ in range(3)))
    assert item.text == "some output"


async def test_output_without_end_does_not_hold_a_look_at_it_up(monkeypatch):
    now = 0.0

    class Handle:
        async def read(self, offset, limit):
            nonlocal now
            now += 1.0
            return SimpleNamespace(data=b"y\n", next_offset=offset + 2)

    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: now))
    item = Background("proc_1", Handle())
    await item.update()
    assert item.text == "y\n" * int(processes.UPDATE_SECONDS)


async def test_a_shell_whose_folder_is_removed_goes_on(session, tmp_path):
    await succeed(session, "terminal", command="mkdir -p one/two; cd one/two; rm -r ../../one")
    assert (await succeed(session, "terminal", command="pwd"))["output"] == f"{tmp_path}\n"
    await succeed(session, "terminal", command="mkdir -p one/two; cd one/two")
    await succeed(session, "terminal", command="cd /; rm -r " + str(tmp_path / "one"), workdir=str(tmp_path))
    assert (await succeed(session, "terminal", command="pwd"))["output"] == f"{tmp_path}\n"


async def test_a_command_may_have_a_terminal_of_its_own(session):
    result = await succeed(session, "terminal", command="test -t 1 && echo 'a  b'; exit 3", pty=True)
    assert result == {"output": "a  b\n", "exit_code": 3}
    asking = {"command": "read -p 'name? ' x; echo got $x", "pty": True, "background": True}
    started = await succeed(session, "terminal", **asking)
    of = {"session_id": started["session_id"]}
    await succeed(session, "process", action="submit", data="bob", **of)
    await succeed(session, "process", action="wait", timeout=60, **of)
    assert "got bob" in (await succeed(session, "process", action="log", **of))["output"]
    await succeed(session, "terminal", command="mkdir bin; ln -s $(command -v mv) bin; export PATH=$PWD/bin")
    missing = await succeed(session, "terminal", command="true", pty=True)
    assert missing["exit_code"] == 127 and "util-linux" in missing["output"]


async def test_what_means_nothing_here_is_taken_all_the_same(session):
    more = {"notify_on_complete": True, "watch_patterns": ["x"], "background": True}
    assert "wait" in (await succeed(session, "terminal", command="true", **more))["output"]
    assert "no parameter 'other'" in await fail(session, "terminal", command="true", other=1)


async def test_wrong_process_calls(session):
    assert "session_id" in await fail(session, "process", action="poll")
    await succeed(session, "terminal", command="true", background=True)
    assert "Did you mean 'proc_1'" in await fail(session, "process", action="poll", session_id="proc_11")
    assert "data" in await fail(session, "process", action="write", session_id="proc_1")
    assert '"list"' in await fail(session, "process", action="listen")


async def test_processes_end_with_the_session(open_session, tmp_path):
    session = open_session("terminal")
    await succeed(session, "terminal", command=FOREVER, background=True)
    running = await numbers(tmp_path / "running")
    await session.close()
    await ended(running)
