"""The contract at Modal: the published SDK against a local server; `-m live` against the real one."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from hermes_sandbox import SandboxSpec
from hermes_sandbox.testing import Features, SandboxConformance
from modal_server import TOKEN_ID, TOKEN_SECRET, ModalServer, running_modal_server

FEATURES = Features(
    pids=False,
    oom=False,  # not every runtime shows the count of killed processes inside
    unsupported={"disk_mb": 100},
    broken={"image": "localhost:1/hermes-no-such-image:1"},
)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.usefixtures("test_image")
class TestModal(SandboxConformance):
    backend = "modal"
    spec = SandboxSpec(image="hermes-test:bookworm")
    features = FEATURES

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def service(cls) -> AsyncIterator[ModalServer]:
        async with running_modal_server() as server:
            saved = dict(os.environ)
            os.environ.update(MODAL_SERVER_URL=server.url, MODAL_CONFIG_PATH="/nonexistent")
            yield server
            os.environ.clear()
            os.environ.update(saved)

    @pytest.fixture
    def options(self, service: ModalServer) -> Mapping[str, Any]:
        return {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}


@pytest.mark.live
@pytest.mark.skipif(not os.environ.get("MODAL_TOKEN_ID"), reason="MODAL_TOKEN_ID is not set")
class TestModalLive(SandboxConformance):
    backend = "modal"
    spec = SandboxSpec(image="debian:bookworm-slim")
    features = FEATURES
