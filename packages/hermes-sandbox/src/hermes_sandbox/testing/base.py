"""What every group of checks stands on: a sandbox to use up, a folder in it, and how to ask about processes."""

from __future__ import annotations

import asyncio
import itertools
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from hermes_sandbox import ExecResult, Sandbox, SandboxSpec, create_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What a backend can do beyond the contract, and how patient the checks shall be.

    Attributes:
        own_root: Absolute paths belong to the sandbox alone.
        other_user: The name of a user that exists inside and whom `user=` can switch to; None without any.
        network_none: `network="none"` is enforced.
        memory: `memory_mb` is enforced.
        oom: The killing of a command for want of memory is reported as `oom`.
        pids: `pids` is enforced.
        cpus: `cpus` is enforced.
        snapshot: `Sandbox.snapshot` works.
        reap: Sandboxes of a dead owner process on this machine are found and removed.
        survives_runner: The sandbox goes on after a command killed its own parent process.
        unsupported: A spec's field that the backend cannot honour, with a value; empty when it can do everything.
        broken: Spec fields that make a creation fail.
        bulk_mb: MiB of the large file that is moved both ways.
        slack: Seconds by which anything may be late on a busy machine.
    """

    own_root: bool = True
    other_user: str | None = "nobody"
    network_none: bool = True
    memory: bool = True
    oom: bool = True
    pids: bool = True
    cpus: bool = True
    snapshot: bool = True
    reap: bool = True
    survives_runner: bool = True
    unsupported: Mapping[str, Any] = field(default_factory=dict[str, Any])
    broken: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bulk_mb: int = 50
    slack: float = 8.0


class Checks:
    """The base of every group of checks. Subclasses of the whole suite set the class attributes.

    Attributes:
        backend: The backend's name.
        spec: What the sandboxes shall be.
        features: What the backend can do.
    """

    backend: ClassVar[str]
    spec: ClassVar[SandboxSpec] = SandboxSpec()
    features: ClassVar[Features] = Features()

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        """The backend's options; override it where there are any."""
        return {}

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def service(cls) -> AsyncIterator[Any]:
        """What the backend speaks to; override it where that is started for the checks. It outlives the sandboxes."""
        yield None

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def shared(cls, service: Any) -> AsyncIterator[list[Sandbox]]:
        """The sandbox that most checks share, remade when one of them broke it."""
        kept: list[Sandbox] = []
        yield kept
        for sandbox in kept:
            await sandbox.close()

    @pytest_asyncio.fixture(loop_scope="class")
    async def sandbox(self, shared: list[Sandbox], options: Mapping[str, Any]) -> Sandbox:
        """A working sandbox."""
        if shared:
            try:
                if (await shared[-1].exec("exit 0", timeout=60)).ok:
                    return shared[-1]
            except Exception:  # whatever a check did to it, the next check gets another one
                await shared.pop().close()
        shared.append(await create_sandbox(self.backend, self.spec, **options))
        return shared[-1]

    @pytest_asyncio.fixture(loop_scope="class")
    async def here(self, sandbox: Sandbox, request: pytest.FixtureRequest) -> str:
        """A fresh folder in the sandbox, by its absolute path."""
        path = f"{sandbox.workdir.rstrip('/')}/check-{next(_numbers)}"
        await sandbox.mkdir(path)
        return path

    def need(self, feature: str) -> None:
        """Skip the check where the backend lacks `feature`."""
        if not getattr(self.features, feature):
            pytest.skip(f"{self.backend} lacks {feature}")


_numbers = itertools.count()


PATIENCE = (0.5, 6.0)
LAST_PATIENCE = 60.0


async def struck(run: Callable[[float], Awaitable[ExecResult]], word: bytes) -> ExecResult:
    """The result of `run(timeout)` whose timeout struck a command that had come far enough to write `word`.

    On a machine that stands still half a second may not suffice for that; then it gets more time. Evidence decides, and
    a machine that is quick is not held up.
    """
    for timeout in PATIENCE:
        if word in (result := await run(timeout)).stdout:
            return result
    return await run(LAST_PATIENCE)


async def gone(sandbox: Sandbox, pid: int, within: float = 60.0) -> bool:
    """Whether process `pid` of the sandbox is dead, or dies soon. A zombie is dead."""
    look = f"read -r _ _ state _ </proc/{pid}/stat && [ $state != Z ]"
    deadline = time.monotonic() + within
    while (await sandbox.exec(look, timeout=60)).ok:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True


async def wait_for_file(sandbox: Sandbox, path: str, within: float = 60.0) -> bytes:
    """The contents of a file that a command is about to write."""
    quoted = shlex.quote(path)
    result = await sandbox.exec(
        f"until [ -s {quoted} ]; do sleep 0.05; done; cat {quoted}", timeout=within, check=True
    )
    return result.stdout


def lines(data: bytes) -> list[str]:
    """The lines of an output."""
    return data.decode().splitlines()
