"""ToolContext on a real rollout's sandbox."""

import asyncio
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from envs_clock import Clock
from envs_tools import call
from hermes_envs import HermesAgentLoop, Outcome, RolloutSpec, loop_agent, nop_agent, run_rollout
from hermes_envs.clients import ScriptedClient, Turn
from hermes_envs.context import NotBridged
from hermes_sandbox import SandboxSpec

ASK = [{"role": "user", "content": "go"}]
SPEC = RolloutSpec(messages=ASK, tools=["terminal"])


async def judged(reward, script=None, spec=SPEC):
    """Run a rollout whose reward function is `reward`; its own assertions must hold."""
    agent = loop_agent(ScriptedClient([*script, "done"])) if script else nop_agent
    rollout = await run_rollout(replace(spec, reward=reward), agent)
    assert rollout.outcome is Outcome.completed, rollout.failure
    return rollout


def terminal(command):
    return [call("terminal", json.dumps({"command": command}))]


async def test_the_documented_example_word_for_word():
    class Env:
        async def compute_reward(self, item, result, ctx):
            test = ctx.terminal("pytest -v")
            if test["exit_code"] == 0:
                return 1.0
            content = ctx.read_file(f"{root}/workspace/solution.py")
            if content.get("content"):
                return 0.5
            ctx.download_file("/remote/output.bin", f"{local}/output.bin")
            return 0.0

    async def reward(result, ctx):
        nonlocal root
        root = ctx.sandbox.workdir
        return await Env().compute_reward(None, result, ctx)

    root, local = "", "/proc/no_folder_can_be_made_here"
    passing = "mkdir bin; printf '#!/bin/sh\\nexit 0' > bin/pytest; chmod +x bin/pytest"
    solved = "mkdir -p workspace; echo 'x = 1' > workspace/solution.py"
    spec = replace(SPEC, sandbox=replace(SPEC.sandbox, env={"PATH": "bin:/usr/bin:/bin"}))
    assert (await judged(reward, [terminal(solved)], spec)).reward == 0.5
    assert (await judged(reward, [terminal("true")], spec)).reward == 0.0
    assert (await judged(reward, [terminal(passing)], spec)).reward == 1.0


async def test_terminal_tells_all_there_is():
    async def reward(result, ctx):
        done = ctx.terminal("echo out; echo err >&2; exit 3")
        assert (done["output"], done["exit_code"], done["error"]) == ("out\nerr\n", 3, None)
        begun = Path(ctx.sandbox.workdir, "begun")
        passing = asyncio.create_task(Clock().put_forward_once(begun.exists, 99.5))
        late = ctx.terminal("echo before; touch begun; sleep 1000", timeout=99.5)
        await passing
        assert (late["exit_code"], late["reason"], late["output"]) == (124, "timeout", "before\n")
        assert "99.5 s" in late["error"]
        big = ctx.terminal("head -c 3000000 /dev/zero | tr '\\0' x")
        assert (len(big["output"]), big["truncated"]) == (3_000_000, False)
        cut = ctx.terminal("head -c 3000000 /dev/zero", output_limit=1000)
        assert cut["truncated"]
        assert ctx.terminal("cat; pwd", stdin=b"in", cwd="/tmp", env={"A": "b"})["output"] == "in/tmp\n"
        killed = ctx.terminal("kill -9 $$")
        assert killed["exit_code"] == 137
        return 1.0

    await judged(reward)


async def test_the_verifiers_shell_is_clean_whatever_the_agent_left():
    spoil = (
        "export PATH=/nowhere LD_PRELOAD=/tmp/evil.so X=1; shopt -s expand_aliases; alias echo='false';"
        " echo() { builtin echo hacked; }; export -f echo; cd /; umask 0777"
    )

    async def reward(result, ctx):
        clean = ctx.terminal('echo "$LD_PRELOAD|$X|$(umask)"; pwd; command -v ls')
        assert clean["output"].splitlines()[0].startswith("||0")
        assert "0777" not in clean["output"]
        assert clean["output"].splitlines()[1] == ctx.sandbox.workdir
        assert clean["exit_code"] == 0
        agents = ctx.terminal('builtin echo "$X"; pwd', agent_shell=True)
        assert agents["output"].split() == ["1", "/"]
        return 1.0

    await judged(reward, [terminal(spoil)])


async def test_files_are_whole_and_raw():
    async def reward(result, ctx):
        text = "one\ntwo ünïcode\n" * 50_000
        assert ctx.write_file("deep/er/text.txt", text)["bytes_written"] == len(text.encode())
        for _ in range(2):  # a reader that shares the agent's would say "unchanged" the second time
            read = ctx.read_file("deep/er/text.txt")
            assert read["content"] == text
        assert read["size"] == len(text.encode())
        assert not read["binary"]
        data = bytes(range(256)) * 10
        ctx.write_file("data.bin", data, mode=0o755)
        assert ctx.read_bytes("data.bin") == data
        assert ctx.read_file("data.bin")["binary"]
        assert ctx.terminal("test -x data.bin")["exit_code"] == 0
        assert ctx.read_file("missing")["content"] is None
        assert "missing" in ctx.read_file("missing")["error"]
        with pytest.raises(FileNotFoundError):
            ctx.read_bytes("missing")
        home = ctx.terminal('printf %s "$HOME"')["output"]
        assert ctx.write_file("~/in-home.txt", "x")["path"] == f"{home}/in-home.txt"
        assert ctx.terminal("cat ~/in-home.txt")["output"] == "x"
        return 1.0

    await judged(reward)


@pytest.mark.parametrize(
    "left",
    ["mkfifo out", "ln -s /dev/zero out", "truncate -s 900G out", "mkdir out", "ln -s out out"],
)
async def test_what_the_policy_puts_in_a_files_place_is_in_the_result(left, tmp_path):
    async def reward(result, ctx):
        read = ctx.read_file("out")
        assert read["content"] is None and read["error"].endswith(": out")
        with pytest.raises(OSError):
            ctx.read_bytes("out")
        if not left.startswith("truncate"):  # that one is a file
            assert not ctx.download_file("out", tmp_path / "out")["success"]
        return 1.0

    await judged(reward, [terminal(left)])


@pytest.mark.parametrize(
    "left", ["mkdir out; ln -s /etc/passwd out/a", "mkdir out; mkfifo out/a", "touch out"]
)
async def test_what_the_policy_puts_into_a_folder_is_in_the_result(left, tmp_path):
    async def reward(result, ctx):
        (entry,) = ctx.download_dir("out", tmp_path / "out")
        assert not entry["success"] and entry["error"]
        return 1.0

    await judged(reward, [terminal(left)])


async def test_files_and_trees_are_carried_both_ways(tmp_path):
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a.txt").write_text("a")
    (tree / "sub" / "run.sh").write_text("echo hi")
    (tree / "sub" / "run.sh").chmod(0o755)
    (tree / "empty").touch()

    async def reward(result, ctx):
        assert ctx.upload_file(tree / "a.txt", "up/b.txt") == {
            "success": True,
            "path": "up/b.txt",
            "bytes": 1,
        }
        entries = ctx.upload_dir(tree, "copy")
        assert [(e["path"], e["bytes"]) for e in entries] == [
            ("copy/a.txt", 1), ("copy/empty", 0), ("copy/sub/run.sh", 7)
        ]  # fmt: skip
        assert ctx.terminal("./copy/sub/run.sh")["output"] == "hi\n"
        assert ctx.download_file("up/b.txt", tmp_path / "new" / "b.txt")["success"]
        assert (tmp_path / "new" / "b.txt").read_text() == "a"
        back = ctx.download_dir("copy", tmp_path / "back")
        assert [e["bytes"] for e in back] == [1, 0, 7]
        assert (tmp_path / "back" / "sub" / "run.sh").stat().st_mode & 0o111
        lost = ctx.download_file("nothing", tmp_path / "nothing")
        assert lost["success"] is False
        assert "nothing" in lost["error"]
        assert not (tmp_path / "nothing").exists()
        assert ctx.download_dir("nothing", tmp_path / "n2")[0]["success"] is False
        with pytest.raises(FileNotFoundError):
            ctx.upload_file(tmp_path / "absent", "x")
        with pytest.raises(NotADirectoryError):
            ctx.upload_dir(tmp_path / "absent", "x")
        return 1.0

    await judged(reward)


async def test_every_tool_is_there_whatever_the_group_drew():
    async def reward(result, ctx):
        assert "read_file" not in ctx.session.tools.tool_names
        ctx.write_file("a.py", "def needle():\n    pass\n")
        assert json.loads(ctx.call_tool("read_file", {"path": "a.py"}))["content"]
        assert ctx.call_tool("read_file", args={"path": "a.py"}) == ctx.call_tool(
            "read_file", arguments={"path": "a.py"}
        )
        assert "needle" in json.dumps(ctx.search("needle"))
        assert json.loads(ctx.call_tool("read_file", '{"path": "missing"}'))["error"]
        assert "error" in json.loads(ctx.call_tool("no_such_tool"))
        return 1.0

    await judged(reward)


async def test_the_agents_background_processes_are_seen():
    async def reward(result, ctx):
        listed = json.loads(ctx.call_tool("process", {"action": "list"}))
        assert "sleep 1000" in json.dumps(listed)
        return 1.0

    start = [call("terminal", '{"command": "sleep 1000", "background": true}')]
    await judged(reward, [start])


async def test_twins_are_awaited_and_awaits_work_beside():
    lock = asyncio.Lock()  # belongs to this loop

    async def reward(result, ctx):
        async with lock:
            first = await ctx.aio.terminal("echo 1")
            second = ctx.terminal("echo 2")
            many = await asyncio.gather(*(ctx.aio.terminal(f"echo {i}") for i in range(3, 6)))
        return float("".join(r["output"].strip() for r in (first, second, *many)) == "12345")

    assert (await judged(reward)).reward == 1.0


async def test_outside_a_reward_function_the_twins_are_named():
    async def prepare(session):
        from hermes_envs import ToolContext

        context = ToolContext(session)
        with pytest.raises(NotBridged, match=r"ctx\.aio"):
            context.terminal("true")
        assert (await context.aio.terminal("true"))["exit_code"] == 0

    await judged(lambda result, ctx: 1.0, spec=replace(SPEC, prepare=prepare))


async def test_cleanup_gives_the_sandbox_up_early():
    async def reward(result, ctx):
        ctx.cleanup()
        assert not os.path.exists(ctx.sandbox.workdir)  # noqa: PTH110
        ctx.cleanup()
        return 0.5

    assert (await judged(reward)).reward == 0.5


async def test_a_lost_sandbox_is_no_reward():
    async def reward(result, ctx):
        ctx.cleanup()
        return float(ctx.terminal("true")["exit_code"] == 0)

    rollout = await run_rollout(replace(SPEC, reward=reward), nop_agent)
    assert (rollout.outcome, rollout.reward) == (Outcome.infra_failed, None)
    assert rollout.failure.boundary == "sandbox"


async def test_a_slow_verifier_does_not_hold_up_other_rollouts():
    waits_for_others = "until [ -e others-went-on ]; do sleep 0.05; done"
    here = asyncio.get_running_loop().create_future()

    async def reward(result, ctx):
        here.set_result(ctx.sandbox.workdir)
        return float(ctx.terminal(waits_for_others, timeout=100)["exit_code"] == 0)

    async def policy(messages, tools):
        await asyncio.sleep(0.001)
        return Turn("x", tool_calls=(call("none"),))

    slow = asyncio.create_task(judged(reward))
    workdir = await here
    other = await HermesAgentLoop(ScriptedClient(policy), max_turns=50).run(ASK)
    assert other.turns_used == 50 and not slow.done()
    Path(workdir, "others-went-on").touch()
    assert (await slow).reward == 1.0


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_gigabyte_each_way(tmp_path):
    source, back = tmp_path / "big", tmp_path / "back"
    block = os.urandom(1 << 20)
    with source.open("wb") as file:
        for _ in range(1024):
            file.write(block)

    async def reward(result, ctx):
        assert ctx.upload_file(source, "big")["bytes"] == 1 << 30
        assert ctx.download_file("big", back)["bytes"] == 1 << 30
        return 1.0

    await judged(reward)
    digests = []
    for path in (source, back):
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    assert digests[0] == digests[1]


@pytest.mark.docker
async def test_the_same_in_a_container(tmp_path, test_image):
    (tmp_path / "in.bin").write_bytes(os.urandom(300_000))
    spoil = "export PATH=/nowhere X=1; echo evil > ~/.bashrc; cd /; echo agent > /root/by-agent"

    async def reward(result, ctx):
        clean = ctx.terminal('echo "[$X]"; pwd; python3 -c "print(6 * 7)"')
        assert clean["output"].splitlines() == ["[]", "/root", "42"]
        assert ctx.read_file("by-agent")["content"] == "agent\n"
        assert ctx.upload_file(tmp_path / "in.bin", "/data/in.bin")["success"]
        assert ctx.download_file("/data/in.bin", tmp_path / "out.bin")["bytes"] == 300_000
        assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "in.bin").read_bytes()
        assert ctx.read_file("~/by-agent")["path"] == "/root/by-agent"
        assert json.loads(ctx.call_tool("read_file", {"path": "/root/by-agent"}))["content"]
        late = ctx.terminal("sleep 30", timeout=1)
        assert late["exit_code"] == 124
        return 1.0

    spec = replace(
        SPEC, backend="docker", sandbox=SandboxSpec(image=test_image, workdir="/root", network="none")
    )
    await judged(reward, [terminal(spoil)], spec)
