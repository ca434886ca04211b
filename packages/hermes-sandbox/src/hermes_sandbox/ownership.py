"""Who owns what was created, and whether the owner still lives.

Everything this package creates carries two labels: `hermes.owner`, the creating process, and
`hermes.deadline`, when it is to be gone at the latest. A process that dies without cleaning up (`kill -9`, a
reboot) leaves things whose owner can be seen to be dead; the next process that starts removes them.

An owner is judged only where that can be done with certainty: on its own host, in its own pid namespace. From
anywhere else (a container beside it, another machine that uses the same Docker daemon, ssh host or cloud
account) nothing is known, and only the deadline counts.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OWNER = "hermes.owner"
DEADLINE = "hermes.deadline"
RESERVED = "hermes."
DEFAULT_LIFETIME = 7 * 86400.0
"""Seconds after which something without a `lifetime` of its own is taken for abandoned, whoever owns it."""

Life = Literal["alive", "dead", "unknown"]


@dataclass(frozen=True, slots=True)
class Owner:
    """One process, named so that no other process, earlier or later, here or elsewhere, has the same name.

    Attributes:
        host: A hash of the machine's id and host name.
        namespace: The process's pid namespace; "0" where there are none.
        boot: The boot id of the running kernel; "0" where unknown.
        pid: The process id in its namespace.
        start: When it started, in the kernel's ticks since boot; "0" where unknown.
    """

    host: str
    namespace: str
    boot: str
    pid: int
    start: str

    @classmethod
    def current(cls) -> Owner:
        """The calling process."""
        pid = os.getpid()
        return cls(_host(), _namespace(), _boot(), pid, _start_time(pid) or "0")

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read what `str(owner)` gave; None for anything else."""
        parts = text.split("/")
        if len(parts) != 5 or not all(parts) or not parts[3].isdigit():
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), parts[4])

    def __str__(self) -> str:
        return f"{self.host}/{self.namespace}/{self.boot}/{self.pid}/{self.start}"

    def life(self) -> Life:
        """Whether the process still runs, as far as that can be known from here."""
        if self.host != _host():
            return "unknown"
        if self.boot != _boot():
            return "dead"
        if self.namespace != _namespace():
            return "unknown"
        start = _start_time(self.pid)
        if start is None:
            return "dead"
        return "alive" if start == self.start else "dead"


def owner_labels(lifetime: float | None = None) -> dict[str, str]:
    """The labels for something that this process creates now.

    Args:
        lifetime: Seconds until it may be removed whatever its owner does; `DEFAULT_LIFETIME` when None.
    """
    deadline = time.time() + (DEFAULT_LIFETIME if lifetime is None else lifetime)
    return {OWNER: str(Owner.current()), DEADLINE: str(int(deadline) + 1)}


def with_owner(labels: Mapping[str, str], lifetime: float | None = None) -> dict[str, str]:
    """A user's labels and the owner's.

    Raises:
        ValueError: A label begins with `hermes.`, which is reserved.
    """
    for key in labels:
        if key.startswith(RESERVED):
            raise ValueError(
                f"the label {key!r} begins with {RESERVED!r}, which hermes-sandbox keeps for itself"
            )
    return dict(labels) | owner_labels(lifetime)


def abandoned(labels: Mapping[str, str], now: float | None = None) -> str | None:
    """Why the bearer of these labels may be removed, or None.

    What has no valid owner label was not created here and is never abandoned, whatever its deadline says.
    """
    owner = Owner.parse(labels.get(OWNER, ""))
    if owner is None:
        return None
    if owner.life() == "dead":
        return f"its owner, process {owner.pid}, is dead"
    with suppress(ValueError):
        if float(labels.get(DEADLINE, "inf")) < (time.time() if now is None else now):
            return "it is past its deadline"
    return None


def _host() -> str:
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip()
    return hashlib.sha256(f"{machine}\n{socket.gethostname()}".encode()).hexdigest()[:16]


def _namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    return "0"


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return "0"


def _start_time(pid: int) -> str | None:
    """When `pid` started: field 22 of proc(5)'s `stat`; "0" without a /proc, None if there is no such process.

    A zombie counts as gone: it can clean up nothing any more.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return _signalled(pid) if not Path("/proc/self").exists() else None
    fields = stat[stat.rindex(b")") + 2 :].split()  # the second field, a name, may hold anything
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _signalled(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "0"
    return "0"
