"""Many sandboxes and commands at once, and cancellations at any moment: nothing hangs, mixes or is left."""

import asyncio
import random
import secrets
from contextlib import suppress
from typing import Any

import pytest
from hermes_sandbox import Sandbox, SandboxSpec, create_sandbox
from sandbox_docker import docker

BACKENDS = [
    pytest.param("local", SandboxSpec(), {"quiet": True}, id="local"),
    pytest.param("local", SandboxSpec(), {"isolation": "bwrap"}, id="bwrap", marks=pytest.mark.bwrap),
    pytest.param(
        "docker",
        SandboxSpec(image="hermes-test:bookworm", network="none", cpus=1),  # its floods leave others the rest
        {},
        id="docker",
        marks=pytest.mark.docker,
    ),
]
COUNT = "n=0; for f in /proc/[0-9]*/cmdline; do read -r -d '' a <$f && [ \"$a\" = {} ] && n=$((n+1)); done; echo $n"


def storm_script() -> tuple[str, str]:
    """A command that leaves its group and session, and the name by which its processes can be told from all others."""
    name = f"storm-{secrets.token_hex(4)}"  # without isolation those of other tests are seen too
    run = f"exec -a {name}"
    return name, f"({run} sleep 600) & ({run} setsid sleep 600) & {run} sleep 600"


async def remaining(sandbox: Sandbox, name: str) -> int:
    """How many of the storm's commands still run inside."""
    return int((await sandbox.exec(COUNT.format(name), timeout=100)).stdout)


@pytest.fixture(autouse=True)
def image(request: pytest.FixtureRequest) -> None:
    """Build the image where Docker is used."""
    if request.node.get_closest_marker("docker"):
        request.getfixturevalue("test_image")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("backend", "spec", "options"), BACKENDS)
async def test_cancelled_at_any_moment_nothing_is_left(
    backend: str, spec: SandboxSpec, options: dict[str, Any]
) -> None:
    """Commands, shell commands and uploads are cancelled after random pauses, in several tasks at once."""
    seed = random.Random(4)
    name, script = storm_script()
    async with create_sandbox(backend, spec, **options) as sandbox:

        async def storm() -> None:
            shell = await sandbox.open_shell()
            await shell.run("kept=yes")
            for _ in range(6):
                work: Any = seed.choice(
                    [
                        lambda: sandbox.exec(script),
                        lambda: sandbox.exec("cat >/dev/null; " + script, stdin=b"x" * 300_000),
                        lambda: shell.run(f"({script})"),
                        lambda: sandbox.exec("yes " + "storm" * 10),
                        lambda: sandbox.write_bytes("storm", b"x" * 1_000_000),
                    ]
                )
                task = asyncio.create_task(work())
                await asyncio.sleep(seed.choice([0, 0.001, 0.01, 0.05, 0.2]))
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            assert (await shell.run("echo $kept", timeout=60)).stdout == b"yes\n"
            await shell.close()

        await asyncio.gather(*(storm() for _ in range(4)))
        assert await remaining(sandbox, name) == 0
        assert (await sandbox.exec("echo fine")).stdout == b"fine\n"


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(900)
async def test_64_sandboxes_at_once_answer_and_leave_nothing(test_image: str) -> None:
    word = secrets.token_hex(4)
    spec = SandboxSpec(image=test_image, network="none", labels={"storm": word})

    async def one(number: int) -> None:
        async with create_sandbox("docker", spec) as sandbox:
            results = await asyncio.gather(*(sandbox.exec(f"echo {number}-{n}") for n in range(4)))
            assert [each.stdout for each in results] == [f"{number}-{n}\n".encode() for n in range(4)]

    await asyncio.gather(*(one(number) for number in range(64)))
    assert docker("ps", "-aq", "--filter", f"label=storm={word}") == ""


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(900)
async def test_hundreds_of_timeouts_in_one_sandbox(test_image: str) -> None:
    """Every one strikes, and after all of them nothing runs."""
    async with create_sandbox("docker", SandboxSpec(image=test_image, network="none")) as sandbox:
        name, script = storm_script()
        for _ in range(20):
            results = await asyncio.gather(*(sandbox.exec(script, timeout=0.3) for _ in range(12)))
            assert all(each.timed_out for each in results)
        assert await remaining(sandbox, name) == 0
