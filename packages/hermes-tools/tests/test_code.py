"""execute_code: scripts in the workspace that call tools."""

import asyncio
import shutil
from pathlib import Path

import pytest
from hermes_tools import HostWorkspace, ToolSession, call_tool, tool
from hermes_tools_calls import call, fail, succeed
from hermes_tools_waiting import LIMITS, ended, numbers

FOREVER = "import os, time\nprint(os.getpid(), file=open('running', 'w'), flush=True)\ntime.sleep(300)"


@pytest.fixture
def session(open_session):
    return open_session("code", "file", "terminal")


async def test_a_script_calls_tools(session, tmp_path: Path):
    code = """
from hermes_tools import write_file, read_file, terminal, search_files
for n in range(5):
    write_file(f"f{n}.txt", content=f"n={n}\\n" * n)
print(sum(read_file(f"f{n}.txt")["total_lines"] for n in range(5)))
print(terminal("echo $((6*7))")["output"].strip())
print(search_files(pattern="n=4")["total_count"], read_file("none")["error"])
"""
    result = await succeed(session, "execute_code", code=code)
    assert result["status"] == "success" and result["exit_code"] == 0 and result["tool_calls_made"] == 13
    assert result["output"] == f"10\n42\n4 File not found: {tmp_path}/none\n"


async def test_state_of_the_script(session, tmp_path: Path):
    await succeed(session, "terminal", command="mkdir sub; cd sub; echo 'X = 5' > mine.py")
    code = "import os, sys, mine; print(os.getcwd(), mine.X, __name__, sys.stdin.read() == '')\nprint('e', file=sys.stderr)"
    result = await succeed(session, "execute_code", code=code)
    assert result["output"] == f"{tmp_path}/sub 5 __main__ True\ne\n"
    assert list(tmp_path.glob("**/*.json")) == []


async def test_failures_are_shown(session):
    result = await succeed(session, "execute_code", code="x = 1\nraise ValueError('no')")
    assert result["status"] == "error" and result["exit_code"] == 1
    assert 'script.py", line 2' in result["output"] and "ValueError: no" in result["output"]
    assert (await succeed(session, "execute_code", code="exit(3)"))["exit_code"] == 3
    assert "SyntaxError" in (await succeed(session, "execute_code", code="("))["output"]


async def test_a_timeout_keeps_output_and_kills(session, tmp_path: Path):
    running = tmp_path / "running"
    for seconds in LIMITS:
        result = await call(session, "execute_code", code=f"print('begun')\n{FOREVER}", timeout=seconds)
        assert result["status"] == "timeout" and f"{seconds} seconds" in result["error"]
        if running.exists() and running.read_text():
            break
    assert result["output"] == "begun\n"
    await ended(await numbers(running))


async def test_cancelling_kills(session, tmp_path: Path):
    task = asyncio.create_task(call_tool("execute_code", {"code": FOREVER}, session))
    running = await numbers(tmp_path / "running")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(running)


async def test_threads_call_at_once(open_session):
    together = asyncio.Barrier(10)

    @tool
    async def slow(n: int) -> int:
        """Waits for nine others."""
        await together.wait()
        return n * n

    code = """
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import slow
with ThreadPoolExecutor(10) as pool:
    print(sum(r["result"] for r in pool.map(slow, range(10))))
"""
    session = open_session("code", slow)
    assert (await succeed(session, "execute_code", code=code))["output"] == "285\n"


async def test_output_that_looks_like_marks_and_much_of_it(session):
    code = "import sys\nsys.stdout.write('\\x1eabc 1\\x1e\\x1e' * 3)\nprint('é' * 3_000_000)\nprint('end', end='\\x1e')"
    result = await succeed(session, "execute_code", code=code)
    assert result["output"].startswith("\x1eabc 1\x1e\x1e\x1eabc") and result["output"].endswith("end\x1e")
    assert len(result["output"]) < 51_000 and result["full_output"]


async def test_large_calls_and_results(session, tmp_path: Path):
    code = """
from hermes_tools import write_file, read_file, terminal
print(write_file("big", "é\\x1e" * 300_000)["bytes_written"])
content = read_file("big")["content"]
print(len(content), len(terminal("head -c 45000 /dev/zero | tr '\\\\0' x")["output"]))
"""
    result = await succeed(session, "execute_code", code=code)
    assert result["output"] == "900000\n2037 45000\n", result


async def test_limits(open_session):
    session = open_session("code", "todo")
    code = "from hermes_tools import todo\nprint([todo().get('error') for _ in range(102)][99:])"
    result = await succeed(session, "execute_code", code=code)
    assert result["output"].startswith("[None, 'A script may call tools 100 times")
    missing = await succeed(session, "execute_code", code="from hermes_tools import execute_code")
    assert "ImportError" in missing["output"]
    assert "null byte" in await fail(session, "execute_code", code="a\0")


async def test_wrong_calls_are_told_to_the_script(session):
    code = "from hermes_tools import read_file\nprint(read_file(pth='x')['error'])\nread_file(1, 2, 3, 4)"
    output = (await succeed(session, "execute_code", code=code))["output"]
    assert "Did you mean 'path'" in output and "TypeError: read_file takes at most 3" in output


async def test_without_python(tmp_path: Path):
    class Bare(HostWorkspace):
        async def spawn(self, command, *, cwd=None, env=None):
            return await super().spawn(command, cwd=cwd, env={"PATH": str(tmp_path)})

    (tmp_path / "bash").symlink_to(shutil.which("bash"))
    async with Bare(tmp_path) as workspace, ToolSession(None, ["code"], workspace) as session:
        assert "no Python" in await fail(session, "execute_code", code="print(1)")


async def test_a_workspace_that_dies_under_a_script_passes_through(tmp_path: Path):
    class Gone(Exception):
        pass

    class Dying(HostWorkspace):
        async def read_bytes(self, path, *, offset=0, limit=None):
            raise Gone("lost")

    code = "from hermes_tools import read_file\nread_file('x')"
    async with Dying(tmp_path) as workspace, ToolSession(None, ["code", "file"], workspace) as session:
        with pytest.raises(Gone):
            await call_tool("execute_code", {"code": code}, session)
