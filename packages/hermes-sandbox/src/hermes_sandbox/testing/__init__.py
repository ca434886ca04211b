"""The contract of a sandbox as checks that any backend can run.

    from hermes_sandbox.testing import Features, SandboxConformance

    class TestMyBackend(SandboxConformance):
        backend = "mine"
        spec = SandboxSpec(image="debian:bookworm-slim")
        features = Features(snapshot=False)

Needs pytest and pytest-asyncio: `pip install 'hermes-sandbox[testing]'`. The image needs bash, coreutils and tar. A
check that a feature is missing for is skipped with its name, so that the list of skips says what a backend cannot do.
"""

import pytest

_GROUPS = ("exec", "file", "isolation", "kill", "life", "output", "process", "shell")
pytest.register_assert_rewrite(  # so that a failing check shows its values
    "hermes_sandbox.testing.base", *(f"hermes_sandbox.testing.{group}_checks" for group in _GROUPS)
)

from hermes_sandbox.testing.base import Features  # noqa: E402
from hermes_sandbox.testing.suite import SandboxConformance  # noqa: E402

__all__ = ["Features", "SandboxConformance"]
