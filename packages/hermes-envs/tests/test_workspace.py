"""A sandbox is a workspace as it is."""

from hermes_sandbox import Sandbox, create_sandbox
from hermes_tools import Workspace
from hermes_tools.testing import check_workspace


def as_workspace(sandbox: Sandbox) -> Workspace:
    """Type-checked: no adapter stands between the two."""
    return sandbox


async def test_a_sandbox_is_a_workspace():
    async with create_sandbox("local") as sandbox:
        checks = await check_workspace(as_workspace(sandbox))
    assert len(checks) > 3
