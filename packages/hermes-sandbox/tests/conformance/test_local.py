"""The contract on this machine, without isolation and in bubblewrap."""

from collections.abc import Mapping
from typing import Any

import pytest
from hermes_sandbox.testing import Features, SandboxConformance


class TestLocal(SandboxConformance):
    backend = "local"
    features = Features(
        own_root=False,
        network_none=False,
        memory=False,
        pids=False,
        cpus=False,
        snapshot=False,
        survives_runner=False,  # the parent of a command is this process
        unsupported={"memory_mb": 64},
        broken={"image": "debian"},
    )

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"quiet": True}


@pytest.mark.bwrap
class TestBubblewrap(SandboxConformance):
    backend = "local"
    features = Features(
        other_user=None,
        memory=False,
        pids=False,
        cpus=False,
        snapshot=False,
        unsupported={"cpus": 0.5},
        broken={"image": "debian"},
    )

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"isolation": "bwrap"}
