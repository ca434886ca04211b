"""The contract in instances of a real apptainer."""

from collections.abc import Mapping
from typing import Any

import pytest
from hermes_sandbox import SandboxSpec
from hermes_sandbox.testing import Features, SandboxConformance


@pytest.mark.singularity
@pytest.mark.docker
@pytest.mark.usefixtures("test_image")
class TestSingularity(SandboxConformance):
    backend = "singularity"
    spec = SandboxSpec(image="docker-daemon:hermes-test:bookworm")
    features = Features(
        broken={"image": "/no/such/image.sif"},
        unsupported={"disk_mb": 100},
    )

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"build_timeout": 100.0}
