"""A real OpenSSH server on loopback with throw-away keys. It writes nothing outside its own folder."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/pid
UsePAM no
StrictModes no
PasswordAuthentication no
MaxSessions {sessions}
MaxStartups 200
LogLevel VERBOSE
"""


@dataclass(frozen=True)
class Sshd:
    """A running server and what a client needs to log in."""

    port: int
    folder: Path
    sandboxes: Path
    process: subprocess.Popen[bytes]

    @property
    def key(self) -> Path:
        return self.folder / "user_key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def options(self) -> dict[str, object]:
        """Options of the ssh backend."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "keys": [self.key],
            "known_hosts": self.known_hosts,
            "agent": False,
            "folder": str(self.sandboxes),
            "connect_timeout": 60.0,
        }

    def connected(self) -> int:
        """How many connections were made by now. The server notes each before it says anything."""
        return (self.folder / "log").read_bytes().count(b"Connection from ")

    def connections(self) -> list[int]:
        """Process ids of the servers of the connections that are open now."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        return [int(word) for word in found.stdout.split()]

    def cut(self) -> None:
        """End every open connection at once, as a broken network does."""
        for pid in self.connections():
            children = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True
            )
            with contextlib.suppress(ProcessLookupError):  # one that was on its way out
                os.kill(pid, 9)
            for child in children.stdout.split():
                name = Path(f"/proc/{child}/comm")
                with contextlib.suppress(OSError):
                    if name.read_text().strip().startswith("sshd"):
                        os.kill(int(child), 9)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of loopback that nobody else gets meanwhile. Nobody listens there, but an sshd may be told to."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as sshd does, so that both have it
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


@contextlib.contextmanager
def running_sshd(folder: Path, *, sessions: int = 10, config: str = "") -> Iterator[Sshd]:
    """Start a server in its own mount namespace, so that it can have a /run/sshd without writing there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host_key", "user_key"):
        if not (folder / name).exists():
            make_key(folder / name)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    # Not below `folder`, for other users must be able to reach it.
    sandboxes = Path(tempfile.mkdtemp(prefix="hermes-ssh-test-", dir="/tmp"))
    with reserved_port() as port:
        kind, key = (folder / "host_key.pub").read_text().split()[:2]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
        (folder / "config").write_text(CONFIG.format(port=port, folder=folder, sessions=sessions) + config)
        sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        script = (
            f"mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec {sshd} -D -e -f {folder}/config"
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(["unshare", "-m", "bash", "-c", script], stdout=log, stderr=log)
        try:
            _await_banner(port, process, folder / "log")
            yield Sshd(port, folder, sandboxes, process)
        finally:
            process.terminate()
            process.wait(60)
            shutil.rmtree(sandboxes, ignore_errors=True)


def _await_banner(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as probe:
            if probe.recv(4) == b"SSH-":
                return
        time.sleep(0.05)
    raise RuntimeError(f"sshd did not start: {log.read_text()}")
