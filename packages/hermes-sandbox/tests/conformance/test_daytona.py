"""The contract at Daytona: the published SDK against a local server; `-m live` against the real one."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from daytona_server import API_KEY, DaytonaServer, running_daytona_server
from hermes_sandbox import SandboxSpec
from hermes_sandbox.testing import Features, SandboxConformance
from hermes_sandbox.testing.isolation_checks import BURN

FEATURES = Features(
    pids=False,
    oom=False,  # not every runtime shows the count of killed processes inside
    unsupported={"pids": 10},
    broken={"image": "localhost:1/hermes-no-such-image:1"},
    bulk_mb=5,
    slack=15.0,
)


class WholeUnits(SandboxConformance):
    """The checks of limits, which are in whole GiB and processors here."""

    async def test_too_much_memory_is_reported_as_oom(self, options: Mapping[str, Any]) -> None:
        async with await self.make(options, memory_mb=1024) as sandbox:
            eat = "head -c 1500000000 /dev/zero | exec tail -c 1500000000 >/dev/null"
            result = await sandbox.exec(eat, timeout=90)
            assert (result.reason, result.exit_code) != ("exit", 0)
            assert (await sandbox.exec("echo alive", timeout=60)).stdout == b"alive\n"

    async def test_processors_are_limited(self, options: Mapping[str, Any]) -> None:
        async with await self.make(options, cpus=1) as sandbox:
            result = await sandbox.exec(BURN, timeout=60)
            real, user, system = map(float, result.stderr.split()[-3:])
            assert user + system < 1.2 * real + 0.3  # two of them, where there was no limit


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.usefixtures("test_image")
class TestDaytona(WholeUnits):
    backend = "daytona"
    spec = SandboxSpec(image="hermes-test:bookworm")
    features = FEATURES

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def service(cls) -> AsyncIterator[DaytonaServer]:
        async with running_daytona_server() as server:
            yield server

    @pytest.fixture
    def options(self, service: DaytonaServer) -> Mapping[str, Any]:
        return {"api_key": API_KEY, "api_url": f"{service.url}/api"}


@pytest.mark.live
@pytest.mark.skipif(not os.environ.get("DAYTONA_API_KEY"), reason="DAYTONA_API_KEY is not set")
class TestDaytonaLive(WholeUnits):
    backend = "daytona"
    spec = SandboxSpec(image="debian:bookworm-slim")
    features = FEATURES
