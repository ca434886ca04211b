"""Sandboxes at Modal, through the asynchronous interface of its SDK."""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import modal.experimental

from hermes_sandbox.backend import ByteProcess, Command, Machine, Report, SandboxInfo
from hermes_sandbox.backends import boot
from hermes_sandbox.backends.creation import again, creation_slots, patiently
from hermes_sandbox.backends.modal_errors import CREATE, translated
from hermes_sandbox.backends.modal_process import ModalProcess
from hermes_sandbox.backends.modal_spec import Options, sdk, sdk_arguments, sdk_image
from hermes_sandbox.errors import (
    AuthError,
    ImageError,
    QuotaError,
    SandboxError,
    SandboxGone,
    Unavailable,
)
from hermes_sandbox.execute import uncancelled
from hermes_sandbox.ownership import DEFAULT_LIFETIME
from hermes_sandbox.spec import SandboxSpec, Snapshot

ATTEMPT = "hermes.attempt"
image_delete: Any = modal.experimental.image_delete
"""Experimental is its place in the SDK; there is no other way to delete an image."""
HEADER_LOGGERS = ("hpack.hpack", "hpack.table")
"""What the SDK's HTTP/2 writes at DEBUG: each header that is sent, the token's secret among them."""
FULL = (QuotaError,)
"""After this a call is made again; the SDK itself makes it again while Modal does not answer."""


class ModalBackend:
    """Makes sandboxes at Modal."""

    name = "modal"
    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._connected: tuple[Any, Any] | None = None
        self._connecting = asyncio.Lock()
        self._opened: list[Any] = []

    async def preflight(self) -> Report:
        """Log in and look the app up."""
        try:
            async with asyncio.timeout(30):
                await self._connect()
        except AuthError as error:
            return Report(False, str(error))
        except (SandboxError, TimeoutError) as error:
            return Report(
                False, f"Modal does not answer: {error or 'timed out'}", "check the network, then try again"
            )
        return Report(True, f"Modal SDK {sdk.__version__}, app {self.options.app}")

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Create a sandbox; the image is built first where Modal does not have it."""
        arguments, unenforced = sdk_arguments(spec, self.options)
        tags = dict(labels) | {ATTEMPT: secrets.token_hex(8)}
        if spec.user:
            tags["hermes.user"] = spec.user
        if spec.workdir:
            tags["hermes.workdir"] = spec.workdir
        client, app = await self._connect()
        make = functools.partial(
            sdk.Sandbox.create.aio, "sleep", "infinity", app=app, client=client, tags=tags, **arguments
        )
        slots = creation_slots(asyncio.get_running_loop(), self.name, self.options.creations)
        try:
            async with slots:
                created = await patiently(
                    functools.partial(self._create, make, spec), self.options.start_timeout
                )
            machine = await self._machine(created, tags)
        except BaseException:
            await uncancelled(self._discard(tags[ATTEMPT]))
            raise
        return replace(machine, unenforced=unenforced)

    async def attach(self, id: str) -> Machine:
        """Find a running sandbox."""
        sandbox = await self._find(id)
        async with translated(f"find sandbox {id}"):
            if await sandbox.poll.aio() is not None:
                raise SandboxGone(f"the Modal sandbox {id} has ended")
            tags = await sandbox.get_tags.aio()
        return await self._machine(sandbox, tags)

    async def list(self, labels: Mapping[str, str]) -> Sequence[SandboxInfo]:
        """The app's running sandboxes with these tags."""
        return await again(lambda: self._list(labels), FULL)

    async def _list(self, labels: Mapping[str, str]) -> list[SandboxInfo]:
        client, app = await self._connect()
        found: list[SandboxInfo] = []
        async with translated("list sandboxes"):
            async for sandbox in sdk.Sandbox.list.aio(
                app_id=app.app_id, tags=dict(labels) or None, client=client
            ):
                tags = await sandbox.get_tags.aio()
                found.append(SandboxInfo(sandbox.object_id, self.name, tags))
        return found

    async def delete(self, id: str) -> None:
        """Terminate the sandbox."""

        async def terminate() -> None:
            sandbox = await self._find(id)
            async with translated(f"terminate sandbox {id}"):
                await sandbox.terminate.aio()

        with suppress(SandboxGone):
            await again(terminate, FULL)

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Run a command through the sandbox's router."""
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
        """Save the file system as a Modal image: it has no labels, but one with an owner ends by itself."""
        lives = int(DEFAULT_LIFETIME) if labels else None
        async with translated("take a snapshot"):
            image = await machine.state["sandbox"].snapshot_filesystem.aio(
                timeout=int(self.options.start_timeout), ttl=lives
            )
        return Snapshot(self.name, image.object_id)

    async def forget(self, snapshot: Snapshot) -> None:
        """Delete a snapshot's image."""
        client, _ = await self._connect()
        with suppress(SandboxGone):
            async with translated(f"delete the snapshot {snapshot.reference}"):
                await image_delete.aio(snapshot.reference, client=client)

    async def close(self) -> None:
        """Let go of the connections; a client made from the environment is the SDK's own and stays."""
        opened, self._opened = self._opened, []
        connected, self._connected = self._connected, None
        async with translated("close the connection"):
            for sandbox in opened:
                await sandbox.detach.aio()
            if connected and self.options.token_id:
                await connected[0].close.aio()

    async def _connect(self) -> tuple[Any, Any]:
        async with self._connecting:
            if self._connected is None:
                options = self.options
                for logger in HEADER_LOGGERS:
                    logging.getLogger(logger).addFilter(_without_headers)
                async with translated("log in"):
                    if options.token_id and options.token_secret:
                        client = await sdk.Client.from_credentials.aio(options.token_id, options.token_secret)
                    else:
                        client = await sdk.Client.from_env.aio()
                    app = await self._lookup(client)
                self._connected = (client, app)
            return self._connected

    async def _lookup(self, client: Any) -> Any:
        try:
            return await sdk.App.lookup.aio(
                self.options.app,
                client=client,
                environment_name=self.options.environment,
                create_if_missing=True,
            )
        except BaseException:
            if self.options.token_id:  # else it is the SDK's own, for everybody
                await uncancelled(client.close.aio())
            raise

    async def _create(self, make: Any, spec: SandboxSpec) -> Any:
        async with translated(CREATE):
            return await make(image=sdk_image(spec, self.options))

    async def _machine(self, sandbox: Any, tags: Mapping[str, str]) -> Machine:
        self._opened.append(sandbox)
        code, out, err = await self._script(sandbox, boot.look_around(tags.get("hermes.workdir")))
        if code:
            raise ImageError(f"the image cannot host a sandbox: {err.decode(errors='replace').strip()}")
        shell, login, workdir = boot.seen(out)
        return Machine(
            id=sandbox.object_id,
            workdir=workdir,
            user=tags.get("hermes.user"),
            shell=shell,
            state={"sandbox": sandbox, "login": login},
        )

    async def _find(self, id: str) -> Any:
        client, _ = await self._connect()
        async with translated(f"find sandbox {id}"):
            return await sdk.Sandbox.from_id.aio(id, client=client)

    async def _discard(self, attempt: str) -> None:
        """Remove what a failed creation may have left at the service."""
        try:
            for info in await self.list({ATTEMPT: attempt}):
                await self.delete(info.id)
        except SandboxError:
            return  # out of reach: its tags name a dead owner or a deadline, and it has a timeout

    async def _open(self, sandbox: Any, script: str) -> ModalProcess:
        nonce = secrets.token_hex(8)

        async def start() -> Any:
            async with translated("run a command"):
                return await sandbox.exec.aio("/bin/sh", "-c", boot.READ_SCRIPT, text=False)

        # Until its script comes a command does nothing, so that one begun in vain does no harm.
        started = await again(start, FULL)
        process = ModalProcess(started)
        try:
            await process.write(boot.encoded(boot.opening(nonce, None) + script))
            await boot.await_opening(process, nonce, f"sandbox {sandbox.object_id}")
        except (Unavailable, OSError) as error:
            await process.close()
            await self._check(sandbox)
            raise Unavailable(f"the command did not start: {error}") from error
        except BaseException:
            await process.close()
            raise
        process.kill = lambda pid, signal: self._kill(sandbox, pid, signal)
        return process

    async def _check(self, sandbox: Any) -> None:
        async with translated("look at the sandbox"):
            if await sandbox.poll.aio() is not None:
                raise SandboxGone(f"the Modal sandbox {sandbox.object_id} has ended")

    async def _script(self, sandbox: Any, script: str) -> tuple[int | None, bytes, bytes]:
        process = await self._open(sandbox, script)
        try:
            async with asyncio.timeout(120):
                await process.close_stdin()
                out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
                return await process.wait(), out, err
        except ConnectionResetError as error:
            raise Unavailable(f"the connection to Modal broke: {error}") from error
        finally:
            await process.close()

    async def _kill(self, sandbox: Any, pid: int, signal: int) -> None:
        await self._script(sandbox, f"kill -{signal} {pid} 2>/dev/null; :")


def _without_headers(record: logging.LogRecord) -> bool:
    """Nothing of DEBUG: a secret is in it also as the bytes that it is packed into."""
    return record.levelno > logging.DEBUG
