"""Find and signal the processes of a sandbox that runs on this machine, through /proc."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal as signals
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes_sandbox.backend import Tree
from hermes_sandbox.jobs import MARK

_LISTINGS = 4
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """One living process.

    Attributes:
        pid: Its number.
        parent: Its parent's.
        group: Its process group's.
        session: Its session's.
        mark: The value of `HERMES_MARK` in its environment, or "".
        bare: It has neither environment nor arguments: a kernel thread, or one that just begins a program.
    """

    pid: int
    parent: int
    group: int
    session: int
    mark: str
    bare: bool


def processes() -> Iterator[Entry]:
    """Every living process; zombies and those that may not be looked at count as without a mark.

    One that forks and ends between the listing and the look at it would hide its child. So the listing is repeated for
    what is new, though not for ever: a storm of forks is met by looking again after the signal.
    """
    seen: set[str] = set()
    for _ in range(_LISTINGS):
        with os.scandir("/proc") as entries:
            new = [entry.name for entry in entries if entry.name.isdigit() and entry.name not in seen]
        if not new:
            break
        seen.update(new)
        for name in new:
            if (entry := _look(name)) is not None:
                yield entry


def _look(name: str) -> Entry | None:
    try:
        stat = _read(f"/proc/{name}/stat")
    except OSError:
        return None
    state, parent, group, session = stat[stat.rindex(b")") + 2 :].split(None, 4)[:4]
    if state in (b"Z", b"X"):
        return None
    needle, mark, bare = f"{MARK}=".encode(), "", False
    with contextlib.suppress(OSError):
        environment = _read(f"/proc/{name}/environ")
        bare = not environment and not _read(f"/proc/{name}/cmdline")
        for variable in environment.split(b"\0") if needle in environment else ():
            if variable.startswith(needle):
                mark = variable[len(needle) :].decode(errors="replace")
    return Entry(int(name), int(parent), int(group), int(session), mark, bare)


def _read(path: str) -> bytes:
    """A file of /proc. There are hundreds for each look at the table, so that `Path` would cost more than reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def snapshot() -> dict[int, Entry]:
    """Every living process but the first and this one."""
    return {entry.pid: entry for entry in processes() if entry.pid not in (1, os.getpid())}


def members(tree: Tree, table: Mapping[int, Entry] | None = None) -> set[int]:
    """The processes that belong to a command."""
    table = snapshot() if table is None else table
    spared = {pid for pid, entry in table.items() if _spared(entry, tree)}
    found = {pid for pid, entry in table.items() if pid not in spared and _belongs(entry, tree)}
    root = {tree.root} if tree.shell and tree.root else set[int]()
    seeds = found | root
    children: dict[int, list[int]] = {}
    for entry in table.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    waiting = list(seeds)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in seeds and child not in spared:
                seeds.add(child)
                waiting.append(child)
    return seeds - root


def _spared(entry: Entry, tree: Tree) -> bool:
    if not tree.shell or entry.mark == tree.mark:
        return False
    other = entry.mark.startswith(tree.shell) and entry.mark != f"{tree.shell}0"
    return other or entry.pid in tree.spare


def _belongs(entry: Entry, tree: Tree) -> bool:
    if tree.mark and entry.mark == tree.mark:
        return entry.pid != tree.root or not tree.shell
    return not tree.shell and bool(tree.root) and tree.root in (entry.pid, entry.group, entry.session)


def signal_tree(tree: Tree, signal: int) -> int:
    """Signal every process of a command; how many there were.

    An orphan that just begins a program cannot be told from others; it is counted, so that it is looked at again.
    """
    table = snapshot()
    found = members(tree, table)
    bare = [each for each in table.values() if each.bare and each.pid not in found]
    return send(found, signal, first=tree.root) + sum(
        each.parent != 0 and each.parent not in table for each in bare
    )


def send(pids: set[int], signal: int, *, first: int | None = None) -> int:
    """Signal these processes; how many there were.

    Parents before their children as far as numbers tell: one that handles the signal shall not find its children dead
    before it.
    """
    for pid in sorted(pids, key=lambda pid: (pid != first, pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal)
    return len(pids)


async def end_inhabitants(prefix: str, folder: Path) -> None:
    """SIGKILL these processes until there are none, so that nothing more is written in the folder."""

    def kill() -> int:
        return send(inhabitants(prefix, folder), signals.SIGKILL)

    for _ in range(_ROUNDS):
        if not await asyncio.to_thread(kill):  # reading all of /proc takes its time
            break
        await asyncio.sleep(0.02)


def inhabitants(prefix: str, folder: Path) -> set[int]:
    """The processes whose mark begins with `prefix`, or that work inside `folder`."""
    found: set[int] = set()
    place = f"{folder}/"
    for entry in processes():
        if entry.mark.startswith(prefix):
            found.add(entry.pid)
        else:
            with contextlib.suppress(OSError):
                cwd = os.readlink(f"/proc/{entry.pid}/cwd")  # noqa: PTH115 - as in `_read`
                if f"{cwd}/".startswith(place):
                    found.add(entry.pid)
    return found - {os.getpid()}
