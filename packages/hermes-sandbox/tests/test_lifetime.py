"""When a sandbox is idle, and how it ends."""

import asyncio
from pathlib import Path

import pytest
from hermes_sandbox import Process, SandboxGone, SandboxSpec, Shell, Unavailable, create_sandbox
from hermes_sandbox.backends.local import LocalBackend
from sandbox_docker import eventually

UNTIL = "until [ -e {} ]; do sleep 0.05; done"


@pytest.mark.parametrize("user", ["exec", "shell", "process"])
async def test_a_sandbox_in_use_is_not_idle(user: str) -> None:
    """Whatever the use is; and when nobody uses it any more it goes."""
    idle = 0.4
    async with create_sandbox("local", SandboxSpec(idle=idle), quiet=True) as sandbox:
        holding = asyncio.create_task(sandbox.exec(UNTIL.format("go")))  # until the use has begun
        await asyncio.sleep(0)
        shell, process = await sandbox.open_shell(), await sandbox.spawn(UNTIL.format("stop"))

        async def use() -> object:
            if user == "exec":
                return (await sandbox.exec(UNTIL.format("stop"))).exit_code
            return await _use(shell if user == "shell" else process)

        using = asyncio.create_task(use())
        await asyncio.sleep(0)
        (Path(sandbox.workdir) / "go").touch()
        await holding
        await asyncio.sleep(3 * idle)
        (Path(sandbox.workdir) / "stop").touch()
        assert await using == 0
        assert await eventually(lambda: not Path(sandbox.workdir).exists())
        with pytest.raises(SandboxGone, match="idle"):
            await sandbox.exec("true")


async def _use(user: Shell | Process) -> int | None:
    if isinstance(user, Process):
        return await user.wait()
    return (await user.run(UNTIL.format("stop"))).exit_code


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[LocalBackend]:
    """The backends that were closed. The first sandbox to be deleted is out of reach once."""
    closed: list[LocalBackend] = []
    delete, failures = LocalBackend.delete, ["out of reach"]

    async def flaky(backend: LocalBackend, id: str) -> None:
        if failures:
            raise Unavailable(failures.pop())
        assert backend not in closed
        await delete(backend, id)

    async def recorded(backend: LocalBackend) -> None:
        closed.append(backend)

    monkeypatch.setattr(LocalBackend, "delete", flaky)
    monkeypatch.setattr(LocalBackend, "close", recorded)
    return closed


async def test_a_sandbox_that_could_not_be_deleted_is_closed_again(closed: list[LocalBackend]) -> None:
    sandbox = await create_sandbox("local", quiet=True)
    with pytest.raises(Unavailable, match="out of reach"):
        await sandbox.close()
    assert (Path(sandbox.workdir).exists(), closed) == (True, [])
    with pytest.raises(SandboxGone, match="closed"):
        await sandbox.exec("true")
    await sandbox.close()
    await sandbox.close()
    assert (Path(sandbox.workdir).exists(), len(closed)) == (False, 1)


async def test_a_sandbox_that_nobody_closes_again_is_let_go(closed: list[LocalBackend]) -> None:
    with pytest.raises(Unavailable, match="out of reach"):
        async with create_sandbox("local", quiet=True) as sandbox:
            pass
    assert len(closed) == 1
    await LocalBackend().delete(sandbox.id)
