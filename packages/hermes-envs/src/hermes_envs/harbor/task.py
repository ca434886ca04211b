"""A Harbor task folder: an instruction, an environment, tests, and perhaps a solution."""

import difflib
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hermes_envs.harbor.config import TaskConfig, read_config
from hermes_envs.harbor.errors import TaskError, UnknownTask, UnsupportedTask

MAX_NAME = 200
"""Bytes of a task's name in UTF-8; it becomes part of file names and labels."""
_COPIED = frozenset(
    {
        *("environment", "environment/Dockerfile", "environment/setup.sh"),
        *("tests", "tests/test.sh", "solution", "solution/solve.sh"),
    }
)
"""What goes into containers by these names, so that each must be here."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: The folder's name.
        path: The folder.
        instruction: What the agent is asked, from `instruction.md`.
        config: What `task.toml` says.
        warnings: One sentence for each thing in the folder that is passed over.
    """

    name: str
    path: Path
    instruction: str
    config: TaskConfig = field(default_factory=TaskConfig)
    warnings: tuple[str, ...] = ()

    @property
    def environment_dir(self) -> Path:
        """What the image is built from."""
        return self.path / "environment"

    @property
    def solution_dir(self) -> Path:
        """The author's solution; it may be missing."""
        return self.path / "solution"

    @property
    def tests_dir(self) -> Path:
        """What becomes `/tests` after the agent has ended."""
        return self.path / "tests"

    @property
    def has_solution(self) -> bool:
        """Whether the oracle can be run."""
        return (self.solution_dir / "solve.sh").is_file()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over every file of the folder: its path, its executable bit and its content."""
        return tree_checksum(self.path)


def load_task(path: str | Path) -> Task:
    """Read one task folder.

    Raises:
        TaskError: The folder cannot be used; the message names the file and the key. `UnsupportedTask`: nowhere here.
    """
    folder = _absolute(path)  # links are not followed: the folder's name is the one that it has here
    if not folder.name.isprintable() or len(os.fsencode(folder.name)) > MAX_NAME:
        message = f"a task is named after its folder: rename it to printable text of at most {MAX_NAME} bytes"
        raise TaskError(message, path=folder)
    config, warnings = read_config(folder / "task.toml")
    for needed in ("instruction.md", "tests/test.sh"):
        if not (folder / needed).is_file():
            raise TaskError("there is no such file; a task folder needs one", path=folder / needed)
    if config.docker_image is None and not (folder / "environment" / "Dockerfile").is_file():
        message = "a task needs a Dockerfile here, or docker_image in its task.toml"
        raise TaskError(message, path=folder / "environment")
    if any((folder / "environment").glob("docker-compose.y*ml")):
        raise UnsupportedTask(
            "tasks of several containers (compose) are not supported", path=folder / "environment"
        )
    if (stray := _stray_link(folder)) is not None:
        message = "this link leads out of the task's folder, where no container can follow; copy the dataset with `cp -rL`"
        raise TaskError(message, path=stray)
    for warning in warnings:
        logger.warning("%s: %s", folder / "task.toml", warning)
    return Task(folder.name, folder, _instruction(folder / "instruction.md"), config, warnings)


def load_tasks(
    path: str | Path, *, only: Sequence[str] | None = None, skip: Iterable[str] = ()
) -> list[Task]:
    """Read every task under a folder, or the one task that the folder is, sorted by name.

    Args:
        path: A folder of task folders, or one task folder.
        only: Names to read, in place of all.
        skip: Names to leave out, unread; one that does not exist is passed over.

    Raises:
        TaskError: There is no task here, or one of those asked for cannot be used.
        UnknownTask: A name in `only` is not here; the message names the nearest.
    """
    root = Path(path)
    folders = {folder.name: folder for folder in _task_folders(root)}
    if not folders:
        message = (
            "no task here: expected folders that hold a task.toml" if root.is_dir() else "no such folder"
        )
        raise TaskError(message, path=root)
    for name in only or ():
        if name not in folders:
            raise UnknownTask(unknown_task_message(name, folders))
    left_out = set(skip)
    chosen = sorted(folders) if only is None else sorted(set(only))
    return [load_task(folders[name]) for name in chosen if name not in left_out]


def unknown_task_message(name: str, names: Iterable[str]) -> str:
    """One sentence that says that there is no such task and names the nearest."""
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(known)}, such as {known[0]}"
    return f"no task {name!r}: {hint}"


def tree_checksum(folder: Path) -> str:
    """SHA-256 over a folder's files, independent of where it lies and of time stamps."""
    digest = hashlib.sha256()
    for path in walk_files(folder):
        name = path.relative_to(folder).as_posix()
        content = (
            str(path.readlink()).encode("utf-8", "surrogateescape")
            if path.is_symlink()
            else path.read_bytes()
        )
        kind = "l" if path.is_symlink() else "x" if path.stat().st_mode & 0o100 else "f"
        digest.update(f"{kind} {len(content)} {name}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def walk_files(folder: Path) -> Iterator[Path]:
    """The files and links under a folder in a fixed order; what Python and editors leave there is passed over."""
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts or path.name == ".DS_Store":
            continue
        if path.is_symlink() or path.is_file():
            yield path


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links


def _stray_link(folder: Path) -> Path | None:
    """A link that cannot lead to the same in a container. One with an absolute path may mean something there."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            target = path.readlink()
            if target.is_absolute():
                out = path.relative_to(folder).as_posix() in _COPIED
            else:
                out = not _absolute(path.parent / target).is_relative_to(folder)
            if out:
                return path
    return None


def _instruction(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(f"not UTF-8 text: {error}", path=path) from None


def _task_folders(root: Path) -> list[Path]:
    if (root / "task.toml").is_file():
        return [_absolute(root)]
    return sorted(folder for folder in root.glob("*/") if (folder / "task.toml").is_file())
