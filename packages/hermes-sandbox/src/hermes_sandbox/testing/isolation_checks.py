"""Limits and policies: enforced where they are promised, refused where they cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hermes_sandbox import Sandbox, create_sandbox
from hermes_sandbox.errors import Unsupported
from hermes_sandbox.testing.base import Checks, struck
from hermes_sandbox.testing.process_checks import read_until

EAT_MEMORY = "head -c 400000000 /dev/zero | exec tail -c 400000000 >/dev/null"
WAYS_OUT = "tail -n +2 /proc/net/route | cut -f1; cut -c46- /proc/net/if_inet6 2>/dev/null"
"""Prints the network interfaces that have routes or addresses."""
PIDS = 60
BOMB = "for i in {1..400}; do sleep 600 & echo $i; done; wait"
BURN = (
    "TIMEFORMAT='%R %U %S'; time { for i in 1 2; do timeout 1.5 bash -c 'while :; do :; done' & done; wait; }"
)


class IsolationChecks(Checks):
    """What a spec asks for."""

    async def make(self, options: Mapping[str, Any], **changes: Any) -> Sandbox:
        """A sandbox of the suite's spec with some fields changed."""
        return await create_sandbox(self.backend, replace(self.spec, **changes), **options)

    async def test_no_network_means_none(self, options: Mapping[str, Any]) -> None:
        """Only the loopback interface leads anywhere; others that a kernel may put everywhere do not."""
        self.need("network_none")
        async with await self.make(options, network="none") as sandbox:
            result = await sandbox.exec(f"{WAYS_OUT}; echo x >/dev/tcp/1.1.1.1/53", timeout=60)
            assert set(result.stdout.split()) <= {b"lo"}
            assert result.exit_code != 0

    async def test_too_much_memory_is_reported_as_oom(self, options: Mapping[str, Any]) -> None:
        """The command dies of it, the sandbox does not."""
        self.need("memory")
        async with await self.make(options, memory_mb=128) as sandbox:
            result = await sandbox.exec(EAT_MEMORY, timeout=90)
            assert (result.reason, result.exit_code) != ("exit", 0)
            if self.features.oom:
                assert result.reason == "oom"
            assert (await sandbox.exec("echo alive", timeout=60)).stdout == b"alive\n"

    async def test_a_fork_bomb_is_contained(self, options: Mapping[str, Any]) -> None:
        """It cannot pass the limit, ends with its timeout, and leaves a working sandbox."""
        self.need("pids")
        limits = (
            {"pids": PIDS, "cpus": 0.5} if self.features.cpus else {"pids": PIDS}
        )  # for the neighbours' sake
        async with await self.make(options, **limits) as sandbox:
            result = await struck(
                lambda timeout: sandbox.exec(BOMB, timeout=timeout, merge=True), b"Resource temporarily"
            )
            started = [line for line in result.stdout.splitlines() if line.isdigit()]
            assert len(started) < PIDS
            assert b"Resource temporarily unavailable" in result.stdout
            assert result.reason in ("timeout", "exit")
            assert (await sandbox.exec("echo alive", timeout=60)).stdout == b"alive\n"

    async def test_processors_are_limited(self, options: Mapping[str, Any]) -> None:
        """Two busy loops get half a processor between them."""
        self.need("cpus")
        async with await self.make(options, cpus=0.5) as sandbox:
            result = await sandbox.exec(BURN, timeout=60)
            real, user, system = map(float, result.stderr.split()[-3:])
            assert user + system < 0.7 * real + 0.3

    async def test_what_cannot_be_enforced_is_refused_or_recorded(self, options: Mapping[str, Any]) -> None:
        """Strictly an error before anything is made; else noted in `unenforced`."""
        self.need("unsupported")
        with pytest.raises(Unsupported, match=next(iter(self.features.unsupported))):
            await self.make(options, **self.features.unsupported)
        async with await self.make(options, **self.features.unsupported, strict=False) as sandbox:
            assert set(self.features.unsupported) <= set(sandbox.unenforced)
            assert (await sandbox.exec("echo works")).stdout == b"works\n"

    async def test_workdir_and_env_of_the_spec(self, options: Mapping[str, Any]) -> None:
        """For commands, shells and processes; the folder is made."""
        async with await self.make(options, workdir="/made/here", env={"SPEC": "a 'b'"}) as sandbox:
            assert sandbox.workdir.endswith("/made/here")
            expected = f"{sandbox.workdir}\na 'b'\n".encode()
            assert (await sandbox.exec('pwd; echo "$SPEC"')).stdout == expected
            shell = await sandbox.open_shell()
            assert (await shell.run('pwd; echo "$SPEC"')).stdout == expected
            process = await sandbox.spawn('pwd; echo "$SPEC"')
            assert (await read_until(process, expected))[0] == expected

    async def test_a_user_of_the_spec(self, options: Mapping[str, Any]) -> None:
        """Everything runs as that user."""
        self.need("other_user")
        name = self.features.other_user
        async with await self.make(options, user=name, workdir="/tmp/w") as sandbox:
            assert (await sandbox.exec("id -un")).stdout == f"{name}\n".encode()
