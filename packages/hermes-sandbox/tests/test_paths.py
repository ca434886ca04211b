"""File operations whose program was lost say nothing of the file."""

from collections.abc import Awaitable, Callable

import pytest
from hermes_sandbox import ExecResult, Unavailable
from hermes_sandbox.paths import Paths


async def lost(program: str, arguments: tuple[str, ...], stdin: bytes | None, much: bool) -> ExecResult:
    return ExecResult(None, "lost", b"", b"", 0, 0, 0.1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda paths: paths.exists("/file"),
        lambda paths: paths.read("/file", 0, None),
        lambda paths: paths.write("/file", b"data", None),
        lambda paths: paths.stat("/file", follow=True),
        lambda paths: paths.list("/file"),
        lambda paths: paths.remove("/file", recursive=False),
    ],
)
async def test_a_lost_program_is_the_services_fault(ask: Callable[[Paths], Awaitable[object]]) -> None:
    with pytest.raises(Unavailable, match="/file"):
        await ask(Paths(lost))
