"""What sandboxes cost, as ratios to what one would do without this package, in shuffled rounds of one run.

    python perf/sandbox.py [--rounds 30] [--only local,docker,ssh,singularity,cloud,import,transfer,lifecycle] [--json FILE]

Every row compares two ways of doing the same thing, timed alternately in random order, so that a busy machine
slows both alike. The figure is the ratio of the medians; the goal is that of the package's issue.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes_sandbox import Sandbox, SandboxSpec, create_sandbox

sys.path.insert(0, str(Path(__file__).parent.parent / "packages/hermes-sandbox/tests/support"))

IMAGE = "hermes-test:bookworm"
Work = Callable[[], Awaitable[object]]


@dataclass
class Row:
    name: str
    ratio: float
    goal: str
    ours_ms: float
    theirs_ms: float
    met: bool


async def run(*argv: str, stdin: bytes | None = None) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, said = await process.communicate(stdin)
    if process.returncode:
        raise RuntimeError(f"{argv}: {said.decode()}")
    return output


async def compare(ways: dict[str, Work], rounds: int) -> dict[str, float]:
    """Median seconds of each way, in rounds of random order; the first round warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        order = list(ways)
        random.shuffle(order)
        for name in order:
            begin = time.perf_counter()
            await ways[name]()
            if number:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(each) for name, each in times.items()}


def row(name: str, ours: float, theirs: float, most: float) -> Row:
    return Row(name, ours / theirs, f"<= {most}", ours * 1e3, theirs * 1e3, ours / theirs <= most)


def at_once(count: int, work: Work) -> Work:
    async def all_of_them() -> None:
        await asyncio.gather(*(work() for _ in range(count)))

    return all_of_them


async def commands(
    name: str, sandbox: Sandbox, theirs: Work, rounds: int, goals: dict[str, float]
) -> list[Row]:
    """exec, 32 execs at once and a shell command against another way to run `echo hi`."""
    shell = await sandbox.open_shell()
    ours: Work = lambda: sandbox.exec("echo hi")  # noqa: E731
    rows: list[Row] = []
    found = await compare({"ours": ours, "shell": lambda: shell.run("echo hi"), "theirs": theirs}, rounds)
    rows.append(row(f"{name}: exec", found["ours"], found["theirs"], goals["exec"]))
    rows.append(row(f"{name}: shell command", found["shell"], found["theirs"], goals["shell"]))
    if "parallel" in goals:
        found = await compare({"ours": at_once(32, ours), "theirs": at_once(32, theirs)}, max(3, rounds // 6))
        rows.append(row(f"{name}: 32 execs at once", found["ours"], found["theirs"], goals["parallel"]))
    return rows


async def local(rounds: int) -> list[Row]:
    async with create_sandbox("local", quiet=True) as sandbox:
        plain: Work = lambda: run("bash", "-c", "echo hi")  # noqa: E731
        return await commands("local", sandbox, plain, rounds, {"exec": 1.5, "shell": 1.0})


async def docker(rounds: int) -> list[Row]:
    async with create_sandbox("docker", SandboxSpec(image=IMAGE)) as sandbox:
        cli: Work = lambda: run("docker", "exec", sandbox.id, "bash", "-c", "echo hi")  # noqa: E731
        goals = {"exec": 0.15, "shell": 0.02, "parallel": 0.15}
        return await commands("docker", sandbox, cli, rounds, goals)


async def transfer(rounds: int) -> list[Row]:
    """100 MB up and down in Docker against `docker cp`."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sandbox = await stack.enter_async_context(create_sandbox("docker", SandboxSpec(image=IMAGE)))
        source, target = folder / "source", folder / "target"
        source.write_bytes(os.urandom(100_000_000))
        await sandbox.upload(source, "/data/there")
        few = max(3, rounds // 8)
        up = await compare(
            {
                "ours": lambda: sandbox.upload(source, "/data/ours"),
                "theirs": lambda: run("docker", "cp", str(source), f"{sandbox.id}:/data/theirs"),
            },
            few,
        )
        down = await compare(
            {
                "ours": lambda: sandbox.download("/data/there", target),
                "theirs": lambda: run("docker", "cp", f"{sandbox.id}:/data/there", str(target)),
            },
            few,
        )
        return [
            row("docker: 100 MB up, against docker cp", up["ours"], up["theirs"], 2.0),
            row("docker: 100 MB down, against docker cp", down["ours"], down["theirs"], 2.0),
        ]


async def lifecycle(rounds: int) -> list[Row]:
    """50 Docker sandboxes started, used and removed; nothing may be left."""
    times: list[float] = []

    async def one() -> None:
        begin = time.perf_counter()
        async with create_sandbox(
            "docker", SandboxSpec(image=IMAGE, network="none", labels={"perf": "yes"})
        ) as box:
            times.append(time.perf_counter() - begin)
            assert (await box.exec("echo hi")).stdout == b"hi\n"

    await asyncio.gather(*(one() for _ in range(50)))
    left = (await run("docker", "ps", "-aq", "--filter", "label=perf=yes")).split()
    times.sort()
    p50, p99 = statistics.median(times), times[-1]
    print(
        f"50 Docker sandboxes at once: ready after P50 {p50:.1f} s, P99 {p99:.1f} s, {len(left)} left behind"
    )
    return [Row("docker: sandboxes left of 50", float(len(left)), "0", p50 * 1e3, p99 * 1e3, not left)]


async def ssh(rounds: int) -> list[Row]:
    from sandbox_sshd import running_sshd  # the test suite's sshd on loopback

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-perf-")))
        # With SHLVL=2 the login shell skips ~/.bashrc, which would be measured instead of ssh.
        server = stack.enter_context(running_sshd(folder, sessions=100, config="SetEnv SHLVL=2\n"))
        sandbox = await stack.enter_async_context(create_sandbox("ssh", **server.options))
        to_host = (
            "ssh",
            "-F",
            "none",
            "-p",
            str(server.port),
            "-i",
            str(server.key),
            "-S",
            str(folder / "master"),
        )
        to_host += ("-o", f"UserKnownHostsFile={server.known_hosts}", "127.0.0.1")
        await run(*to_host[:-1], "-M", "-N", "-f", "-o", "ControlPersist=yes", to_host[-1])
        cli: Work = lambda: run(*to_host, "echo hi")  # noqa: E731
        try:
            return await commands("ssh", sandbox, cli, rounds, {"exec": 1.0, "shell": 0.3})
        finally:
            await run(*to_host, "-O", "exit")


async def singularity(rounds: int) -> list[Row]:
    image = os.environ.get("HERMES_SIF", f"docker-daemon:{IMAGE}")
    async with create_sandbox("singularity", SandboxSpec(image=image)) as sandbox:
        program = shutil.which("apptainer") or "singularity"
        cli: Work = lambda: run(  # noqa: E731
            program, "-q", "exec", "--pwd", "/", f"instance://hermes-{sandbox.id}", "bash", "-c", "echo hi"
        )
        return await commands("singularity", sandbox, cli, rounds, {"exec": 0.15, "shell": 0.02})


async def cloud(rounds: int) -> list[Row]:
    """The cloud backends against their SDKs, both as clients of the same local server, in a process of its own."""
    return [*await modal(rounds), *await daytona(rounds)]


@asynccontextmanager
async def cloud_server(name: str) -> AsyncIterator[None]:
    """A local server of a service's protocol, which this process's SDK then speaks to."""
    program = Path(__file__).parent.parent / f"packages/hermes-sandbox/tests/support/{name}_server.py"
    with tempfile.TemporaryDirectory() as folder:
        argv = (sys.executable, str(program), "--folder", folder)
        server = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        assert server.stdout is not None
        os.environ.update(json.loads(await server.stdout.readline())["env"])
        try:
            yield
        finally:
            server.terminate()
            await server.wait()


async def modal(rounds: int) -> list[Row]:
    async with cloud_server("modal"):
        import modal

        app = await modal.App.lookup.aio("perf", create_if_missing=True)
        image = modal.Image.from_registry(IMAGE)
        plain = await modal.Sandbox.create.aio("sleep", "infinity", app=app, image=image, timeout=3600)

        async def sdk() -> None:
            process = await plain.exec.aio("bash", "-c", "echo hi", text=False)
            said = await asyncio.gather(process.stdout.read.aio(), process.stderr.read.aio())
            assert (await process.wait.aio(), said) == (0, [b"hi\n", b""])

        try:
            async with create_sandbox("modal", SandboxSpec(image=IMAGE)) as sandbox:
                rows = await commands("modal", sandbox, sdk, rounds, CLOUD_GOALS)
        finally:
            await plain.terminate.aio()
        return [*rows, await creations("modal")]


async def daytona(rounds: int) -> list[Row]:
    async with cloud_server("daytona"):
        from daytona import AsyncDaytona, CreateSandboxFromImageParams

        async with AsyncDaytona() as client:
            plain = await client.create(CreateSandboxFromImageParams(image=IMAGE))

            async def sdk() -> None:
                done = await plain.process.exec("echo hi")
                assert (done.exit_code, done.result) == (0, "hi\n")

            try:
                async with create_sandbox("daytona", SandboxSpec(image=IMAGE)) as sandbox:
                    rows = await commands("daytona", sandbox, sdk, rounds, CLOUD_GOALS)
            finally:
                await plain.delete()
        return [*rows, await creations("daytona")]


CLOUD_GOALS = {"exec": 1.2, "shell": 1.2, "parallel": 1.0}


async def creations(name: str) -> Row:
    """86 sandboxes asked for at once; a deadlock would show as fewer that end."""
    times: list[float] = []

    async def one() -> None:
        begin = time.perf_counter()
        async with create_sandbox(name, SandboxSpec(image=IMAGE)) as box:
            assert (await box.exec("echo hi", timeout=300)).stdout == b"hi\n"
        times.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(900):
            await asyncio.gather(*(one() for _ in range(86)))
    took = time.perf_counter() - begin
    print(f"86 {name} sandboxes at once: {len(times)} ended within {took:.0f} s")
    return Row(
        f"{name}: sandboxes of 86 that ended",
        float(len(times)),
        "86",
        took * 1e3,
        took * 1e3,
        len(times) == 86,
    )


async def imports(rounds: int) -> list[Row]:
    """`import hermes_sandbox` over bare Python, in milliseconds."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    async def python(code: str) -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=environment)
        assert await process.wait() == 0

    found = await compare(
        {"ours": lambda: python("import hermes_sandbox"), "theirs": lambda: python("pass")}, rounds
    )
    more = found["ours"] - found["theirs"]
    await python(
        "import hermes_sandbox, sys; assert not {'modal', 'daytona', 'aiodocker', 'asyncssh'} & set(sys.modules)"
    )
    return [
        Row(
            "import, ms over bare Python",
            more * 1e3,
            "<= 100",
            found["ours"] * 1e3,
            found["theirs"] * 1e3,
            more <= 0.1,
        )
    ]


PARTS = {
    "import": imports,
    "local": local,
    "docker": docker,
    "transfer": transfer,
    "lifecycle": lifecycle,
    "ssh": ssh,
    "singularity": singularity,
    "cloud": cloud,
}


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    for part in arguments.only.split(","):
        try:
            rows += await PARTS[part](arguments.rounds)
        except Exception as error:
            print(f"{part}: not measured: {type(error).__name__}: {error}")
    print(f"\n{'':44} {'ratio':>8} {'goal':>8}  {'ours ms':>9} {'theirs ms':>9}")
    for each in rows:
        print(
            f"{each.name:44} {each.ratio:8.3f} {each.goal:>8}  {each.ours_ms:9.2f} {each.theirs_ms:9.2f}"
            f"  {'' if each.met else 'MISSED'}"
        )
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"\nload per processor at the end: {load:.1f}")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"load": load, "rows": [asdict(each) for each in rows]}, indent=2)
        )


if __name__ == "__main__":
    asyncio.run(main())
