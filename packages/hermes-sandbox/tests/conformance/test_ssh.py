"""The contract on an OpenSSH host: a real sshd on loopback."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hermes_sandbox import SandboxSpec
from hermes_sandbox.testing import Features, SandboxConformance
from sandbox_sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    # With SHLVL=2 the login shell skips ~/.bashrc, which may cost more than all the checks. Other tests have it.
    with running_sshd(tmp_path_factory.mktemp("sshd"), config="SetEnv SHLVL=2\n") as server:
        yield server


@pytest.mark.ssh
class TestSsh(SandboxConformance):
    backend = "ssh"
    spec = SandboxSpec()
    features = Features(
        own_root=False,
        network_none=False,
        memory=False,
        pids=False,
        cpus=False,
        snapshot=False,
        unsupported={"memory_mb": 64, "pids": 10},
        broken={"image": "debian"},
    )

    @pytest.fixture
    def options(self, sshd: Sshd) -> Mapping[str, Any]:
        return sshd.options
