"""What goes wrong with SSH hosts, on a real sshd."""

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hermes_sandbox import AuthError, SandboxGone, SandboxSpec, Unavailable, create_sandbox, get_backend
from hermes_sandbox.testing.base import gone, wait_for_file
from sandbox_docker import eventually
from sandbox_sshd import Sshd, make_key, reserved_port, running_sshd

pytestmark = pytest.mark.ssh
T = TypeVar("T")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


async def test_a_cut_connection_loses_the_command_and_not_the_sandbox(sshd: Sshd) -> None:
    async with create_sandbox("ssh", **sshd.options) as sandbox:
        await sandbox.write_text("kept", "still here")
        running = asyncio.create_task(sandbox.exec("echo $$ >draft; mv draft pid; sleep 600"))
        pid = await wait_for_file(sandbox, "pid")
        sshd.cut()
        result = await asyncio.wait_for(running, 60)
        assert (result.reason, result.exit_code) == ("lost", None)
        assert (await sandbox.exec("cat kept", timeout=60)).stdout == b"still here"
        assert await gone(sandbox, int(pid))


async def test_commands_share_one_connection(sshd: Sshd) -> None:
    async with create_sandbox("ssh", **sshd.options) as sandbox:
        before = sshd.connected()
        await asyncio.gather(*(sandbox.exec("sleep 0.3") for _ in range(32)))
        shells = await asyncio.gather(*(sandbox.open_shell() for _ in range(4)))
        assert [(await shell.run("echo $((1 + 1))")).stdout for shell in shells] == [b"2\n"] * 4
        assert sshd.connected() == before


async def test_a_closed_sandbox_connects_no_more(sshd: Sshd) -> None:
    """What still runs for a lost command may want a connection that nobody would close."""
    sandbox = await create_sandbox("ssh", **sshd.options)
    await sandbox.close()
    with pytest.raises(SandboxGone, match="closed"):
        await sandbox._backend.list({})


async def test_an_unknown_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(AuthError, match="ssh-keyscan"):
        await create_sandbox("ssh", **sshd.options | {"known_hosts": tmp_path / "empty"})
    async with create_sandbox("ssh", **sshd.options | {"known_hosts": None, "verify_host": False}) as sandbox:
        assert (await sandbox.exec("echo trusting")).stdout == b"trusting\n"


async def test_a_changed_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    key = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"[127.0.0.1]:{sshd.port} {key}\n")
    with pytest.raises(AuthError, match="not trusted"):
        await create_sandbox("ssh", **sshd.options | {"known_hosts": tmp_path / "known"})


async def test_a_wrong_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "wrong")
    with pytest.raises(AuthError, match="refuses the login"):
        await create_sandbox("ssh", **sshd.options | {"keys": [tmp_path / "wrong"]})


async def test_nobody_listens(sshd: Sshd) -> None:
    with reserved_port() as port, pytest.raises(Unavailable, match="cannot connect"):
        await create_sandbox("ssh", **sshd.options | {"port": port})


async def test_a_host_that_says_nothing_is_given_up(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(Unavailable, match="did not answer within 1 s"):
            await create_sandbox("ssh", **sshd.options | {"port": port, "connect_timeout": 1.0})


async def test_through_a_jump_host(sshd: Sshd, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "inner") as inner:
        known = sshd.known_hosts.read_text() + inner.known_hosts.read_text()
        (tmp_path / "known").write_text(known)
        keys = [sshd.key, inner.key]
        options = inner.options | {
            "jump": f"root@127.0.0.1:{sshd.port}",
            "keys": keys,
            "known_hosts": tmp_path / "known",
        }
        async with create_sandbox("ssh", **options) as sandbox:
            assert (await sandbox.exec("echo through")).stdout == b"through\n"
            assert sshd.connections()


async def test_a_jump_host_is_never_taken_for_the_host_behind_it(sshd: Sshd) -> None:
    """Also where the first attempt got no further: a sandbox there would be on the wrong machine."""
    address = f"root@127.0.0.1:{sshd.port}"
    with reserved_port() as port:
        backend = get_backend("ssh", **sshd.options | {"jump": address, "port": port})
        try:
            for _ in range(2):
                with pytest.raises(Unavailable, match="cannot connect"):
                    await backend.create(SandboxSpec(), {})
        finally:
            await backend.close()


async def test_keys_of_an_agent(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        add = ["ssh-add", "-q", sshd.key]
        assert await eventually(lambda: subprocess.run(add, capture_output=True).returncode == 0)
        async with create_sandbox("ssh", **sshd.options | {"keys": (), "agent": True}) as sandbox:
            assert (await sandbox.exec("echo by agent")).stdout == b"by agent\n"
    finally:
        agent.terminate()
        agent.wait()


async def test_a_full_server_names_the_setting(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "few", sessions=1) as few:
        from hermes_sandbox.backend import Command

        backend = get_backend("ssh", **few.options)
        machine = await backend.create(SandboxSpec(), {})
        holder = await where_there_is_room(lambda: backend.open_process(machine, Command(("cat",))))
        with pytest.raises(Unavailable, match="MaxSessions"):
            await backend.open_process(machine, Command(("true",)))
        await holder.close()
        await where_there_is_room(lambda: backend.delete(machine.id))
        await backend.close()


async def where_there_is_room(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that opens a session, which the server refuses until it has seen the one before off."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Unavailable):
                return await call()
            await asyncio.sleep(0.05)
