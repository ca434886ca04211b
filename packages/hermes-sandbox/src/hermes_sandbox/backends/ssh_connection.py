"""The one connection to an SSH host: made when needed, checked, multiplexed, made again after a drop."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncssh

from hermes_sandbox.backends import boot
from hermes_sandbox.backends.ssh_process import SshProcess
from hermes_sandbox.errors import AuthError, SandboxGone, Unavailable
from hermes_sandbox.execute import uncancelled

CHANNEL_PAUSES = (0.05, 0.2, 0.5, 1.0, None)
"""Seconds between attempts to open a channel: sshd counts a closed one until it has seen its process off."""
LEAVE = 5.0
"""Seconds for a connection to close in good order."""
CLOSED = "the sandbox was closed; create another"
BOOT = f"exec /bin/sh -c '{boot.READ_SCRIPT}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to reach the host. What is None is left to `~/.ssh/config` and OpenSSH's defaults.

    Attributes:
        host: Name or address, or an alias of `~/.ssh/config`.
        port: TCP port.
        username: Who to log in as.
        keys: Private key files; the agent and the usual files of `~/.ssh` when empty.
        agent: Whether keys of a running ssh-agent are tried.
        known_hosts: File of trusted host keys; `~/.ssh/known_hosts` when None.
        verify_host: False accepts any host key, and with it anyone in the middle.
        jump: `[user@]host[:port]`, several joined by commas: the hosts to go through, checked like the last.
        config: OpenSSH client configuration file to read instead of `~/.ssh/config`.
        folder: Where sandboxes live on the host; `$TMPDIR/hermes-ssh-UID` there when None.
        connect_timeout: Seconds to connect and log in.
        keepalive: Seconds between the probes that find a dead connection; three unanswered end it.
    """

    host: str
    port: int | None = None
    username: str | None = None
    keys: Sequence[str | Path] = ()
    agent: bool = True
    known_hosts: str | Path | None = None
    verify_host: bool = True
    jump: str | None = None
    config: str | Path | None = None
    folder: str | None = None
    connect_timeout: float = 20.0
    keepalive: float = 15.0


class SshHost:
    """Runs scripts on the host, each over its own channel of one connection."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._connections: list[asyncssh.SSHClientConnection] = []  # the jump hosts, then the host
        self._connecting = asyncio.Lock()
        self._closed = False

    async def close(self) -> None:
        """Close the connection for good; what still wants one gets `SandboxGone`."""
        self._closed = True
        await self._drop()

    async def _drop(self) -> None:
        connections, self._connections = self._connections, []
        await _close_each(connections)

    async def script(self, script: str, timeout: float = 120.0) -> tuple[int | None, bytes, bytes]:
        """Run a short housekeeping script; exit code, output, errors.

        Raises:
            AuthError: The host or the login is refused.
            Unavailable: The host is out of reach.
        """
        async with asyncio.timeout(timeout):
            process = await self.open(script, None)
            try:
                await process.close_stdin()
                out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
                code = await process.wait()
            finally:
                await process.close()
        if code is None:
            raise Unavailable(f"the connection to {self.options.host} broke")
        return code, out, err

    async def open(self, script: str, folder: str | None) -> SshProcess:
        """Start a script, which may become another program.

        Args:
            script: POSIX sh code.
            folder: The sandbox's folder, which must exist; None where there is no sandbox yet.

        Raises:
            SandboxGone: The folder is missing.
            AuthError: The host or the login is refused.
            Unavailable: The host is out of reach.
        """
        nonce = secrets.token_hex(8)
        process = await self._channel()
        try:
            await process.write(boot.encoded(boot.opening(nonce, folder) + script))
            await boot.await_opening(process, nonce, self.options.host)
        except BaseException:
            await process.close()
            raise
        process.kill = self._kill
        return process

    async def _channel(self) -> SshProcess:
        connection = await self._connection()
        create = cast(Any, connection).create_session  # its type parameter cannot be inferred
        for pause in CHANNEL_PAUSES:
            process = SshProcess()
            try:
                await create(lambda made=process: made, BOOT, encoding=None)
            except asyncssh.ChannelOpenError as error:
                if pause is None:
                    remedy = "its sshd may allow too few sessions on a connection: raise MaxSessions"
                    raise Unavailable(
                        f"{self.options.host} opens no further channel ({error}); {remedy}"
                    ) from error
                await asyncio.sleep(pause)
            except (asyncssh.Error, OSError) as error:
                raise Unavailable(f"the connection to {self.options.host} broke: {error}") from error
            else:
                return process
        raise AssertionError("the last pause is None")

    async def _kill(self, pid: int, signal: int) -> None:
        await self.script(f"kill -{signal} {pid} 2>/dev/null || sudo -n kill -{signal} {pid} 2>/dev/null; :")

    async def _connection(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connections and not self._connections[-1].is_closed():
                return self._connections[-1]
            await self._drop()
            self._connections = await self._connect_all()
            return self._connections[-1]

    async def _connect_all(self) -> list[asyncssh.SSHClientConnection]:
        """Connections to the jump hosts and, through them, to the host: all of them or none."""
        options = self.options
        hops: list[tuple[str, int | None, str | None]] = []
        for hop in options.jump.split(",") if options.jump else ():
            user, _, address = hop.strip().rpartition("@")
            host, _, port = address.partition(":")
            hops.append((host, int(port) if port else None, user or None))
        made: list[asyncssh.SSHClientConnection] = []
        try:
            for host, port, user in (*hops, (options.host, options.port, options.username)):
                made.append(await self._connect(host, port, user, made[-1] if made else None))
            if self._closed:  # meanwhile
                raise SandboxGone(CLOSED)
        except BaseException:
            await uncancelled(_close_each(made))
            raise
        return made

    async def _connect(
        self, host: str, port: int | None, username: str | None, tunnel: asyncssh.SSHClientConnection | None
    ) -> asyncssh.SSHClientConnection:
        if self._closed:
            raise SandboxGone(CLOSED)
        try:
            async with asyncio.timeout(self.options.connect_timeout):
                return await asyncssh.connect(host, **self._arguments(port, username, tunnel))
        except asyncssh.HostKeyNotVerifiable as error:
            remedy = (
                f"compare its fingerprint and add it: ssh-keyscan -p {port or 22} {host} >>~/.ssh/known_hosts"
            )
            raise AuthError(f"the host key of {host} is not trusted ({error}); {remedy}") from error
        except asyncssh.PermissionDenied as error:
            raise AuthError(
                f"{host} refuses the login ({error}); give keys=[…] or load one into an ssh-agent"
            ) from error
        except asyncssh.KeyImportError as error:
            raise AuthError(f"a private key cannot be read: {error}") from error
        except TimeoutError as error:
            raise Unavailable(f"{host} did not answer within {self.options.connect_timeout:g} s") from error
        except (asyncssh.Error, OSError) as error:
            raise Unavailable(f"cannot connect to {host}: {error}") from error

    def _arguments(
        self, port: int | None, username: str | None, tunnel: asyncssh.SSHClientConnection | None
    ) -> dict[str, Any]:
        options = self.options
        given: dict[str, Any] = {
            "port": port,
            "username": username,
            "client_keys": [str(key) for key in options.keys] or None,
            "known_hosts": str(options.known_hosts) if options.known_hosts else None,
            "config": [str(options.config)] if options.config else None,
            "tunnel": tunnel,
        }
        given = {key: value for key, value in given.items() if value is not None}
        if not options.verify_host:
            given["known_hosts"] = None
        if not options.agent:
            given["agent_path"] = None
        return given | {"keepalive_interval": options.keepalive, "keepalive_count_max": 3}


async def _close_each(connections: Sequence[asyncssh.SSHClientConnection]) -> None:
    """Close connections, the inner ones before those that carry them."""
    for connection in reversed(connections):
        connection.close()
        try:
            async with asyncio.timeout(LEAVE):
                await connection.wait_closed()
        except TimeoutError:  # it does not take what is still to be sent
            connection.abort()
