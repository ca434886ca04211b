import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hermes_tools import HostWorkspace, ToolSession


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[HostWorkspace]:
    async with HostWorkspace(tmp_path) as made:
        yield made


@pytest.fixture
async def open_session(workspace: HostWorkspace) -> AsyncIterator[Callable[..., ToolSession]]:
    """Makes sessions on the test's own folder, closed at its end."""
    async with contextlib.AsyncExitStack() as stack:
        opened: list[ToolSession] = []

        def open_one(*tools, **options) -> ToolSession:
            session = ToolSession(options.pop("registry", None), list(tools), workspace, **options)
            stack.push_async_exit(session)
            opened.append(session)
            return session

        yield open_one
