"""Lifecycle: made, found, lost, removed; and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hermes_sandbox import Sandbox, Snapshot, attach_sandbox, create_sandbox
from hermes_sandbox.backend import Leftovers
from hermes_sandbox.errors import SandboxError, SandboxGone
from hermes_sandbox.reaping import reap
from hermes_sandbox.registry import delete_snapshot, get_backend
from hermes_sandbox.testing.base import Checks, wait_for_file
from hermes_sandbox.testing.process_checks import read_until

OWNER_PROGRAM = """
import asyncio, json, pickle, sys, warnings
warnings.simplefilter("ignore")
from hermes_sandbox import create_sandbox
async def main():
    backend, spec, options, snapshots = pickle.load(sys.stdin.buffer)
    sandbox = await create_sandbox(backend, spec, **options)
    saved = [(await sandbox.snapshot(keep=keep)).reference for keep in snapshots]
    print(json.dumps([sandbox.id, *saved]), flush=True)
    await sandbox.exec("sleep 3600")
asyncio.run(main())
"""


class LifeChecks(Checks):
    """What happens to sandboxes as a whole."""

    async def ids(self, options: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> set[str]:
        """The ids of every sandbox that the backend knows of, with these labels."""
        backend = get_backend(self.backend, **options)
        try:
            return {info.id for info in await backend.list(labels or {})}
        finally:
            await backend.close()

    async def test_closing_removes_everything_and_can_be_repeated(self, options: Mapping[str, Any]) -> None:
        """The sandbox is listed with its labels while it lives, and not after."""
        spec = replace(self.spec, labels={"check": "closing"})
        sandbox = await create_sandbox(self.backend, spec, **options)
        backend = get_backend(self.backend, **options)
        listed = [info for info in await backend.list({"check": "closing"}) if info.id == sandbox.id]
        assert listed
        assert "hermes.owner" in listed[0].labels
        assert "hermes.deadline" in listed[0].labels
        await sandbox.close()
        await sandbox.close()
        assert sandbox.id not in await self.ids(options)
        await backend.delete(sandbox.id)
        await backend.close()

    async def test_it_can_be_awaited_or_entered(self, options: Mapping[str, Any]) -> None:
        """Both forms give the same sandbox; leaving the block removes it."""
        async with create_sandbox(self.backend, self.spec, **options) as sandbox:
            assert (await sandbox.exec("echo in")).stdout == b"in\n"
            assert (sandbox.backend, sandbox.spec) == (self.backend, self.spec)
        assert sandbox.id not in await self.ids(options)

    async def test_processes_die_with_it(self, options: Mapping[str, Any]) -> None:
        """Closing does not wait for what runs, and calls after it fail clearly."""
        sandbox = await create_sandbox(self.backend, self.spec, **options)
        process = await sandbox.spawn("setsid sleep 3600 & echo up; sleep 3600")
        await read_until(process, b"up")
        running = asyncio.create_task(sandbox.exec("trap '' TERM; echo >running; sleep 3600"))
        await wait_for_file(sandbox, "running")
        await asyncio.wait_for(sandbox.close(), 60)
        with contextlib.suppress(SandboxError):
            assert (await asyncio.wait_for(running, 60)).reason in ("lost", "signal", "cancelled")
        with pytest.raises(SandboxError):
            await sandbox.exec("echo after the end")

    async def test_removal_by_somebody_else_is_sandbox_gone(self, options: Mapping[str, Any]) -> None:
        """The command that ran is lost; the next call says that the sandbox is gone."""
        sandbox = await create_sandbox(self.backend, self.spec, **options)
        running = asyncio.create_task(sandbox.exec("echo >begun; sleep 3600", timeout=100))
        await wait_for_file(sandbox, "begun")
        backend = get_backend(self.backend, **options)
        await backend.delete(sandbox.id)
        await backend.close()
        with contextlib.suppress(SandboxGone):  # as good an answer
            assert (await running).reason in ("lost", "signal")
        with pytest.raises(SandboxGone):
            await sandbox.exec("echo hello", timeout=60)
        await sandbox.close()

    async def test_another_process_can_attach(self, options: Mapping[str, Any]) -> None:
        """By the id; a wrong id is SandboxGone."""
        async with create_sandbox(self.backend, replace(self.spec, env={"V": "v"}), **options) as sandbox:
            await sandbox.write_text("note", "left for you")
            other = await attach_sandbox(self.backend, sandbox.id, **options)
            assert (await other.exec("cat note; echo $V")).stdout == b"left for youv\n"
            await other.detach()
            assert await sandbox.exists("note")
        with pytest.raises(SandboxGone):
            await (await attach_sandbox(self.backend, sandbox.id, **options)).exec("true")

    async def test_a_failed_start_leaves_nothing(self, options: Mapping[str, Any]) -> None:
        """And its error says what is wrong."""
        self.need("broken")
        label = {"check": f"failed-{time.time_ns()}"}  # others may be making sandboxes too
        with pytest.raises((SandboxError, ValueError)):
            spec = replace(self.spec, labels=label, **self.features.broken)
            await create_sandbox(self.backend, spec, **options)
        assert await self.ids(options, label) == set()

    async def test_a_cancelled_start_leaves_nothing(self, options: Mapping[str, Any]) -> None:
        """Whenever the cancellation comes."""
        for delay in (0.0, 0.05, 0.3):
            label = {"check": f"cancelled-{time.time_ns()}"}
            starting = asyncio.ensure_future(_start(self.backend, replace(self.spec, labels=label), options))
            await asyncio.sleep(delay)
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await starting).close()
            assert await self.ids(options, label) == set()

    async def test_several_at_once(self, options: Mapping[str, Any]) -> None:
        """Started, used and removed together; each is its own."""

        async def one(n: int) -> str:
            async with create_sandbox(self.backend, self.spec, **options) as sandbox:
                await sandbox.write_text("mine", str(n))
                assert (await sandbox.exec("sleep 0.2; cat mine")).stdout == str(n).encode()
                return sandbox.id

        ids = await asyncio.gather(*(one(n) for n in range(5)))
        assert len(set(ids)) == 5
        assert not set(ids) & await self.ids(options)

    async def test_a_lifetime_ends_it(self, options: Mapping[str, Any]) -> None:
        """Whatever it does."""
        sandbox = await create_sandbox(self.backend, replace(self.spec, lifetime=1), **options)
        async with asyncio.timeout(100):
            with contextlib.suppress(SandboxError):
                result = await sandbox.exec("sleep 3600")
                assert result.reason in ("lost", "signal")
            while sandbox.id in await self.ids(options):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        with pytest.raises(SandboxGone):
            await sandbox.exec("true")
        await sandbox.close()

    async def test_a_dead_owners_sandbox_is_reaped(self, options: Mapping[str, Any]) -> None:
        """After `kill -9` of the process that made it, with its snapshots but for those to keep; a living owner's stay."""
        self.need("reap")
        backend = get_backend(self.backend, **options)
        snapshots = [False, True] if isinstance(backend, Leftovers) and self.features.snapshot else []
        await backend.close()
        async with create_sandbox(self.backend, self.spec, **options) as living:
            owner = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                OWNER_PROGRAM,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert owner.stdin is not None
            assert owner.stdout is not None
            owner.stdin.write(pickle.dumps((self.backend, self.spec, dict(options), snapshots)))
            owner.stdin.close()
            id, *saved = json.loads(await asyncio.wait_for(owner.stdout.readline(), 90))
            assert id in await self.ids(options)
            owner.kill()
            await owner.wait()
            reaped = await reap({self.backend: options})
            assert not [each.error for each in reaped if each.id == id and each.error]
            # Another process that makes its first sandbox may have been quicker, or be at it still.
            async with asyncio.timeout(60):
                while id in await self.ids(options):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert living.id in await self.ids(options)
            assert (await living.exec("echo still")).stdout == b"still\n"
            if snapshots:
                temporary, kept = (Snapshot(self.backend, reference) for reference in saved)
                with pytest.raises(SandboxError):
                    await create_sandbox(self.backend, replace(self.spec, image=temporary), **options)
                await (await create_sandbox(self.backend, replace(self.spec, image=kept), **options)).close()
                await delete_snapshot(kept, **options)

    async def test_a_snapshot_starts_another_one(self, options: Mapping[str, Any]) -> None:
        """With its files, without its processes; the original goes on."""
        self.need("snapshot")
        async with create_sandbox(self.backend, self.spec, **options) as sandbox:
            await sandbox.exec(
                "mkdir -p /data/d && echo saved >/data/d/f && chmod 640 /data/d/f && rm -f /etc/issue",
                check=True,
            )
            image = await sandbox.snapshot()
            await sandbox.exec("echo changed >/data/d/f", check=True)
            async with create_sandbox(self.backend, replace(self.spec, image=image), **options) as copy:
                result = await copy.exec("cat /data/d/f; stat -c %a /data/d/f; ls /etc/issue 2>/dev/null")
                assert result.stdout == b"saved\n640\n"
            assert (await sandbox.exec("cat /data/d/f")).stdout == b"changed\n"
            await delete_snapshot(image, **options)
            await delete_snapshot(image, **options)
            with pytest.raises(SandboxError):
                await create_sandbox(self.backend, replace(self.spec, image=image), **options)


async def _start(backend: str, spec: Any, options: Mapping[str, Any]) -> Sandbox:
    return await create_sandbox(backend, spec, **options)
