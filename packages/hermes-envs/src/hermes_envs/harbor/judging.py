"""Run a task's tests in one sandbox and see what they leave."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_envs.harbor.layout import Layout, copy_in, run_script
from hermes_envs.harbor.prepare import resolve_env
from hermes_envs.harbor.report import parse_ctrf, parse_summary, shows_start
from hermes_envs.harbor.task import walk_files
from hermes_envs.harbor.verdict import Evidence, read_reward

if TYPE_CHECKING:
    from hermes_sandbox import ExecResult, Sandbox

    from hermes_envs.harbor.task import Task

OUTPUT_LIMIT = 4 << 20
"""Bytes of the tests' output that are kept, head and tail."""
FILE_LIMIT = 8 << 20
"""Bytes of what the tests leave that are kept."""
READ_SECONDS = 120.0
"""What reading one of these files may take."""
_VERDICTS = ("reward.json", "reward.txt")


@dataclass(frozen=True)
class Observation:
    """What was seen of one run of the tests.

    Attributes:
        run: How `test.sh` ended; None when it could not be started.
        evidence: The verdict file, the report and the summary.
        files: What the tests left in `/logs/verifier`.
        wiped: Whether the way could be cleared for them.
        edited: Test files that were not as they had been copied, when the tests started or afterwards.
        seconds: Wall seconds by part.
    """

    run: ExecResult | None
    evidence: Evidence
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    wiped: bool = True
    edited: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict[str, float])


async def judge(
    task: Task, sandbox: Sandbox, layout: Layout, timeout: float, image_env: Mapping[str, str] | None = None
) -> Observation:
    """Clear the way, copy the tests in, run them, and collect what they left.

    Args:
        task: The task.
        sandbox: Where to run them.
        layout: Its folders.
        timeout: Seconds for the tests alone.
        image_env: The environment of the image; the sandbox's own way of setting it is used where None.
    """
    seconds: dict[str, float] = {}
    began = time.perf_counter()
    env = {"TASK_ROOT": layout.root}
    cleared = await run_script(sandbox, layout, "wipe", [layout.tests, layout.verdict], env=env)
    if not cleared.ok:
        return Observation(None, Evidence(None, "missing"), wiped=False)
    await copy_in(sandbox, layout, task.tests_dir, layout.tests, reader=task.config.verifier_user)
    seconds["copy"] = time.perf_counter() - began
    began = time.perf_counter()
    run, before = await _run(task, sandbox, layout, timeout, image_env)
    seconds["tests"] = time.perf_counter() - began
    began = time.perf_counter()
    after, evidence, files = await _collect(sandbox, layout)
    edited = await asyncio.to_thread(_edited, task, before, after)
    evidence = replace(evidence, summary=parse_summary(run.stdout), started=shows_start(run.stdout))
    files["test-stdout.txt"] = run.stdout
    seconds["collect"] = time.perf_counter() - began
    return Observation(run, evidence, files, edited=edited, seconds=seconds)


_TESTS = """
chmod +x "$1"/*.sh 2>/dev/null
(
    PATH=/usr/sbin:/usr/bin:/sbin:/bin
    cd -- "$1" || exit
    find . -type f -print0 | xargs -0 -r sha256sum -z --
    find . ! -type f ! -type d -printf 'link  %p\\0'
) 2>/dev/null
printf '%s' "$2"
[ -x "$1/test.sh" ] || exec /bin/bash "$1/test.sh"
exec "$1/test.sh"
"""


async def _run(
    task: Task, sandbox: Sandbox, layout: Layout, timeout: float, image_env: Mapping[str, str] | None
) -> tuple[ExecResult, dict[str, str] | None]:
    """Run `test.sh` in the image's environment, in a process of its own whose shell reads nothing at its start.

    Returns:
        How it ended, and the hashes of the test files just before it started; None where it did not start.
    """
    mark = f"\0{secrets.token_hex(16)}\n".encode()
    env = dict(image_env or {})
    if task.config.verifier_user is not None:
        env.pop("HOME", None)
    run = await sandbox.exec(
        ["/bin/bash", "--noprofile", "--norc", "-c", _TESTS, "verifier", layout.tests, mark[1:].decode()],
        env={
            **env,
            **({"TASK_ROOT": layout.root} if layout.root else {}),
            "DEBIAN_FRONTEND": "noninteractive",
            **resolve_env(task.config.verifier_env, task),
        },
        user=task.config.verifier_user,
        timeout=timeout,
        merge=True,
        output_limit=OUTPUT_LIMIT,
        trusted=image_env is not None,
    )
    listed, found, stdout = run.stdout.partition(mark)
    return (replace(run, stdout=stdout), _hashes(listed.split(b"\0"))) if found else (run, None)


def _edited(task: Task, *states: Mapping[str, str] | None) -> tuple[str, ...]:
    """Test files that at some time differ from those on the host; what the tests themselves add does not count."""
    paths = {path.relative_to(task.tests_dir).as_posix(): path for path in walk_files(task.tests_dir)}
    expected = {name: _digest(path) for name, path in paths.items()}
    seen = [hashes for hashes in states if hashes is not None]
    return tuple(
        name for name, digest in expected.items() if any(hashes.get(name) != digest for hashes in seen)
    )


def _hashes(records: Sequence[bytes]) -> dict[str, str]:
    """Digests by name from `SHA256  ./NAME` records."""
    pairs = (record.decode("utf-8", "surrogateescape").partition("  ") for record in records)
    return {name.removeprefix("./"): digest for digest, _, name in pairs if name}


def _digest(path: Path) -> str:
    return "link" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()


async def _collect(sandbox: Sandbox, layout: Layout) -> tuple[dict[str, str], Evidence, dict[str, bytes]]:
    """The hashes of the test files, what the verdict files say, and the contents of what the tests left."""
    listed = await run_script(sandbox, layout, "collect", [layout.tests, layout.verdict])
    records = listed.stdout.split(b"\0")
    end = records.index(b"")
    kinds: dict[str, str] = {}
    files: dict[str, bytes] = {}
    budget = FILE_LIMIT
    for record in records[end + 1 :]:
        kind, _, rest = record.decode("utf-8", "surrogateescape").partition("|")
        size, _, name = rest.partition("|")
        kinds[name] = kind
        if kind.startswith("regular") and size.isdecimal() and int(size) <= budget:
            budget -= int(size)
            content = await _read(sandbox, f"{layout.verdict}/{name}")
            if content is not None:
                files[name] = content
    name = next((name for name in _VERDICTS if name in kinds), None)
    evidence = read_reward(name, kinds[name], files.get(name, b"")) if name else Evidence(None, "missing")
    return _hashes(records[:end]), replace(evidence, tests=parse_ctrf(files.get("ctrf.json", b""))), files


async def _read(sandbox: Sandbox, path: str) -> bytes | None:
    """A file that was there a moment ago; None where it is gone, or has become something that cannot be read."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await sandbox.read_bytes(path, limit=FILE_LIMIT)
    except (OSError, TimeoutError):
        return None
