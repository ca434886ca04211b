"""What the Docker backend alone promises, against a real daemon."""

import asyncio
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hermes_sandbox import (
    Dockerfile,
    ImageError,
    Mount,
    NamedNetwork,
    Sandbox,
    SandboxError,
    SandboxGone,
    SandboxSpec,
    SandboxStartError,
    Unavailable,
    Unsupported,
    create_sandbox,
)
from hermes_sandbox.backends.docker_config import CAPABILITIES
from hermes_sandbox.testing.base import wait_for_file
from sandbox_docker import PrivateDaemon, docker, eventually, private_daemon

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("test_image")]
IMAGE = "hermes-test:bookworm"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with create_sandbox("docker", SandboxSpec(image=IMAGE, network="none")) as made:
        yield made


async def test_containers_are_hardened(sandbox: Sandbox) -> None:
    config = json.loads(docker("inspect", sandbox.id))[0]["HostConfig"]
    assert config["CapDrop"] == ["ALL"]
    assert {each.removeprefix("CAP_") for each in config["CapAdd"]} == set(CAPABILITIES)
    assert config["SecurityOpt"] == ["no-new-privileges"]
    assert config["PidsLimit"] == 512
    assert config["Init"] is True
    assert not config["Privileged"]
    status = (await sandbox.exec("grep -E 'CapBnd|NoNewPrivs' /proc/self/status")).output
    assert "NoNewPrivs:\t1" in status
    assert (await sandbox.exec("mknod /tmp/disk b 8 0")).exit_code != 0


@pytest.mark.parametrize(
    ("field", "value"), [("gpus", 99), ("cpus", 4096), ("memory_mb", 1), ("pids", 1 << 40)]
)
async def test_a_limit_that_the_daemon_refuses_is_named_or_noted(field: str, value: int) -> None:
    label = secrets.token_hex(4)
    wanted = SandboxSpec(image=IMAGE, network="none", labels={"t": label}, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=f"cannot enforce {field}"):
        await create_sandbox("docker", wanted)
    assert docker("ps", "-aq", "--filter", f"label=t={label}") == ""
    async with create_sandbox("docker", replace(wanted, strict=False)) as box:
        assert box.unenforced == (field,)
        assert (await box.exec("echo here")).output == "here\n"


@pytest.mark.parametrize(
    ("spec", "kind", "said"),
    [
        ({"image": "BAD NAME"}, ImageError, "in lower case"),
        ({"image": ""}, ImageError, "needs an image"),
        (
            {"network": NamedNetwork("no-such-network")},
            SandboxStartError,
            "no-such-network.*docker network ls",
        ),
        (
            {"mounts": [Mount("/no/such/folder", "/x")]},
            SandboxStartError,
            "/no/such/folder.*the source is there",
        ),
        ({"user": "no-such-user"}, SandboxStartError, "no-such-user.*the image has"),
    ],
)
async def test_a_spec_that_cannot_start_has_its_remedy(
    spec: dict[str, Any], kind: type[SandboxError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        await create_sandbox("docker", SandboxSpec(**{"image": IMAGE, **spec}))


async def test_the_images_workdir_env_and_user_hold(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"FROM {IMAGE}\nRUN useradd -m worker && mkdir /job && chown worker /job\n"
        "ENV GREETING='hello there'\nUSER worker\nWORKDIR /job\nENTRYPOINT [\"false\"]\n"
    )
    async with create_sandbox("docker", SandboxSpec(image=Dockerfile(tmp_path))) as box:
        for result in (
            await box.exec('echo "$GREETING $PWD $(id -un)"'),
            await (await box.open_shell()).run('echo "$GREETING $PWD $(id -un)"'),
        ):
            assert result.stdout == b"hello there /job worker\n"
        await box.write_text("mine", "x")
        assert (await box.exec("stat -c %U mine")).stdout == b"worker\n"
        assert (await box.exec("id -un", user="root")).stdout == b"root\n"
        assert (await box.exec("id -un; echo $GREETING; pwd", trusted=True)).stdout == b"worker\n\n/job\n"
        with pytest.raises(PermissionError):
            await box.read_bytes("/etc/shadow")
        result = await box.exec("sleep 3600", user="root", timeout=0.3)
        assert result.timed_out
        assert (await box.exec("pgrep -x sleep")).exit_code == 1


async def test_a_working_folder_that_was_made_is_the_users(tmp_path: Path) -> None:
    async def owner(workdir: str, **fields: Any) -> str:
        spec = SandboxSpec(image=IMAGE, network="none", workdir=workdir, user="nobody", **fields)
        async with create_sandbox("docker", spec) as box:
            return (await box.exec("stat -c %U .; id -un")).output

    assert await owner("/new/folder") == "nobody\nnobody\n"
    assert await owner("/srv") == "root\nnobody\n"
    tmp_path.chmod(0o755)
    assert await owner("/in", mounts=[Mount(str(tmp_path), "/in")]) == "root\nnobody\n"


async def test_equal_contexts_are_built_once_even_at_once(tmp_path: Path) -> None:
    word = secrets.token_hex(8)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(
            f"FROM {IMAGE} AS base\nARG WORD\nCOPY . /in\nRUN echo {word} $WORD >/word && date +%N >/built\n"
            "FROM base AS more\nRUN touch /more\n"
        )
        (tmp_path / name / ".dockerignore").write_text("secret*\n")
        (tmp_path / name / "data").write_text("data")
        (tmp_path / name / f"secret-{name}").write_text(name)

    async def built(name: str, **options: object) -> str:
        spec = SandboxSpec(image=Dockerfile(tmp_path / name, args={"WORD": "w"}, **options))  # type: ignore[arg-type]
        async with create_sandbox("docker", spec) as box:
            return (await box.exec("cat /word /built; ls /in; ls /more 2>&1")).output

    first, second, third = await asyncio.gather(built("a"), built("b"), built("a", target="base"))
    assert first == second
    assert first.startswith(f"{word} w\n")
    assert "Dockerfile" in first
    assert "secret" not in first
    assert first.endswith("/more\n")
    assert "No such file" in third
    (tmp_path / "a" / "data").write_text("other data")
    assert await built("a") != first


async def test_an_image_that_is_here_is_pulled_where_that_is_asked_for() -> None:
    name = "localhost:1/hermes-test-pull:1"  # where nobody answers
    docker("tag", IMAGE, name)
    try:
        async with create_sandbox("docker", SandboxSpec(image=name)) as box:
            assert (await box.exec("echo here")).output == "here\n"
        with pytest.raises(ImageError, match="cannot pull"):
            await create_sandbox("docker", SandboxSpec(image=name), pull="always")
    finally:
        docker("rmi", name)


async def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo the reason; exit 7\n")
    with pytest.raises(ImageError, match=r"the reason") as caught:
        await create_sandbox("docker", SandboxSpec(image=Dockerfile(tmp_path)))
    assert "7" in str(caught.value)
    with pytest.raises(ImageError, match="no Dockerfile"):
        await create_sandbox("docker", SandboxSpec(image=Dockerfile(tmp_path / "nowhere")))


async def test_an_image_without_bash_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    label = secrets.token_hex(4)
    with pytest.raises(ImageError, match="needs bash"):
        await create_sandbox("docker", SandboxSpec(image=Dockerfile(tmp_path), labels={"t": label}))
    assert docker("ps", "-aq", "--filter", f"label=t={label}") == ""


async def test_an_image_without_tar_is_served_by_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN rm /bin/tar\n")
    tree = tmp_path / "tree"
    (tree / "sub dir").mkdir(parents=True)
    (tree / "sub dir" / "file").write_text("content")
    async with create_sandbox("docker", SandboxSpec(image=Dockerfile(tmp_path))) as box:
        await box.upload(tree, "/new/place")
        assert await box.read_text("/new/place/sub dir/file") == "content"
        await box.download("/new/place", tmp_path / "back")
        assert (tmp_path / "back" / "sub dir" / "file").read_text() == "content"
        await box.download("/new/place/sub dir/file", tmp_path / "one")
        assert (tmp_path / "one").read_text() == "content"


async def test_a_missing_image_is_an_image_error() -> None:
    with pytest.raises(ImageError, match="pull='never'"):
        await create_sandbox("docker", SandboxSpec(image="hermes-no-such:1"), pull="never")
    with pytest.raises(ImageError):
        await create_sandbox("docker", SandboxSpec())


async def test_a_named_network_joins_sandboxes() -> None:
    name = f"hermes-test-{secrets.token_hex(4)}"
    docker("network", "create", name)
    try:
        spec = SandboxSpec(image=IMAGE, network=NamedNetwork(name))
        async with create_sandbox("docker", spec) as one, create_sandbox("docker", spec) as two:
            await one.spawn("cd /; exec python3 -m http.server 8000")
            fetch = (
                "import urllib.request as r, time\nfor _ in range(250):\n  try: "
                f"print(r.urlopen('http://{one.id}:8000/').status); break\n  except OSError: time.sleep(0.2)"
            )
            assert (await two.exec(["python3", "-c", fetch], timeout=60)).stdout == b"200\n"
    finally:
        docker("network", "rm", name)
    with pytest.raises(SandboxStartError, match="not found"):
        await create_sandbox("docker", SandboxSpec(image=IMAGE, network=NamedNetwork("no-such-net")))


async def test_mounts_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text("seen")
    (tmp_path / "out").mkdir()
    mounts = [Mount(str(tmp_path / "in"), "/in"), Mount(str(tmp_path / "out"), "/out", read_only=False)]
    async with create_sandbox("docker", SandboxSpec(image=IMAGE, mounts=mounts)) as box:
        assert (await box.exec("cat /in/f; cp /in/f /out/f; touch /in/g")).exit_code != 0
    assert (tmp_path / "out" / "f").read_text() == "seen"


async def test_a_container_removed_in_the_middle_is_sandbox_gone(sandbox: Sandbox) -> None:
    shell = await sandbox.open_shell()
    process = await sandbox.spawn("sleep 3600")
    running = asyncio.create_task(sandbox.exec("echo >/begun; sleep 3600"))
    in_shell = asyncio.create_task(shell.run("echo >/in_shell; sleep 3600"))
    for evidence in ("/begun", "/in_shell"):
        await wait_for_file(sandbox, evidence)
    docker("rm", "-f", sandbox.id)
    for task in (running, in_shell):
        with pytest.raises(SandboxGone):
            await asyncio.wait_for(task, 60)
    assert await process.wait(60) == -1
    for call in (
        sandbox.exec("true"),
        sandbox.read_bytes("/etc/passwd"),
        sandbox.open_shell(),
        sandbox.spawn("true"),
    ):
        with pytest.raises(SandboxGone):
            await asyncio.wait_for(call, 60)
    await sandbox.close()


async def test_the_main_process_killed_from_inside_is_sandbox_gone(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxGone) as gone:
        await sandbox.exec("kill -TERM 1; sleep 600")
        await sandbox.exec("true")
    assert gone.value.ended_inside


@pytest.mark.parametrize("verb", ["kill", "stop"])
async def test_a_container_stopped_from_outside_did_not_end_itself(sandbox: Sandbox, verb: str) -> None:
    docker(verb, sandbox.id)
    with pytest.raises(SandboxGone) as gone:
        await sandbox.exec("true")
    assert not gone.value.ended_inside


async def test_everything_killed_inside_is_sandbox_gone(sandbox: Sandbox) -> None:
    """Also for the first call after it, which may come while the container is on its way out."""
    await sandbox.write_text("kept", "x")
    with pytest.raises(SandboxGone, match="create another"):
        await asyncio.wait_for(sandbox.exec("kill -9 -1; echo over"), 60)
    with pytest.raises(SandboxGone, match="create another"):
        await asyncio.wait_for(sandbox.read_bytes("kept"), 60)


async def test_a_full_disk_loses_no_output() -> None:
    spec = SandboxSpec(image=IMAGE, network="none")
    async with create_sandbox("docker", spec) as box:
        await box.exec("rm -rf /dev/shm/*; head -c 200000000 /dev/zero >/dev/shm/fill", check=False)
        with pytest.raises(OSError, match="No space left"):
            await box.write_bytes("/dev/shm/more", b"x" * 100_000)
        assert await box.read_bytes("/dev/shm/fill", limit=10) == bytes(10)
        result = await box.exec("cd /dev/shm && echo fine && echo x >y", cwd="/dev/shm")
        assert result.stdout == b"fine\n"
        assert b"No space left" in result.stderr


@pytest.mark.slow
async def test_a_fork_bomb_is_stopped_by_its_timeout() -> None:
    spec = SandboxSpec(image=IMAGE, pids=48, cpus=0.5, network="none")
    async with create_sandbox("docker", spec) as box:
        result = await asyncio.wait_for(box.exec("b() { b | b & }; b; sleep 600", timeout=1.5), 100)
        assert result.reason in ("timeout", "exit", "signal", "lost")
        assert (await asyncio.wait_for(box.exec("echo alive"), 100)).stdout == b"alive\n"


async def test_a_daemon_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="daemon"):
        await create_sandbox("docker", SandboxSpec(image=IMAGE), host="unix:///nowhere/docker.sock")


@pytest.fixture
def daemon(test_image: str) -> Iterator[PrivateDaemon]:
    with private_daemon(Path(tempfile.mkdtemp(prefix="hd-")), test_image) as running:
        yield running


@pytest.mark.slow
async def test_a_stopped_daemon_is_a_clear_error_and_a_restart_sandbox_gone(daemon: PrivateDaemon) -> None:
    spec = SandboxSpec(image=IMAGE, network="none")
    async with create_sandbox("docker", spec, host=daemon.host) as box:
        assert (await box.exec("echo hi")).stdout == b"hi\n"
        running = asyncio.create_task(box.exec("echo >begun; sleep 3600"))
        await wait_for_file(box, "begun")
        await asyncio.to_thread(daemon.stop)
        with suppress(Unavailable, SandboxGone):  # as good an answer
            assert (await asyncio.wait_for(running, 60)).reason in ("lost", "signal")
        with pytest.raises((Unavailable, SandboxGone)):
            await asyncio.wait_for(box.exec("true"), 60)
        await asyncio.to_thread(daemon.start)
        with pytest.raises(SandboxGone) as gone:
            await asyncio.wait_for(box.exec("true"), 60)
        assert not gone.value.ended_inside
    assert await eventually(lambda: docker("ps", "-aq", host=daemon.host) == "")
    async with create_sandbox("docker", spec, host=daemon.host) as other:
        assert (await other.exec("echo again")).stdout == b"again\n"


async def flood(sandbox: Sandbox) -> asyncio.Task[object]:
    """A command that writes without end, once its output flows."""
    flowing = asyncio.Event()
    task = asyncio.create_task(sandbox.exec("yes", timeout=100, on_output=lambda *_: flowing.set()))
    await asyncio.wait_for(flowing.wait(), 60)
    return task


async def test_a_sandbox_survives_an_agent_that_kills_by_name(sandbox: Sandbox) -> None:
    """What serves commands may die of it; the result then says so, and the next command is served again."""
    shell = await sandbox.open_shell()
    for name in ("bash", "dd", "cat", "sleep"):
        flooding = await flood(sandbox)
        await asyncio.wait_for(
            sandbox.exec(f"for i in {{1..20}}; do pkill -9 -x {name}; done", timeout=30), 60
        )
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)
        for number in range(3):
            result = await asyncio.wait_for(sandbox.exec(f"echo {number}"), 60)
            assert result.stdout == b"%d\n" % number
        assert (await asyncio.wait_for(shell.run("echo shell"), 60)).stdout in (b"shell\n", b"")
        assert (await asyncio.wait_for(shell.run("echo again"), 60)).stdout == b"again\n"
