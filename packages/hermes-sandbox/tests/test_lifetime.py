"""When a sandbox is idle, and how it ends."""

import asyncio
from pathlib import Path

import pytest
from hermes_sandbox import Process, SandboxGone, SandboxSpec, Shell, Unavailable, create_sandbox
from hermes_sandbox.backends.local import LocalBackend
from sandbox_docker import eventually

UNTIL_STOPPED = "until [ -e stop ]; do sleep 0.05; done"
IDLE = 3600.0


@pytest.mark.parametrize("user", ["exec", "shell", "process"])
async def test_a_sandbox_in_use_is_not_idle(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the use is; and when nobody uses it any more it goes. The loop's clock is set on by hours."""
    loop = asyncio.get_running_loop()
    clock, ahead = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead)
    async with create_sandbox("local", SandboxSpec(idle=IDLE), quiet=True) as sandbox:
        shell, process = await sandbox.open_shell(), await sandbox.spawn(UNTIL_STOPPED)

        async def use() -> object:
            if user == "exec":
                return (await sandbox.exec(UNTIL_STOPPED)).exit_code
            return await _use(shell if user == "shell" else process)

        using = asyncio.create_task(use())
        await asyncio.sleep(0)
        ahead += 2 * IDLE
        (Path(sandbox.workdir) / "stop").touch()
        assert await using == 0
        assert (await sandbox.exec("echo here")).stdout == b"here\n"
        ahead += 2 * IDLE
        assert await eventually(lambda: not Path(sandbox.workdir).exists())
        with pytest.raises(SandboxGone, match="idle"):
            await sandbox.exec("true")


async def _use(user: Shell | Process) -> int | None:
    if isinstance(user, Process):
        return await user.wait()
    return (await user.run(UNTIL_STOPPED)).exit_code


@pytest.fixture
def out_of_reach() -> set[str]:
    """The sandboxes that cannot be deleted, each once."""
    return set()


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch, out_of_reach: set[str]) -> list[LocalBackend]:
    """The backends that were closed."""
    closed: list[LocalBackend] = []
    delete = LocalBackend.delete

    async def flaky(backend: LocalBackend, id: str) -> None:
        if id in out_of_reach:
            out_of_reach.remove(id)
            raise Unavailable("out of reach")
        assert backend not in closed
        await delete(backend, id)

    async def recorded(backend: LocalBackend) -> None:
        closed.append(backend)

    monkeypatch.setattr(LocalBackend, "delete", flaky)
    monkeypatch.setattr(LocalBackend, "close", recorded)
    return closed


async def test_a_sandbox_that_could_not_be_deleted_is_closed_again(
    closed: list[LocalBackend], out_of_reach: set[str]
) -> None:
    sandbox = await create_sandbox("local", quiet=True)
    out_of_reach.add(sandbox.id)
    with pytest.raises(Unavailable, match="out of reach"):
        await sandbox.close()
    assert (Path(sandbox.workdir).exists(), closed) == (True, [])
    with pytest.raises(SandboxGone, match="closed"):
        await sandbox.exec("true")
    await sandbox.close()
    await sandbox.close()
    assert (Path(sandbox.workdir).exists(), len(closed)) == (False, 1)


async def test_a_sandbox_that_nobody_closes_again_is_let_go(
    closed: list[LocalBackend], out_of_reach: set[str]
) -> None:
    with pytest.raises(Unavailable, match="out of reach"):
        async with create_sandbox("local", quiet=True) as sandbox:
            out_of_reach.add(sandbox.id)
    assert len(closed) == 1
    await LocalBackend().delete(sandbox.id)
