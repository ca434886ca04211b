"""Sandboxes at Daytona, through the asynchronous client of its SDK."""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo
from hermes_sandbox.backends import boot
from hermes_sandbox.backends.creation import again, creation_slots, patiently
from hermes_sandbox.backends.daytona_errors import CREATE, translated
from hermes_sandbox.backends.daytona_process import DaytonaProcess, relay
from hermes_sandbox.backends.daytona_spec import (
    Options,
    limits_differ,
    named_for,
    not_enforced,
    owner_in,
    refuse,
    sdk,
    sdk_parameters,
    snapshot_name,
)
from hermes_sandbox.errors import AuthError, ImageError, SandboxError, SandboxGone, Unavailable
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.spec import SandboxSpec, Snapshot

ATTEMPT = "hermes.attempt"
OWN = "hermes.sandbox"
SIGNS = 20.0
"""Seconds of each minute of an auto-stop interval after which the service hears that its sandbox is in use."""


class DaytonaBackend:
    """Makes sandboxes at Daytona."""

    name = "daytona"
    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._client: Any = None
        self._closed = False
        self._processes: set[DaytonaProcess] = set()
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def preflight(self) -> Report:
        """Ask the service for the account's sandboxes."""
        try:
            async with asyncio.timeout(30):
                await self.list({ATTEMPT: "none"})
        except AuthError as error:
            return Report(False, str(error))
        except (SandboxError, TimeoutError) as error:
            return Report(
                False, f"Daytona does not answer: {error or 'timed out'}", "check the network and api_url"
            )
        return Report(True, f"Daytona SDK {version('daytona')}")

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Create a sandbox; Daytona builds the image where it does not have it."""
        why = "it gives whole processors and GiB: leave them out, round them"
        unenforced = refuse(spec, not_enforced(spec), why)
        tags = dict(labels) | {OWN: "1", ATTEMPT: secrets.token_hex(8)}
        if spec.user:
            tags["hermes.user"] = spec.user
        if spec.workdir:
            tags["hermes.workdir"] = spec.workdir
        if name := snapshot_name(spec, self.options):
            unenforced += await self._limits_of_snapshot(spec, name)
        parameters = sdk_parameters(spec, self.options, tags)
        slots = creation_slots(asyncio.get_running_loop(), self.name, self.options.creations)
        try:
            async with slots:
                created = await patiently(
                    functools.partial(self._create, parameters), self.options.start_timeout
                )
            machine = await self._machine(created, tags)
        except BaseException:
            await uncancelled(self._discard(tags[ATTEMPT]))
            raise
        return replace(machine, unenforced=unenforced)

    async def attach(self, id: str) -> Machine:
        """Find a running sandbox."""
        found = await self._find(id)
        if _state(found) != "started":
            hint = "; `DaytonaBackend.start` starts it again" if _state(found) == "stopped" else ""
            raise SandboxGone(f"the Daytona sandbox {id} is {_state(found)}{hint}")
        return await self._machine(found, found.labels)

    async def list(self, labels: Mapping[str, str]) -> Sequence[SandboxInfo]:
        """This package's sandboxes of the account with these labels."""
        return await again(lambda: self._list(labels))

    async def _list(self, labels: Mapping[str, str]) -> list[SandboxInfo]:
        found: list[SandboxInfo] = []
        async with translated("list sandboxes"):
            query = sdk.ListSandboxesQuery(labels={OWN: "1"} | dict(labels))
            async for each in self._connected().list(query):
                if _state(each) not in ("destroyed", "destroying"):
                    found.append(
                        SandboxInfo(each.id, self.name, dict(each.labels), _state(each) == "started")
                    )
        return found

    async def delete(self, id: str) -> None:
        """Delete the sandbox."""
        self._stop_keeping(id)

        async def delete() -> None:
            async with translated(f"delete sandbox {id}"):
                await (await self._find(id)).delete()

        with suppress(SandboxGone):
            await again(delete)

    async def stop(self, id: str) -> None:
        """Stop a sandbox and keep its files; what runs in it ends. `start` starts it again, `delete` deletes it."""
        self._stop_keeping(id)
        found = await self._find(id)
        async with translated(f"stop sandbox {id}"):
            await found.set_auto_delete_interval(-1)  # else it is deleted as soon as it has stopped
            await found.stop()

    async def start(self, id: str) -> None:
        """Start a sandbox that was stopped; `attach_sandbox` finds it then."""
        found = await self._find(id)
        async with translated(f"start sandbox {id}"):
            await found.start()
            await found.set_auto_delete_interval(0)

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Run a command in a session of its own."""
        env = command.env if command.clean_env else {**machine.env, **command.env}
        plain = replace(
            command, cwd=command.cwd or machine.workdir, env=env, user=command.user or machine.user
        )
        process = await self._open(
            machine.state["sandbox"], boot.command_script(plain, machine.state["login"])
        )
        if not command.stdin:
            await process.close_stdin()
        return process

    async def snapshot(self, machine: Machine, labels: Mapping[str, str]) -> Snapshot:
        """Save the file system as a snapshot of the account, whose name says who owns it."""
        name = named_for(labels)
        async with translated("take a snapshot"):
            await machine.state["sandbox"].create_snapshot(name, timeout=self.options.start_timeout)
        return Snapshot(self.name, name)

    async def forget(self, snapshot: Snapshot) -> None:
        """Delete a snapshot of the account."""
        with suppress(SandboxGone):
            async with translated(f"delete the snapshot {snapshot.reference}"):
                await self._connected().snapshot.delete(snapshot.reference)

    async def leftovers(self) -> Sequence[SandboxInfo]:
        """The account's snapshots that have an owner."""
        found: list[SandboxInfo] = []
        page, pages = 1, 1
        while page <= pages:
            async with translated("list snapshots"):
                listed = await self._connected().snapshot.list(page=page, limit=100)
            names = ((each.name, owner_in(each.name)) for each in listed.items)
            found += [SandboxInfo(name, self.name, labels, False) for name, labels in names if labels]
            page, pages = page + 1, listed.total_pages
        return found

    async def remove_leftover(self, id: str) -> None:
        """Delete a snapshot."""
        await self.forget(Snapshot(self.name, id))

    async def put_file(self, machine: Machine, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file through the service's own file interface, which takes bytes as they are."""
        failed: list[BaseException] = []

        async def watched() -> AsyncIterator[bytes]:
            try:
                async for piece in data:
                    yield piece
            except BaseException as error:
                failed.append(error)
                raise

        try:
            async with translated(f"upload {path}"):
                await machine.state["sandbox"].fs.upload_file_stream(watched(), path)
        except SandboxError:
            if failed:  # what was to be sent could not be read
                raise failed[0] from None
            raise

    async def get_file(self, machine: Machine, path: str) -> AsyncGenerator[bytes]:
        """Read a file through the service's own file interface."""
        async with translated(f"download {path}"):
            async for piece in await machine.state["sandbox"].fs.download_file_stream(path):
                yield piece

    async def remove_file(self, machine: Machine, path: str) -> None:
        """Remove a file through the service's own file interface."""
        with suppress(SandboxGone):
            async with translated(f"remove {path}"):
                await machine.state["sandbox"].fs.delete_file(path)

    async def close(self) -> None:
        """Close the connection to the service."""
        self._closed = True
        client, self._client = self._client, None
        for id in tuple(self._keepers):
            self._stop_keeping(id)
        for process in tuple(self._processes):
            await process.close()
        self._processes.clear()
        if client is not None:
            await _close(client)

    def _connected(self) -> Any:
        if self._closed:  # what still runs for a lost command may want a connection that nobody would close
            raise SandboxGone("the sandbox was closed; create another")
        if self._client is None:
            options = self.options
            config = sdk.DaytonaConfig(
                api_key=options.api_key, api_url=options.api_url, target=options.target
            )
            self._client = sdk.AsyncDaytona(config)
        return self._client

    async def _create(self, parameters: Any) -> Any:
        async with translated(CREATE):
            return await self._connected().create(parameters, timeout=0)

    async def _limits_of_snapshot(self, spec: SandboxSpec, name: str) -> tuple[str, ...]:
        """The limits that a sandbox from a snapshot, which has the snapshot's own, would not have."""
        try:
            async with translated(f"find the snapshot {name}"):
                saved = await self._connected().snapshot.get(name)
        except SandboxGone as error:
            raise ImageError(f"Daytona has no snapshot {name} ({error})") from error
        why = f"the snapshot {name} has {saved.cpu:g} processors, {saved.mem:g} GiB and a disk of {saved.disk:g} GiB"
        return refuse(spec, limits_differ(spec, saved), f"{why}: ask for these, leave them out")

    async def _machine(self, sandbox: Any, labels: Mapping[str, str]) -> Machine:
        code, out, err = await self._script(sandbox, boot.look_around(labels.get("hermes.workdir")))
        if code:
            raise ImageError(f"the image cannot host a sandbox: {err.decode(errors='replace').strip()}")
        shell, login, workdir = boot.seen(out)
        self._keep(sandbox)
        state = {"sandbox": sandbox, "login": login}
        return Machine(
            id=sandbox.id, workdir=workdir, user=labels.get("hermes.user"), shell=shell, state=state
        )

    async def _find(self, id: str) -> Any:
        async def find() -> Any:
            async with translated(f"find sandbox {id}"):
                return await self._connected().get(id)

        return await again(find)

    def _keep(self, sandbox: Any) -> None:
        """Tell the service now and then that a sandbox is in use: it does not count a command that runs."""
        if sandbox.auto_stop_interval and sandbox.id not in self._keepers:
            self._keepers[sandbox.id] = asyncio.create_task(_keep_in_use(sandbox))

    def _stop_keeping(self, id: str) -> None:
        if keeper := self._keepers.pop(id, None):
            keeper.cancel()

    async def _discard(self, attempt: str) -> None:
        """Remove what a failed creation may have left at the service."""
        try:
            for info in await self.list({ATTEMPT: attempt}):
                await self.delete(info.id)
        except SandboxError:
            return  # out of reach: its labels name a dead owner or a deadline

    async def _open(self, sandbox: Any, script: str) -> DaytonaProcess:
        nonce = secrets.token_hex(8)
        # Until its script comes a command does nothing, so that one begun in vain does no harm.
        process = await again(lambda: self._begin(sandbox))
        self._processes.add(process)
        try:
            await process.write(boot.encoded(boot.opening(nonce, None) + script))
            await boot.await_opening(process, nonce, f"sandbox {sandbox.id}")
        except (Unavailable, OSError) as error:
            await self._let_go(process)
            if _state(await self._find(sandbox.id)) != "started":
                raise SandboxGone(f"the Daytona sandbox {sandbox.id} has ended") from error
            raise Unavailable(f"the command did not start: {error}") from error
        except BaseException:
            await self._let_go(process)
            raise
        process.kill = lambda pid, signal: self._kill(sandbox, pid, signal)
        return process

    async def _begin(self, sandbox: Any) -> DaytonaProcess:
        session = f"hermes-{secrets.token_hex(8)}"
        async with translated(f"run a command in {sandbox.id}"):
            await sandbox.process.create_session(session)
            request = sdk.SessionExecuteRequest(command=relay(boot.READ_SCRIPT), run_async=True)
            started = await sandbox.process.execute_session_command(session, request)
        return DaytonaProcess(sandbox.process, session, started.cmd_id)

    async def _let_go(self, process: DaytonaProcess) -> None:
        self._processes.discard(process)
        await process.close()

    async def _script(self, sandbox: Any, script: str) -> tuple[int | None, bytes, bytes]:
        process = await self._open(sandbox, script)
        try:
            async with asyncio.timeout(120):
                await process.close_stdin()
                out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
                return await process.wait(), out, err
        except ConnectionResetError as error:
            raise Unavailable(f"the connection to Daytona broke: {error}") from error
        finally:
            await self._let_go(process)

    async def _kill(self, sandbox: Any, pid: int, signal: int) -> None:
        await self._script(sandbox, f"kill -{signal} {pid} 2>/dev/null; :")


def _state(sandbox: Any) -> str:
    return str(getattr(sandbox.state, "value", sandbox.state))


async def _close(client: Any) -> None:
    """Close a client of the SDK, with the connection for events that it opens in the background.

    Where the SDK stops that just before its HTTP session is made, the session is made all the same and left open.
    """
    events = getattr(client, "_event_dispatcher", None)
    socket = getattr(events, "_sio", None)
    try:
        if events is not None:
            await events.disconnect()
        if socket is not None:
            await socket.disconnect()
    finally:
        await client.close()


async def _keep_in_use(sandbox: Any) -> None:
    while True:
        await asyncio.sleep(sandbox.auto_stop_interval * SIGNS)
        with suppress(SandboxError):  # out of reach for now: the next sign may arrive
            async with translated("tell that the sandbox is in use"):
                await sandbox.refresh_activity()
