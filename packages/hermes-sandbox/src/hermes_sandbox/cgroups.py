"""What the kernel counts about a group of processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
PROCESSES = Path("/proc")


def oom_kills(pid: int, groups: Path = GROUPS, processes: Path = PROCESSES) -> int:
    """How often the kernel killed something in the control group of process `pid` for want of memory; 0 if unknown.

    Version 1 has a tree for memory (`memory.oom_control`), version 2 one for everything (`memory.events`).
    """
    with suppress(OSError, ValueError):
        for line in (processes / str(pid) / "cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                file = groups / "memory" / path.lstrip("/") / "memory.oom_control"
            elif number == "0" and not controllers:
                file = groups / path.lstrip("/") / "memory.events"
            else:
                continue
            if file.is_file():
                return _count(file.read_text())
    return 0


def _count(text: str) -> int:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0
