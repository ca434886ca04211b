"""What goes wrong at Modal: the published SDK against a local server with faults injected."""

import asyncio
import logging
import os
import time
import traceback
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from grpclib import Status
from hermes_sandbox import (
    Allow,
    AuthError,
    Dockerfile,
    ImageError,
    QuotaError,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxStartError,
    Unavailable,
    Unsupported,
    attach_sandbox,
    create_sandbox,
    get_backend,
)
from hermes_sandbox.backends import creation, modal_process
from hermes_sandbox.doctor import diagnose
from hermes_sandbox.testing.base import struck, wait_for_file
from modal_proto.api_pb2 import GenericResult, NetworkAccess
from modal_server import TOKEN_ID, TOKEN_SECRET, ModalServer, docker, running_modal_server

pytestmark = [
    pytest.mark.docker,
    pytest.mark.usefixtures("test_image"),
    pytest.mark.asyncio(loop_scope="module"),
]
SPEC = SandboxSpec(image="hermes-test:bookworm")
BLOCKED = NetworkAccess.BLOCKED
OPTIONS = {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[ModalServer]:
    async with running_modal_server() as server:
        saved = dict(os.environ)
        os.environ.update(MODAL_SERVER_URL=server.url, MODAL_CONFIG_PATH="/nonexistent")
        yield server
        os.environ.clear()
        os.environ.update(saved)


async def test_broken_streams_are_resumed_without_a_byte_lost(server: ModalServer) -> None:
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        server.faults.unavailable_reads = 4
        result = await sandbox.exec("seq 1 200000; seq 1 1000 >&2", output_limit=None, timeout=60)
        assert result.stdout == b"".join(b"%d\n" % n for n in range(1, 200_001))
        assert result.stderr == b"".join(b"%d\n" % n for n in range(1, 1001))
        assert server.faults.unavailable_reads < 4


async def test_a_full_service_is_tried_again(server: ModalServer) -> None:
    server.faults.exhausted_creates = 2
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        assert (await sandbox.exec("echo in")).stdout == b"in\n"
    assert server.faults.exhausted_creates == 0


async def test_a_service_that_stays_full_is_a_quota_error(
    server: ModalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "FIRST_PAUSE_WHEN_FULL", 1e6)  # no time is left after that
    monkeypatch.setattr(server.faults, "exhausted_creates", 1000)
    with pytest.raises(QuotaError, match="higher limit"):
        await create_sandbox("modal", SPEC, **OPTIONS)


async def test_wrong_credentials_name_the_remedy_and_no_token(
    server: ModalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = OPTIONS | {"token_secret": "as-wrong-secret"}
    with pytest.raises(AuthError, match="MODAL_TOKEN_ID") as caught:
        await create_sandbox("modal", SPEC, **wrong)
    shown = "".join(traceback.format_exception(caught.value))
    assert "as-wrong-secret" not in shown + caplog.text
    assert not [record for record in caplog.records if record.name.startswith("hpack")]
    backend = get_backend("modal", **wrong)
    assert "as-wrong-secret" not in repr(backend.options)  # type: ignore[attr-defined]
    assert not (await backend.preflight()).ok


async def test_a_missing_image_and_a_failing_build_are_image_errors(
    server: ModalServer, tmp_path: Path
) -> None:
    with pytest.raises(ImageError, match="no-such-image"):
        await create_sandbox("modal", replace(SPEC, image="localhost:1/hermes-no-such-image:1"), **OPTIONS)
    (tmp_path / "Dockerfile").write_text("FROM hermes-test:bookworm\nRUN echo this fails && exit 3\n")
    with pytest.raises(ImageError):
        await create_sandbox("modal", replace(SPEC, image=Dockerfile(tmp_path)), **OPTIONS)


async def test_a_dockerfile_with_its_context_is_built(server: ModalServer, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        "FROM hermes-test:bookworm\nCOPY note /note\nENV MADE=here\nWORKDIR /note.d\n"
    )
    (tmp_path / "note").write_text("from the context")
    async with create_sandbox("modal", replace(SPEC, image=Dockerfile(tmp_path)), **OPTIONS) as sandbox:
        assert (
            await sandbox.exec("cat /note; echo; echo $MADE; pwd")
        ).stdout == b"from the context\nhere\n/note.d\n"


@pytest.mark.parametrize(
    "status", [GenericResult.GENERIC_STATUS_TIMEOUT, GenericResult.GENERIC_STATUS_TERMINATED]
)
async def test_an_expired_sandbox_is_gone(server: ModalServer, status: Any) -> None:
    sandbox = await create_sandbox("modal", SPEC, **OPTIONS)
    await server.terminate(server.boxes[sandbox.id], status)
    with pytest.raises(SandboxGone):
        await sandbox.exec("true", timeout=60)
    await sandbox.close()


async def test_a_container_that_dies_in_the_middle_loses_the_command(server: ModalServer) -> None:
    sandbox = await create_sandbox("modal", SPEC, **OPTIONS)
    running = asyncio.create_task(sandbox.exec("echo >/begun; sleep 600", timeout=100))
    await wait_for_file(sandbox, "/begun")
    await docker("rm", "-f", server.boxes[sandbox.id].container)
    try:
        assert (await running).reason in ("lost", "signal")
    except SandboxGone as error:
        assert "ended" in str(error) or "gone" in str(error)
    await sandbox.close()


@pytest.mark.parametrize("gpus", [None, 2])
async def test_everything_asked_for_reaches_the_service(server: ModalServer, gpus: int | None) -> None:
    """What has a GPU is of Modal's first generation still, which has calls of its own."""
    spec = replace(
        SPEC, cpus=1.5, memory_mb=256, gpus=gpus, lifetime=600, idle=90, workdir="/made", user="nobody"
    )
    given = OPTIONS | {"gpu": "A100", "region": ["us-east", "eu-west"], "secrets": ["good-secret"]}
    spec = replace(spec, network="none", env={"SPEC": "a b"}, labels={"of": f"test-{gpus}"})
    async with create_sandbox("modal", spec, **given) as sandbox:
        asked = server.boxes[sandbox.id].definition
        limits = asked.resources
        assert (limits.milli_cpu, limits.milli_cpu_max) == (1500, 1500)
        assert (limits.memory_mb, limits.memory_mb_max) == (256, 256)
        assert (limits.gpu_config.gpu_type, limits.gpu_config.count) == (("A100", 2) if gpus else ("", 0))
        assert (asked.timeout_secs, asked.idle_timeout_secs) == (660, 90)
        assert list(asked.scheduler_placement.regions) == ["us-east", "eu-west"]
        assert asked.network_access.network_access_type == BLOCKED
        result = await sandbox.exec("pwd; id -un; echo $SECRET $SPEC", timeout=60)
        assert result.stdout == b"/made\nnobody\nvalue a b\n"
        backend = get_backend("modal", **OPTIONS)
        assert [info.id for info in await backend.list({"of": f"test-{gpus}"})] == [sandbox.id]
        await backend.close()
        other = await attach_sandbox("modal", sandbox.id, **OPTIONS)
        assert (await other.exec("pwd", timeout=60)).stdout == b"/made\n"
        await other.detach()
    assert server.boxes[sandbox.id].result is not None


async def test_what_is_wrong_is_named_with_its_remedy(server: ModalServer) -> None:
    with pytest.raises(SandboxStartError, match="the option region"):
        await create_sandbox("modal", SPEC, **OPTIONS, region="the-moon")
    with pytest.raises(SandboxStartError, match="make the secret"):
        await create_sandbox("modal", SPEC, **OPTIONS, secrets=["no-such"])
    found = await diagnose("modal", OPTIONS | {"region": "the-moon"}, SPEC)
    assert (found.ok, "the option region" in str(found)) == (False, True)
    found = await diagnose("modal", OPTIONS, replace(SPEC, image="localhost:1/hermes-no-such-image:1"))
    assert (found.ok, "hermes-no-such-image" in str(found)) == (False, True)
    found = await diagnose("modal", OPTIONS | {"token_secret": "as-wrong-secret"}, SPEC)
    assert (found.ok, "MODAL_TOKEN_ID" in str(found), "as-wrong" in str(found)) == (False, True, False)


@pytest.mark.slow
async def test_an_image_is_built_once_however_many_want_it(server: ModalServer, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM hermes-test:bookworm\nRUN echo {uuid.uuid4()} >/note\n")
    spec, before = replace(SPEC, image=Dockerfile(tmp_path)), server.built

    async def one() -> bytes:
        async with create_sandbox("modal", spec, **OPTIONS) as sandbox:
            return (await sandbox.exec("cat /note")).stdout

    assert len(set(await asyncio.gather(*(one() for _ in range(6))))) == 1
    # The SDK makes an image of its own from the Dockerfile's, and neither is made twice.
    assert len(server.builds) - before <= server.built - before <= 2


@pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.RESOURCE_EXHAUSTED])
async def test_calls_that_are_refused_once_are_made_again(
    server: ModalServer, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(creation, "FIRST_PAUSE_WHEN_FULL", 0.02)
    calls = ["SandboxCreateV2", "TaskExecStart", "SandboxListV2", "SandboxTerminateV2"]
    if status is Status.UNAVAILABLE:
        calls.append("TaskExecStdioRead")  # a stream that is refused otherwise is lost
    server.faults.refusals = [(call, status) for call in calls]
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        assert (await sandbox.exec("echo in", timeout=60)).stdout == b"in\n"
        backend = get_backend("modal", **OPTIONS)
        assert sandbox.id in {info.id for info in await backend.list({})}
        await backend.close()
    assert server.faults.refusals == []
    assert server.boxes[sandbox.id].result is not None


async def test_a_lost_exit_code_is_said_to_be_lost(server: ModalServer) -> None:
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        server.faults.lost_waits = 1
        result = await sandbox.exec("echo out", trusted=True, timeout=60)
        assert (result.reason, result.exit_code, result.stdout) == ("lost", None, b"out\n")
        assert (await sandbox.exec("echo again", timeout=60)).stdout == b"again\n"


@pytest.mark.slow
async def test_a_command_is_lost_where_the_service_answers_no_more(
    server: ModalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK gives up on its output after a while, but would ask for its end for ever."""
    monkeypatch.setattr(modal_process, "LATEST_END", 0.2)
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        shell = await sandbox.open_shell()
        heard = [asyncio.Event(), asyncio.Event()]
        talk = "while :; do echo x; sleep 0.05; done"
        running = [
            asyncio.create_task(sandbox.exec(talk, trusted=True, on_output=lambda *_: heard[0].set())),
            asyncio.create_task(shell.run(talk, on_output=lambda *_: heard[1].set())),
        ]
        await asyncio.gather(*(each.wait() for each in heard))
        monkeypatch.setattr(server.faults, "no_reads", True)
        async with asyncio.timeout(100):
            results = await asyncio.gather(*running)
        monkeypatch.undo()
        assert [(each.reason, each.exit_code) for each in results] == [("lost", None)] * 2
        assert (await sandbox.exec("echo again", timeout=60)).stdout == b"again\n"


@pytest.mark.parametrize("how", ["late", "cancelled"])
async def test_a_slow_creation_that_is_given_up_leaves_nothing(
    server: ModalServer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "SETTLE", 60.0)
    monkeypatch.setattr(server.faults, "slow_create", 1.5)
    before = set(server.boxes)
    creating = asyncio.ensure_future(_create(start_timeout=1.0 if how == "late" else 60.0))
    while not server.faults.creating and not creating.done():
        await asyncio.sleep(0.01)
    if how == "cancelled":
        creating.cancel()
    with pytest.raises(
        (Unavailable, asyncio.CancelledError), match="start_timeout" if how == "late" else None
    ):
        await creating
    made = set(server.boxes) - before
    assert made, "the service made none: the test shows nothing"
    assert all(server.boxes[id].result is not None for id in made)


async def _create(**options: Any) -> Sandbox:
    return await create_sandbox("modal", SPEC, **OPTIONS, **options)


async def test_secrets_by_name_and_policies(server: ModalServer) -> None:
    async with create_sandbox("modal", SPEC, **OPTIONS, secrets=["good-secret"]) as sandbox:
        assert (await sandbox.exec("echo $SECRET")).stdout == b"value\n"
    async with create_sandbox(
        "modal", replace(SPEC, network=Allow(("example.org", "10.0.0.0/8"))), **OPTIONS
    ) as sandbox:
        access = server.boxes[sandbox.id].definition.network_access
        assert list(access.allowed_domains) == ["example.org"]
        assert list(access.allowed_cidrs) == ["10.0.0.0/8"]
    with pytest.raises(Unsupported, match="gpu="):
        await create_sandbox("modal", replace(SPEC, gpus=1), **OPTIONS)


async def test_a_slow_command_never_costs_the_sandbox(server: ModalServer) -> None:
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        result = await struck(lambda timeout: sandbox.exec("echo part; sleep 600", timeout=timeout), b"part")
        assert (result.reason, result.stdout) == ("timeout", b"part\n")
        assert (await sandbox.exec("echo still")).stdout == b"still\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_86_creations_at_once_end_without_a_deadlock(server: ModalServer) -> None:
    server.faults.most_creating = 0
    begun = time.monotonic()

    async def one() -> bytes:
        async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
            return (await sandbox.exec("echo ok", timeout=100)).stdout

    assert await asyncio.gather(*(one() for _ in range(86))) == [b"ok\n"] * 86
    assert server.faults.most_creating <= 8
    print(f"86 sandboxes in {time.monotonic() - begun:.0f} s")


async def test_what_was_written_last_is_never_lost_however_late_it_comes(
    server: ModalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with create_sandbox("modal", SPEC, **OPTIONS) as sandbox:
        monkeypatch.setattr(server.faults, "late_output", 0.4)
        result = await sandbox.exec("echo out; echo err >&2; exit 3", trusted=True, timeout=60)
        assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
        monkeypatch.undo()
