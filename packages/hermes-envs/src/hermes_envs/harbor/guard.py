"""Undo what an agent changed in the machinery that will judge it, before the tests run in its container.

An agent that is root in its container can replace the programs that the tests call, or plant what they load at their
start. `take_baseline` records both before the agent acts; `repair` compares afterwards, puts the image's own files
back from a pristine container, and removes what was planted. What it cannot see: changes to the content of installed
libraries, programs compiled to take the place of an interpreter, and processes that are still alive. `fresh` mode
ends the last; the first two are caught only where the report gives them away.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Protocol

from hermes_envs.harbor.layout import Layout, run_script

if TYPE_CHECKING:
    from hermes_sandbox import Sandbox

PRELOAD = "/etc/ld.so.preload"
_LARGEST = 64 << 20
_OURS = ("HERMES_", "PWD=", "OLDPWD=", "SHLVL=", "_=")
_INTERPRETERS = re.compile(r"(?:python|pip|git|uvx?)[0-9.]*$")
_PLANTED_PTH = re.compile(rb"^import[ \t]", re.MULTILINE)
_COVERAGE = (
    rb"""import sys; exec('import os\n\nif os.getenv("COVERAGE_PROCESS_START") or os.getenv("COVERAGE_PROCESS_CONFIG"):"""
    rb"""\n try:\n  import coverage\n except:\n  pass\n else:\n  coverage.process_startup(slug="pth")')"""
)
_DISTUTILS = (
    rb"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
    rb"enabled and __import__('_distutils_hack').add_shim();"
)
# The lines of .pth files by which installers make a project editable, or a namespace, and those of three common packages.
_KNOWN_PTH = re.compile(
    rb"(?:import __editable___\w+; __editable___\w+\.install\(\)|import _virtualenv"
    rb"|import sys, types, os;(?!.*(?:exec|eval|open|system|compile|fork|spawn)).*\bf_locals\['sitedir'\].*"
    rb"|" + re.escape(_COVERAGE) + rb"|" + re.escape(_DISTUTILS) + rb")\s*"
)
# What Debian's packages of Python and wget put in place; a planted apport_python_hook is looked for by its own name.
_KNOWN_HOOK = re.compile(
    rb"# install the apport exception handler[^\n]*\ntry:\n\s+import apport_python_hook\nexcept ImportError:\n\s+pass\n"
    rb"else:\n\s+apport_python_hook\.install\(\)\n|(?:[ \t]*(?:#[^\n]*|passive_ftp = on)?\n)*"
)
_ENTRY_POINT = re.compile(
    rb"#!\S*python[0-9.]*(?: -\w+)?\n(?:\s*#[^\n]*\n|\s*\n|import (?:re|sys)\n"
    rb"|from (?:pip|pytest|_pytest|uv)[\w.]* import \w+(?: as \w+)?\n"
    rb"|if __name__ == ['\"]__main__['\"]:\n"
    rb"|\s*sys\.argv\[0\] = (?:re\.sub\(r['\"][^\n]*['\"], ['\"]['\"], sys\.argv\[0\]\)|sys\.argv\[0\]\.removesuffix\(['\"]\.exe['\"]\))\n"
    rb"|\s*if sys\.argv\[0\]\.endswith\(['\"]\.exe['\"]\):\n|\s*sys\.argv\[0\] = sys\.argv\[0\]\[:-4\]\n"
    rb"|\s*(?:sys\.exit|raise SystemExit)\(\w+\(\)\)\n?)+"
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The judge's machinery before the agent acted.

    Attributes:
        files: SHA-256 by path, of programs and of files that are read at a program's start.
        roots: The programs by which the comparison itself works; they are read from outside.
        env: The environment that commands had.
    """

    files: Mapping[str, str]
    roots: tuple[str, ...]
    env: Mapping[str, str]


class Pristine(Protocol):
    """Makes a container of the task's image in which nobody has acted."""

    def __call__(self) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox, closed at the end of the context."""
        ...


async def take_baseline(sandbox: Sandbox, layout: Layout) -> Baseline | None:
    """Record the judge's machinery; None where that means nothing (no root of its own) or cannot be done."""
    if not layout.image:
        return None
    asked = await sandbox.exec(["env", "-0"], timeout=60)
    entries = asked.stdout.decode("utf-8", "surrogateescape").split("\0")
    pairs = (entry.partition("=") for entry in entries if "=" in entry and not entry.startswith(_OURS))
    env = {name: value for name, _, value in pairs}
    files, roots = await _scan(sandbox, layout, env, early=True)
    return Baseline(files, tuple(root for root in roots if root in files), env) if files else None


async def repair(sandbox: Sandbox, layout: Layout, baseline: Baseline, pristine: Pristine) -> tuple[str, ...]:
    """Put the judge's machinery back into its former state.

    Returns:
        One phrase for each thing that was undone.
    """
    hashing = asyncio.gather(*(_hash_from_outside(sandbox, path) for path in baseline.roots))
    done, found = await asyncio.gather(_disarm_preload(sandbox, baseline), hashing)
    pairs = zip(baseline.roots, found, strict=True)
    broken = [path for path, digest in pairs if digest != baseline.files[path]]
    if broken:
        await _restore(sandbox, broken, pristine)
    files, _ = await _scan(sandbox, layout, baseline.env)
    changed = [path for path, digest in baseline.files.items() if path in files and files[path] != digest]
    known = set(baseline.files.values())
    planted = [path for path, digest in files.items() if path not in baseline.files and digest not in known]
    verdicts = asyncio.gather(*(_must_go(sandbox, path, changed=True) for path in changed))
    others = asyncio.gather(*(_must_go(sandbox, path, changed=False) for path in planted))
    restore = list(compress(changed, await verdicts))
    remove = list(compress(planted, await others))
    if remove:
        await run_script(sandbox, layout, "remove", remove)
    if restore:
        await _restore(sandbox, restore, pristine)
    undone = [*(f"restored {path}" for path in (*broken, *restore)), *(f"removed {path}" for path in remove)]
    return (*done, *undone)


async def _scan(
    sandbox: Sandbox, layout: Layout, env: Mapping[str, str], *, early: bool = False
) -> tuple[dict[str, str], list[str]]:
    """The machinery's files with their hashes, and the programs by which the scan works."""
    given = {"IMAGE_PATH": env.get("PATH", ""), "IMAGE_HOME": env.get("HOME", "")}
    done = await run_script(sandbox, layout, "scan", env=given, early=early)
    listed, _, roots = done.stdout.decode("utf-8", "surrogateescape").partition("\0\0")
    files: dict[str, str] = {}
    for record in listed.split("\0"):
        digest, _, name = record.partition("  ")
        if name:
            files[name] = digest
    return files, roots.strip("\0\n").split("\n")


async def _must_go(sandbox: Sandbox, path: str, *, changed: bool) -> bool:
    """Whether a file that is new, or other than it was, could serve to mislead the tests.

    Real programs in place of none are what agents install; scripts under the names of programs are what cheats plant.
    """
    if path.startswith("/etc/apt/"):
        return b"Invoke" in await _content(sandbox, path)
    if path.endswith(".pth"):
        content = await _content(sandbox, path)
        lines = [line for line in content.splitlines() if _PLANTED_PTH.match(line)]
        return not all(_KNOWN_PTH.fullmatch(line) for line in lines)
    content = await _content(sandbox, path)
    if not _is_program(path):
        deliverable = path.count("/") == 1 and sandbox.workdir == "/"
        return not deliverable and not _KNOWN_HOOK.fullmatch(content)
    if not content.startswith(b"\x7fELF"):
        return not _ENTRY_POINT.fullmatch(content)
    return changed and not _INTERPRETERS.match(posixpath.basename(path))


def _is_program(path: str) -> bool:
    folder, name = posixpath.split(path)
    return (posixpath.basename(folder) in ("bin", "sbin") and name != "env") or path in (
        "/usr/bin/env",
        "/bin/env",
    )


async def _content(sandbox: Sandbox, path: str) -> bytes:
    try:
        return await sandbox.read_bytes(path, limit=1 << 16)
    except OSError:
        return b""


async def _hash_from_outside(sandbox: Sandbox, path: str) -> str | None:
    """The hash of a file as the backend itself hands it out, where it can; no program inside is asked."""
    content = await _fetch(sandbox, path)
    return None if content is None else hashlib.sha256(content).hexdigest()


async def _fetch(sandbox: Sandbox, path: str) -> bytes | None:
    content = await sandbox.read_outside(path, limit=_LARGEST)
    if content is not None:
        return content
    try:
        return await sandbox.read_bytes(path, limit=_LARGEST)
    except OSError:
        return None


async def _put(sandbox: Sandbox, path: str, content: bytes, mode: int) -> None:
    if not await sandbox.write_outside(path, content, mode=mode):
        await sandbox.write_bytes(path, content, mode=mode)


async def _disarm_preload(sandbox: Sandbox, baseline: Baseline) -> tuple[str, ...]:
    """Empty a planted preload list first: until then every program inside, ours too, may be led astray."""
    if PRELOAD in baseline.files or not await sandbox.read_outside(PRELOAD, limit=_LARGEST):
        return ()
    await _put(sandbox, PRELOAD, b"", 0o644)
    return (f"emptied {PRELOAD}",)


async def _restore(sandbox: Sandbox, paths: list[str], pristine: Pristine) -> None:
    async with pristine() as source:
        real = await source.exec(["readlink", "-f", "--", *paths], timeout=60, check=True)

        async def bring_back(path: str, target: str) -> None:
            content = await _fetch(source, target)
            if content is not None:
                await _put(sandbox, path, content, 0o755 if _is_program(path) else 0o644)

        targets = real.stdout.decode().splitlines()
        await asyncio.gather(*(bring_back(*pair) for pair in zip(paths, targets, strict=True)))
