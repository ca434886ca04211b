"""Where a task's folders are inside a sandbox, and the small root scripts that act on them."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_sandbox import ExecResult, Sandbox


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of a task inside one sandbox.

    Attributes:
        root: What stands before `/tests` and `/logs`: "" where the sandbox has a root of its own, else its folder (`TASK_ROOT`).
        image: Whether it was made from an image, so that root in it may change everything and there is an original.
        superuser: Whom to name to act as root; None where commands run as root anyway, or nobody can.
    """

    root: str = ""
    image: bool = True
    superuser: str | None = None

    @classmethod
    def of(cls, sandbox: Sandbox) -> Layout:
        """The layout of a sandbox."""
        image = sandbox.spec.image is not None
        return cls(sandbox.root, image, "root" if sandbox.backend == "docker" else None)

    @property
    def tests(self) -> str:
        """Where the tests are copied after the agent."""
        return f"{self.root}/tests"

    @property
    def logs(self) -> str:
        """Where agents and tests leave files."""
        return f"{self.root}/logs"

    @property
    def verdict(self) -> str:
        """Where the tests write their verdict."""
        return f"{self.root}/logs/verifier"

    @property
    def solution(self) -> str:
        """Where the author's solution is copied for the oracle."""
        return f"{self.root}/solution"

    @property
    def setup(self) -> str:
        """Where the environment's files lie while a sandbox without an image is set up."""
        return f"{self.root}/.environment"


_NOT_ROOT = 77


async def run_script(
    sandbox: Sandbox,
    layout: Layout,
    name: str,
    arguments: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    early: bool = False,
) -> ExecResult:
    """Run one of this package's bash scripts as root, past whatever the agent may have changed in its own shells.

    Args:
        sandbox: Where.
        layout: Its folders.
        name: The script.
        arguments: The script's arguments.
        env: The script's variables.
        timeout: Seconds for it.
        early: Nobody has acted in the sandbox yet, so that its own runner can be trusted: that saves a process.
    """
    source = files("hermes_envs.harbor").joinpath("scripts", f"{name}.bash").read_text()
    script = f"set -- {shlex.join(arguments)}\nexport LC_ALL=C\n{source}"

    async def run(script: str, user: str | None, *, trusted: bool) -> ExecResult:
        return await sandbox.exec(
            ["/bin/bash", "--noprofile", "--norc", "-c", script],
            cwd=layout.root or "/",
            env={"BASH_ENV": "", **(env or {})},
            user=user,
            timeout=timeout,
            trusted=trusted,
            output_limit=8 << 20,
        )

    if early and layout.superuser is not None:
        done = await run(f"[ $EUID = 0 ] || exit {_NOT_ROOT}\n{script}", None, trusted=False)
        if done.exit_code != _NOT_ROOT:
            return done
    return await run(script, layout.superuser, trusted=True)


async def make_folders(sandbox: Sandbox, layout: Layout, *folders: str, early: bool = False) -> None:
    """Make folders that everybody may write."""
    await run_script(sandbox, layout, "folders", folders, early=early)


async def copy_in(
    sandbox: Sandbox, layout: Layout, source: Path, target: str, *, reader: str | None = None
) -> None:
    """Copy a local folder's contents into a folder inside, whoever commands run as there.

    Args:
        sandbox: Where to.
        layout: Its folders.
        source: The folder here.
        target: The folder there.
        reader: The user who reads it, where that is another than the sandbox's: its modes here may not let them.
    """
    who = await sandbox.exec(["id", "-u"], timeout=60)
    if layout.superuser is None or who.stdout.strip() == b"0":
        await sandbox.upload(source, target)
        if reader is not None:
            await run_script(sandbox, layout, "readable", [target])
        return None
    files = await asyncio.to_thread(_read_tree, source)
    await make_folders(sandbox, layout, *sorted({posixpath.dirname(f"{target}/{name}") for name in files}))
    for name, (content, mode) in files.items():
        if not await sandbox.write_outside(f"{target}/{name}", content, mode=mode):
            return await sandbox.upload(source, target)
    return None


def _read_tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of every file; scripts can be executed, since who runs them may not own them."""
    found: dict[str, tuple[bytes, int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            mode = path.stat().st_mode & 0o777 | (0o555 if path.suffix == ".sh" else 0o444)
            found[path.relative_to(folder).as_posix()] = (path.read_bytes(), mode)
    return found
