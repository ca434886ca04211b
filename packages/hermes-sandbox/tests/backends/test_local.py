"""What the local backend alone promises."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hermes_sandbox import Mount, SandboxSpec, attach_sandbox, create_sandbox, get_backend
from hermes_sandbox.backend import Tree
from hermes_sandbox.backends import process_table
from hermes_sandbox.backends.local_process import LocalProcess
from hermes_sandbox.backends.process_table import members
from hermes_sandbox.testing.base import wait_for_file
from hermes_sandbox.testing.isolation_checks import WAYS_OUT
from sandbox_docker import eventually

UNMARKED = "env -i setsid bash -c 'echo $$ >draft; mv draft pid; exec sleep 3600'"


def dead(pid: int) -> bool:
    """Whether a process is dead, also where nobody has collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


async def test_nothing_of_the_hosts_environment_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_SECRET", "sesame")
    monkeypatch.setenv("WANTED", "yes")
    async with create_sandbox("local", quiet=True, pass_env=["WANTED"]) as sandbox:
        names = {line.partition(b"=")[0] for line in (await sandbox.exec("env")).stdout.splitlines()}
        shell = await sandbox.open_shell()
        names |= {line.partition(b"=")[0] for line in (await shell.run("env")).stdout.splitlines()}
    assert b"API_SECRET" not in names
    assert {b"WANTED", b"PATH", b"TASK_ROOT", b"HOME"} <= names


async def test_input_that_cannot_be_passed_on_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise KeyError("mine")

    async with create_sandbox("local", quiet=True) as sandbox:
        monkeypatch.setattr(LocalProcess, "write", fail)
        script = "echo $$ >draft; mv draft pid; exec cat"
        with pytest.raises(KeyError, match="mine"):
            await asyncio.wait_for(sandbox.exec(script, stdin=b"x"), 60)
        pid = Path(sandbox.root, "pid")
        assert not pid.exists() or await eventually(lambda: dead(int(pid.read_text())))


async def test_home_and_root_are_the_sandboxs_own_and_go_with_it() -> None:
    async with create_sandbox("local", SandboxSpec(workdir="/app"), quiet=True) as sandbox:
        assert sandbox.workdir == f"{sandbox.root}/app"
        result = await sandbox.exec('echo "$HOME $TASK_ROOT $PWD"; mktemp')
        home, root, here, temporary = result.output.split()
        assert home == root == sandbox.root
        assert here == sandbox.workdir
        assert Path(temporary).is_relative_to(Path(sandbox.root).parent)
        folder = Path(sandbox.root)
        await sandbox.spawn(UNMARKED)
        server = int(await wait_for_file(sandbox, "pid"))
    assert not folder.exists()
    assert await eventually(lambda: dead(server))


async def test_what_another_started_goes_too_where_the_owner_started_nothing() -> None:
    async with create_sandbox("local", quiet=True) as sandbox:
        other = await attach_sandbox("local", sandbox.id, quiet=True)
        await other.spawn(UNMARKED)
        server = int(await wait_for_file(other, "pid"))
    assert await eventually(lambda: dead(server))
    await other.detach()


def test_a_process_that_forks_and_ends_while_it_is_looked_at_hides_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "read; sleep 3600 >/dev/null 2>&1 & echo $!"
    with subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        look, child = process_table._look, 0

        def late(name: str) -> process_table.Entry | None:
            nonlocal child
            if name == str(parent.pid) and not child:
                child = int(parent.communicate(b"\n")[0])
            return look(name)

        monkeypatch.setattr(process_table, "_look", late)
        found = process_table.inhabitants("none/", tmp_path)
    assert child
    os.kill(child, signal.SIGKILL)
    assert found == {child}


async def test_rlimits_hold_for_every_command() -> None:
    async with create_sandbox("local", quiet=True, rlimits={"f": 64, "n": 50}) as sandbox:
        assert (await sandbox.exec("ulimit -n")).stdout == b"50\n"
        assert not (await sandbox.exec("head -c 1000000 /dev/zero >big")).ok
        shell = await sandbox.open_shell()
        assert (await shell.run("ulimit -n")).stdout == b"50\n"


def test_an_rlimit_is_a_letter() -> None:
    with pytest.raises(ValueError, match="ulimit"):
        get_backend("local", rlimits={"memory; rm": 1})


async def test_it_warns_once_that_there_is_no_isolation(caplog: pytest.LogCaptureFixture) -> None:
    from hermes_sandbox.backends import local

    local._warn_once.cache_clear()
    for _ in range(2):
        async with create_sandbox("local"):
            pass
    assert sum("without isolation" in record.message for record in caplog.records) == 1


async def test_a_tree_is_found_by_mark_group_and_descent() -> None:
    async with create_sandbox("local", quiet=True) as sandbox:
        process = await sandbox.spawn("env -i sleep 600 & setsid sleep 600 & sleep 600 & wait")
        mark = process._request.env["HERMES_MARK"]
        async with asyncio.timeout(60):
            while len(members(Tree(mark, process.pid))) != 4:
                await asyncio.sleep(0.02)
        await process.signal("KILL")
        assert await process.wait(60) == 128 + signal.SIGKILL


@pytest.mark.bwrap
async def test_bubblewrap_hides_the_host(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("seen")
    spec = SandboxSpec(mounts=[Mount(str(tmp_path), "/data")], network="none")
    async with create_sandbox("local", spec, isolation="bwrap") as sandbox:
        result = await sandbox.exec(
            "cat /data/shared; echo x 2>/dev/null >/data/new || echo refused; ls /home /var"
        )
        assert result.stdout.startswith(b"seenrefused\n")
        assert not (tmp_path / "new").exists()
        assert (await sandbox.exec("cat /etc/shadow")).exit_code == 1
        seen = (await sandbox.exec("cat /proc/[0-9]*/cmdline")).stdout
        assert b"bash" in seen
        assert Path("/proc/self/cmdline").read_bytes() not in seen
        assert set((await sandbox.exec(WAYS_OUT)).stdout.split()) <= {b"lo"}
        assert (await sandbox.exec("touch /app-file && mkdir /tests && echo ok")).stdout == b"ok\n"


@pytest.mark.bwrap
async def test_bubblewraps_processes_see_each_other() -> None:
    async with create_sandbox("local", isolation="bwrap") as sandbox:
        await sandbox.exec("sleep 3600 >/dev/null 2>&1 & echo $! >pid")
        shell = await sandbox.open_shell()
        assert (await shell.run("kill $(cat pid) && echo killed")).stdout == b"killed\n"
