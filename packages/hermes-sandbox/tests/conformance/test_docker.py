"""The contract in Docker containers."""

import pytest
from hermes_sandbox import SandboxSpec
from hermes_sandbox.testing import Features, SandboxConformance


@pytest.mark.docker
@pytest.mark.usefixtures("test_image")
class TestDocker(SandboxConformance):
    backend = "docker"
    spec = SandboxSpec(image="hermes-test:bookworm")
    features = Features(broken={"image": "localhost:1/hermes-no-such-image:1"}, unsupported={"disk_mb": 100})
