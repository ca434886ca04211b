"""What the tests need of the process they run in."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def loopback_without_a_proxy():
    """Servers on loopback are asked directly, also on a machine that has a proxy for everything else."""
    known = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    with pytest.MonkeyPatch.context() as patch:
        if known != "*":
            for name in ("NO_PROXY", "no_proxy"):
                patch.setenv(name, ",".join(filter(None, (known, "127.0.0.1", "localhost"))))
        yield
