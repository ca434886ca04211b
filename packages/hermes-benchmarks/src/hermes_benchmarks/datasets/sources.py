"""From the name of a dataset to its tasks."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_envs.harbor import Task, load_tasks
from hermes_envs.harbor.errors import UnknownTask, UnsupportedTask
from hermes_envs.harbor.task import unknown_task_message

from hermes_benchmarks.datasets.rows import tasks_from_rows
from hermes_benchmarks.datasets.sample_set import sample_path

ROW_FILES = (".parquet", ".jsonl")

PINNED = {
    "NousResearch/terminal-bench-2": "e837821065825f4df78220cf7aa302abd2708401",
    "NousResearch/openthoughts-tblite": "44c975f590dde88316572d7e2a779ec1112d4a4b",
}
"""The revisions that a bare dataset name stands for, so that a run can be repeated."""


class DatasetError(ValueError):
    """A dataset cannot be read; the message says what to do."""


def load_dataset_tasks(
    dataset: str | Path,
    *,
    only: Sequence[str] | None = None,
    skip: Iterable[str] = (),
    split: str = "train",
    cache: Path | None = None,
    unsupported: dict[str, str] | None = None,
) -> list[Task]:
    """The tasks of a dataset, sorted by name.

    Args:
        dataset: `sample`; a folder of task folders; a `.parquet` or `.jsonl` file of rows; or the name of a Hugging Face
            dataset, with `@REVISION` to choose one.
        only: Names to read, in place of all.
        skip: Names to leave out.
        split: The split of a Hugging Face dataset.
        cache: Where rows are unpacked to; `hermes-benchmarks` in the user's cache folder by default.
        unsupported: Takes the names of a folder's tasks that ask for what this package does not do, each with its reason;
            without it, or where such a task is named in `only`, it is an error.

    Raises:
        DatasetError: There is no such dataset, or a library is missing.
        TaskError: A task of it cannot be used.
        UnknownTask: A name in `only` is not in it.
    """
    if str(dataset) == "sample":
        return load_tasks(sample_path(), only=only, skip=skip)
    path = Path(os.path.expanduser(dataset))  # noqa: PTH111 - pathlib raises where there is no such user
    if path.is_dir():
        if unsupported is None or only is not None or (path / "task.toml").is_file():
            return load_tasks(path, only=only, skip=skip)
        return _supported(path, set(skip), unsupported)
    if path.suffix in ROW_FILES:
        return _select(_local_rows(path), only, skip, _cache(cache))
    name, _, revision = str(dataset).partition("@")
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        message = f"no dataset {str(dataset)!r}: give a folder of tasks, a .parquet or .jsonl file, OWNER/NAME, or sample"
        raise DatasetError(message)
    revision = revision or PINNED.get(name, "main")
    return _select(_hub_rows(name, revision, split), only, skip, _cache(cache))


def stray_folders(dataset: str) -> list[str]:
    """The names of folders in a folder of tasks that look like tasks and hold no `task.toml`."""
    root = Path(os.path.expanduser(dataset))  # noqa: PTH111 - pathlib raises where there is no such user
    if (root / "task.toml").is_file():
        return []
    return [
        folder.name
        for folder in sorted(root.glob("*/"))
        if not (folder / "task.toml").exists()
        and ((folder / "instruction.md").is_file() or (folder / "tests").is_dir())
    ]


def _supported(root: Path, skip: set[str], unsupported: dict[str, str]) -> list[Task]:
    """A folder's tasks but for those that are not supported, which are noted."""
    tasks: list[Task] = []
    for folder in sorted(root.glob("*/")):
        if folder.name not in skip and (folder / "task.toml").is_file():
            try:
                tasks += load_tasks(folder)
            except UnsupportedTask as error:
                unsupported[folder.name] = str(error).removeprefix(f"{error.path}: ")
    return tasks if tasks or unsupported else load_tasks(root, skip=skip)


def _select(
    rows: Iterable[Mapping[str, Any]], only: Sequence[str] | None, skip: Iterable[str], folder: Path
) -> list[Task]:
    """Unpack the chosen rows alone: a dataset's tars are large."""
    by_name: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if by_name.setdefault(str(row.get("task_name")), row) is not row:
            raise DatasetError(f"two rows are called {row.get('task_name')}")
    for name in only or ():
        if name not in by_name:
            raise UnknownTask(unknown_task_message(name, by_name))
    left_out = set(skip)
    chosen = by_name if only is None else set(only)
    return tasks_from_rows(
        (row for name, row in by_name.items() if name in chosen and name not in left_out), folder
    )


def _local_rows(path: Path) -> list[Mapping[str, Any]]:
    if not path.is_file():
        raise DatasetError(f"no such file: {path}")
    if path.suffix == ".jsonl":
        try:
            with path.open(encoding="utf-8") as file:
                rows = [json.loads(line) for line in file if line.strip()]
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{path} is no JSONL file: {error}") from None
        if not all(isinstance(row, dict) for row in rows):
            raise DatasetError(f"{path} is no JSONL file of rows: each line must be an object")
        return rows
    parquet = _library("pyarrow.parquet", f"reading {path}")
    try:
        return parquet.read_table(path).to_pylist()
    except (ValueError, NotImplementedError) as error:
        raise DatasetError(f"{path} is no Parquet file: {error}") from None


def _hub_rows(name: str, revision: str, split: str) -> Iterable[Mapping[str, Any]]:
    datasets = _library("datasets", f"loading {name}")
    try:
        return datasets.load_dataset(name, split=split, revision=revision)
    except Exception as error:  # the library raises errors of half a dozen others
        reason = str(error).strip().splitlines() or [type(error).__name__]
        message = f"cannot load {name}@{revision} from the Hugging Face hub: {reason[0]}. A local copy can be given by its path."
        raise DatasetError(message) from error


def _library(module: str, doing: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"{doing} needs an extra: pip install 'hermes-benchmarks[hub]'"
        raise DatasetError(message) from None


def _cache(folder: Path | None) -> Path:
    if folder is not None:
        return folder
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "hermes-benchmarks" / "tasks"
