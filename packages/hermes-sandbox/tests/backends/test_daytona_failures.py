"""What goes wrong at Daytona: the published SDK against a local server with faults injected."""

import asyncio
import json
import logging
import os
import sys
import traceback
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from daytona_server import (
    API_KEY,
    DaytonaServer,
    docker,
    make_certificate,
    running_daytona_server,
    trusting,
)
from hermes_sandbox import (
    Allow,
    AuthError,
    Dockerfile,
    ImageError,
    QuotaError,
    SandboxGone,
    SandboxSpec,
    SandboxStartError,
    Unavailable,
    Unsupported,
    attach_sandbox,
    create_sandbox,
    delete_snapshot,
    get_backend,
)
from hermes_sandbox.backends import creation
from hermes_sandbox.backends import daytona as adapter
from hermes_sandbox.backends.daytona_process import Ending
from hermes_sandbox.doctor import diagnose

pytestmark = [
    pytest.mark.docker,
    pytest.mark.usefixtures("test_image"),
    pytest.mark.asyncio(loop_scope="module"),
]
SPEC = SandboxSpec(image="hermes-test:bookworm")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DaytonaServer]:
    certificate = make_certificate(tmp_path_factory.mktemp("storage"))
    async with running_daytona_server(certificate=certificate) as server:
        yield server


@pytest.fixture
def options(server: DaytonaServer) -> dict[str, Any]:
    return {"api_key": API_KEY, "api_url": f"{server.url}/api"}


async def test_a_wrong_key_names_the_remedy_and_not_the_key(
    server: DaytonaServer, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = options | {"api_key": "dtn-wrong-key"}
    with pytest.raises(AuthError, match="DAYTONA_API_KEY") as caught:
        await create_sandbox("daytona", SPEC, **wrong)
    assert "dtn-wrong-key" not in "".join(traceback.format_exception(caught.value)) + caplog.text
    found = await diagnose("daytona", wrong, SPEC)
    assert (found.ok, "DAYTONA_API_KEY" in str(found), "dtn-wrong" in str(found)) == (False, True, False)
    backend = get_backend("daytona", **wrong)
    assert "dtn-wrong-key" not in repr(backend.options)  # type: ignore[attr-defined]
    assert not (await backend.preflight()).ok
    await backend.close()


async def test_a_missing_key_is_an_auth_error(server: DaytonaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AuthError, match="DAYTONA_API_KEY"):
        await create_sandbox("daytona", SPEC, api_url=f"{server.url}/api")


async def test_a_busy_service_is_tried_again(server: DaytonaServer, options: dict[str, Any]) -> None:
    server.faults.rate_limited_creates = 1
    async with create_sandbox("daytona", SPEC, **options) as sandbox:
        assert (await sandbox.exec("echo in")).stdout == b"in\n"
    assert server.faults.rate_limited_creates == 0


async def test_a_service_that_stays_busy_is_a_quota_error(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "FIRST_PAUSE_WHEN_FULL", 1e6)  # no time is left after that
    monkeypatch.setattr(server.faults, "rate_limited_creates", 1000)
    with pytest.raises(QuotaError):
        await create_sandbox("daytona", SPEC, **options)


async def test_a_cut_log_loses_the_command_and_not_the_sandbox(
    server: DaytonaServer, options: dict[str, Any]
) -> None:
    async with create_sandbox("daytona", SPEC, **options) as sandbox:
        begun = asyncio.Event()

        async def cut() -> None:
            await begun.wait()
            server.faults.cut_logs = 1
            await docker("exec", server.boxes[sandbox.id].container, "touch", "/cut")

        cutting = asyncio.create_task(cut())
        script = "echo begun; until [ -e /cut ]; do sleep 0.05; done; echo on; sleep 600"
        result = await sandbox.exec(script, timeout=100, on_output=lambda *_: begun.set())
        assert (result.reason, result.exit_code) == ("lost", None)
        await cutting
        assert server.faults.cut_logs == 0
        assert (await sandbox.exec("echo again", timeout=60)).stdout == b"again\n"


@pytest.mark.parametrize("loose", [1, 2])
async def test_a_log_may_be_split_anywhere(
    server: DaytonaServer, options: dict[str, Any], loose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK keeps so short a message until another comes, and after the last one none does."""
    monkeypatch.setattr(server.faults, "loose_bytes", loose)
    async with asyncio.timeout(100), create_sandbox("daytona", SPEC, **options) as sandbox:
        data = bytes(range(256)) * 257
        await sandbox.write_bytes("f", data)
        assert await sandbox.read_bytes("f") == data


async def test_a_removed_sandbox_is_gone(server: DaytonaServer, options: dict[str, Any]) -> None:
    sandbox = await create_sandbox("daytona", SPEC, **options)
    await docker("rm", "-f", server.boxes[sandbox.id].container)
    with pytest.raises(SandboxGone):
        for _ in range(3):
            await sandbox.exec("true", timeout=30)
    await sandbox.close()


async def test_images_that_cannot_be_had(
    server: DaytonaServer, options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ImageError, match="no-such-image"):
        await create_sandbox("daytona", replace(SPEC, image="localhost:1/hermes-no-such-image:1"), **options)
    with pytest.raises(ImageError):
        await create_sandbox("daytona", SandboxSpec(), **options)
    with pytest.raises(ImageError, match="no Dockerfile"):
        await create_sandbox("daytona", replace(SPEC, image=Dockerfile(tmp_path)), **options)
    (tmp_path / "Dockerfile").write_text("FROM hermes-test:bookworm\nADD --chown=1 note /note\n")
    with pytest.raises(Unsupported, match="COPY"):
        await create_sandbox("daytona", replace(SPEC, image=Dockerfile(tmp_path)), **options)
    (tmp_path / "Dockerfile").write_text("FROM hermes-test:bookworm\n# ADD x\nRUN echo built >/note\n")
    async with create_sandbox("daytona", replace(SPEC, image=Dockerfile(tmp_path)), **options) as sandbox:
        assert (await sandbox.exec("cat /note")).stdout == b"built\n"


async def test_limits_come_in_whole_units(server: DaytonaServer, options: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="memory_mb"):
        await create_sandbox("daytona", replace(SPEC, memory_mb=1500), **options)
    spec = replace(SPEC, memory_mb=2048, cpus=1, network=Allow(("example.org", "10.0.0.0/8")))
    async with create_sandbox("daytona", spec, **options) as sandbox:
        asked = server.boxes[sandbox.id].request
        assert (asked["memory"], asked["cpu"]) == (2, 1)
        assert (asked["domainAllowList"], asked["networkAllowList"]) == ("example.org", "10.0.0.0/8")


@pytest.mark.slow
async def test_creations_are_bounded(server: DaytonaServer, options: dict[str, Any]) -> None:
    server.faults.most_creating = 0

    async def one() -> bytes:
        async with create_sandbox("daytona", SPEC, **options, creations=3) as sandbox:
            return (await sandbox.exec("echo ok", timeout=60)).stdout

    assert await asyncio.gather(*(one() for _ in range(8))) == [b"ok\n"] * 8
    assert server.faults.most_creating <= 3


async def test_nobody_answers(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "FIRST_PAUSE", 0.01)
    with pytest.raises(Unavailable):
        await create_sandbox("daytona", SPEC, **options | {"api_url": "http://127.0.0.1:9/api"})


async def test_every_session_is_closed_whenever_the_backend_is(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK makes some in the background, a few turns of the loop after its client."""
    made: list[aiohttp.ClientSession] = []
    make = aiohttp.ClientSession.__init__

    def recorded(session: aiohttp.ClientSession, *args: Any, **named: Any) -> None:
        made.append(session)
        make(session, *args, **named)

    monkeypatch.setattr(aiohttp.ClientSession, "__init__", recorded)
    for turns in range(12):
        backend = get_backend("daytona", **options)
        listing = asyncio.ensure_future(backend.list({}))
        for _ in range(turns):
            await asyncio.sleep(0)
        listing.cancel()
        await backend.close()
        await asyncio.gather(listing, return_exceptions=True)
        assert [session for session in made if not session.closed] == [], f"after {turns} turns"
    assert made


async def test_what_is_wrong_is_named_with_its_remedy(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "FIRST_PAUSE_WHEN_FULL", 1e6)  # give up at once
    for status, said, kind, remedy in [
        (400, "Region the-moon is not available", SandboxStartError, "DAYTONA_TARGET"),
        (404, "Region the-moon not found", SandboxStartError, "DAYTONA_TARGET"),
        (403, "Total CPU quota exceeded", QuotaError, "reap daytona"),
        (429, "Too many requests", QuotaError, "run fewer"),
        (400, "Image must be specified with a tag", ImageError, "image's name"),
        (403, "Forbidden resource", AuthError, "DAYTONA_API_KEY"),
    ]:
        server.faults.refusals.append(("POST /api/sandbox", status, said))
        with pytest.raises(kind, match=remedy) as caught:
            await create_sandbox("daytona", SPEC, **options)
        assert said in str(caught.value)
        server.faults.refusals.append(("POST /api/sandbox", status, said))
        found = await diagnose("daytona", options, SPEC)
        assert (found.ok, said in str(found), remedy in str(found)) == (False, True, True)
    assert server.faults.refusals == []


async def test_calls_that_are_refused_once_are_made_again(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = server.faults.refusals
    monkeypatch.setattr(creation, "FIRST_PAUSE", 0.02)
    async with create_sandbox("daytona", SPEC, **options) as sandbox:
        tools = f"/toolbox/{sandbox.id}/process/session"
        refusals += [(f"POST {tools}", 429, "slower"), (f"POST {tools}", 502, "bad gateway")]
        assert (await sandbox.exec("echo out", trusted=True, timeout=60)).stdout == b"out\n"
        refusals += [("/input", 429, "slower"), ("/exec", 408, "timed out")]
        assert (await sandbox.exec("cat", stdin=b"in", trusted=True, timeout=60)).stdout == b"in"
        refusals += [("GET /api/sandbox", 502, "bad gateway"), ("GET /api/sandbox", 429, "slower")]
        backend = get_backend("daytona", **options)
        assert sandbox.id in {info.id for info in await backend.list({})}
        await backend.close()
        refusals += [(f"GET /api/sandbox/{sandbox.id}", 408, "timed out")]
        refusals += [(f"DELETE /api/sandbox/{sandbox.id}", 502, "bad gateway")]
    assert refusals == []
    assert sandbox.id not in server.boxes


@pytest.mark.parametrize("how", ["late", "cancelled"])
async def test_a_slow_creation_that_is_given_up_leaves_nothing(
    server: DaytonaServer, options: dict[str, Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    create = server._create

    async def recorded(wanted: dict[str, Any]) -> Any:
        box = await create(wanted)
        made.append(box.id)
        return box

    monkeypatch.setattr(server, "_create", recorded)
    monkeypatch.setattr(creation, "SETTLE", 60.0)
    monkeypatch.setattr(server.faults, "slow_create", 1.5)

    async def start() -> None:
        await create_sandbox("daytona", SPEC, **options, start_timeout=1.0 if how == "late" else 60.0)

    creating = asyncio.ensure_future(start())
    while not server.faults.creating and not creating.done():
        await asyncio.sleep(0.01)
    if how == "cancelled":
        creating.cancel()
    with pytest.raises(
        (Unavailable, asyncio.CancelledError), match="start_timeout" if how == "late" else None
    ):
        await creating
    assert made, "the service made none: the test shows nothing"
    assert not set(made) & set(server.boxes)


@pytest.mark.slow
async def test_much_data_goes_through_the_file_interface(
    server: DaytonaServer, options: dict[str, Any], tmp_path: Path
) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "f").write_bytes(data)
    calls = server.faults.calls
    async with create_sandbox("daytona", SPEC, **options) as sandbox:
        before = calls.get("bulk_upload", 0), calls.get("bulk_download", 0), calls.get("input", 0)
        await sandbox.write_bytes("a/b", data)
        assert await sandbox.read_bytes("a/b") == data
        await sandbox.upload(tmp_path / "f", "c/")
        await sandbox.download("c/f", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == data
        after = calls["bulk_upload"], calls["bulk_download"], calls["input"]
        assert (after[0] - before[0], after[1] - before[1]) == (2, 2)
        assert after[2] - before[2] < 25, "the bytes went through a command's input after all"
        assert (await sandbox.exec("ls -A /tmp")).stdout == b""
        with pytest.raises(IsADirectoryError):
            await sandbox.write_bytes("a", data)
        server.faults.refusals.append(("bulk-upload", 502, "bad gateway"))
        with pytest.raises(Unavailable):
            await sandbox.write_bytes("a/b", data)


@pytest.mark.slow
async def test_a_snapshot_brings_its_own_limits(server: DaytonaServer, options: dict[str, Any]) -> None:
    spec = replace(SPEC, cpus=1, memory_mb=1024)
    async with create_sandbox("daytona", spec, **options) as sandbox:
        await sandbox.write_text("/kept", "yes")
        saved = await sandbox.snapshot()
        async with create_sandbox("daytona", replace(spec, image=saved), **options) as copy:
            assert await copy.read_text("/kept") == "yes"
            assert server.boxes[copy.id].request["memory"] == 1
        larger = replace(spec, image=saved, memory_mb=4096)
        with pytest.raises(Unsupported, match=r"memory_mb .*has 1 processors, 1 GiB"):
            await create_sandbox("daytona", larger, **options)
        async with create_sandbox("daytona", replace(larger, strict=False), **options) as copy:
            assert copy.unenforced == ("memory_mb",)
        named = options | {"snapshot": saved.reference}
        async with create_sandbox("daytona", SandboxSpec(), **named) as copy:
            assert await copy.read_text("/kept") == "yes"
        await delete_snapshot(saved, **options)
        assert saved.reference not in server.snapshots
        with pytest.raises(ImageError, match=saved.reference):
            await create_sandbox("daytona", replace(spec, image=saved), **options)


async def test_a_sandbox_is_stopped_and_started_again(server: DaytonaServer, options: dict[str, Any]) -> None:
    sandbox = await create_sandbox("daytona", SPEC, **options)
    await sandbox.write_text("kept", "yes")
    await sandbox.detach()
    backend = get_backend("daytona", **options)
    assert isinstance(backend, adapter.DaytonaBackend)
    await backend.stop(sandbox.id)
    assert {info.id: info.running for info in await backend.list({})}[sandbox.id] is False
    with pytest.raises(SandboxGone, match=r"stopped; .*start"):
        await attach_sandbox("daytona", sandbox.id, **options)
    await backend.start(sandbox.id)
    assert server.boxes[sandbox.id].request["autoDeleteInterval"] == 0
    again = await attach_sandbox("daytona", sandbox.id, **options)
    assert await again.read_text("kept") == "yes"
    await again.close()
    assert sandbox.id not in server.boxes
    await backend.close()


WITH_CONTEXT = """
import asyncio, json, sys
from pathlib import Path
from hermes_sandbox import Dockerfile, SandboxSpec, create_sandbox
async def one(options, folder):
    async with create_sandbox("daytona", SandboxSpec(image=Dockerfile(Path(folder))), **options) as sandbox:
        return (await sandbox.exec("cat /note /d/a; pwd")).output
async def main(options, folder):
    print(json.dumps(await asyncio.gather(*(one(options, folder) for _ in range(3)))))
asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.slow
async def test_a_dockerfile_with_its_context_is_built_once(
    server: DaytonaServer, options: dict[str, Any], tmp_path: Path
) -> None:
    """In a process of its own: the SDK takes no storage whose certificate the system does not trust."""
    mark = uuid.uuid4().hex
    (tmp_path / "Dockerfile").write_text(
        "FROM hermes-test:bookworm\nCOPY note /note\nCOPY d /d\nWORKDIR /d\n"
    )
    (tmp_path / "note").write_text(f"{mark}\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("below\n")
    before = server.built
    argv = trusting(
        server.certificate, [sys.executable, "-c", WITH_CONTEXT, json.dumps(options), str(tmp_path)]
    )
    client = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await client.communicate()
    assert client.returncode == 0, err.decode()
    assert json.loads(out) == [f"{mark}\nbelow\n/d\n"] * 3
    assert server.built == before + 1


@pytest.mark.slow
async def test_a_command_that_runs_keeps_the_service_from_stopping_its_sandbox(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service counts requests alone; a sandbox whose process is gone is stopped, and so deleted."""
    monkeypatch.setattr(server, "minute", 12.0)
    monkeypatch.setattr(adapter, "SIGNS", 0.5)
    sandbox = await create_sandbox("daytona", replace(SPEC, idle=60), **options)
    assert (await sandbox.exec("sleep 15; echo through", timeout=60)).stdout == b"through\n"
    await sandbox.detach()
    async with asyncio.timeout(60):
        while sandbox.id in server.boxes:
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_a_sandbox_that_lived_for_too_long_is_gone(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await create_sandbox("daytona", replace(SPEC, lifetime=60), **options)
    assert server.boxes[sandbox.id].request["ttlMinutes"] == 2
    monkeypatch.setattr(server, "minute", 0.01)
    async with asyncio.timeout(60):
        with pytest.raises(SandboxGone):
            while True:
                await sandbox.exec("sleep 0.5", timeout=30)
    assert sandbox.id not in server.boxes
    await sandbox.close()


async def test_what_was_written_last_is_never_lost_however_late_it_comes(
    server: DaytonaServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with create_sandbox("daytona", SPEC, **options) as sandbox:
        monkeypatch.setattr(server.faults, "late_output", 0.4)
        result = await sandbox.exec("echo out; echo err >&2; exit 3", trusted=True, timeout=60)
        assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
        monkeypatch.undo()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_the_end_of_a_command_is_found_wherever_its_stream_is_cut(size: int) -> None:
    stream = b"\x1e out\x1eabc put\x1e" + b"\x1eabcd17." + b"late\x1eabcd1."
    ending, passed = Ending("abcd"), b""
    for begin in range(0, len(stream), size):
        passed += ending.pass_on(stream[begin : begin + size])
    assert (ending.code, passed + ending.rest()) == (17, b"\x1e out\x1eabc put\x1elate\x1eabcd1.")
    assert Ending("abcd").pass_on(b"out") == b"out"
    held = Ending("abcd")
    assert (held.pass_on(b"out\x1eab"), held.rest()) == (b"out", b"\x1eab")
