"""Tasks from rows in the column form that is published on Hugging Face.

Columns read: `task_name`, `instruction`, `environment_tar`, `tests_tar`, `test_sh`, `docker_image`, `category`, `difficulty`, `tags` (a JSON
text), `agent_timeout_sec`, `test_timeout_sec`, and `solution_tar` where there is one. The tars are base64 of tar.gz. Each row becomes
an ordinary Harbor task folder, so that everything above knows one form only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from hermes_envs.harbor import Task, TaskError, load_task

MAX_UNPACKED = 2 << 30
"""Bytes that one task's tars may unpack to; a bomb stops here."""

COLUMNS = (
    *("task_name", "instruction", "category", "difficulty", "tags", "docker_image", "cpus", "memory_mb"),
    *("storage_mb", "agent_timeout_sec", "test_timeout_sec", "test_sh"),
    *("environment_tar", "tests_tar", "solution_tar"),
)
"""The columns that a task is made of."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def tasks_from_rows(rows: Iterable[Mapping[str, Any]], folder: Path) -> list[Task]:
    """Write each row as a task folder under `folder`, and load it.

    A row of the same content as an earlier one is not written again.

    Raises:
        TaskError: A row lacks a column, or a tar of it is broken or would write outside its folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return sorted((_task(row, folder) for row in rows), key=lambda task: task.name)


def _task(row: Mapping[str, Any], folder: Path) -> Task:
    name = row.get("task_name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TaskError(f"not a usable task name: {name!r}", path=folder, key="task_name")
    target = folder / _digest(row) / name
    if not target.exists():
        partial = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder))
        try:
            _write(row, partial, target)
            target.parent.mkdir(exist_ok=True)
            partial.rename(target)
        except (UnicodeEncodeError, IsADirectoryError) as error:
            raise TaskError(f"the row makes no task: {error}", path=target) from error
        except OSError:
            if not target.exists():  # else another process was faster, with the same content
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return load_task(target)


def _digest(row: Mapping[str, Any]) -> str:
    """Of the row's content: a dataset's name, and even its revision, may come to mean other rows."""
    text = json.dumps([row.get(column) for column in COLUMNS], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(row: Mapping[str, Any], folder: Path, target: Path) -> None:
    instruction = row.get("instruction")
    if not isinstance(instruction, str):
        raise TaskError("the row has no instruction", path=target, key="instruction")
    (folder / "instruction.md").write_text(instruction, encoding="utf-8")
    (folder / "task.toml").write_text(_settings(row, target), encoding="utf-8")
    budget = MAX_UNPACKED
    for column, name in (
        ("environment_tar", "environment"),
        ("tests_tar", "tests"),
        ("solution_tar", "solution"),
    ):
        if row.get(column):
            budget -= _unpack(row[column], folder / name, budget, path=target, column=column)
    script = row.get("test_sh")
    if isinstance(script, str) and script:
        (folder / "tests").mkdir(exist_ok=True)
        (folder / "tests" / "test.sh").write_text(script, encoding="utf-8", newline="")
        (folder / "tests" / "test.sh").chmod(0o755)


def _settings(row: Mapping[str, Any], path: Path) -> str:
    """The row's settings as a `task.toml`."""
    metadata = {
        "category": str(row.get("category") or ""),
        "difficulty": str(row.get("difficulty") or ""),
        "tags": _tags(row.get("tags")),
    }
    lines = [
        'version = "1.0"',
        "",
        "[metadata]",
        *(f"{key} = {_toml(value)}" for key, value in metadata.items()),
    ]
    for section, column in (("agent", "agent_timeout_sec"), ("verifier", "test_timeout_sec")):
        if row.get(column) is not None:
            try:
                seconds = float(row[column])
            except (TypeError, ValueError):
                raise TaskError(f"not a number: {row[column]!r}", path=path, key=column) from None
            lines += ["", f"[{section}]", f"timeout_sec = {seconds!r}"]
    environment = {
        key: row[key] for key in ("docker_image", "cpus", "memory_mb", "storage_mb") if row.get(key)
    }
    lines += ["", "[environment]", *(f"{key} = {_toml(value)}" for key, value in environment.items())]
    return "\n".join(lines) + "\n"


def _tags(value: object) -> list[str]:
    """A list of texts, or the JSON text of one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value] if value else []
    return [str(tag) for tag in cast("list[object]", value)] if isinstance(value, list) else []


def _toml(value: object) -> str:
    """A TOML value; JSON's notation of texts, numbers and lists of them is TOML's too, but for the character DEL."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def _unpack(encoded: str | bytes, folder: Path, budget: int, *, path: Path, column: str) -> int:
    """Unpack a base64 tar.gz into `folder`; nothing is written outside of it, no devices, no links that lead out.

    Returns:
        How many bytes it unpacked to.
    """
    folder.mkdir()
    size = 0
    try:
        data = base64.b64decode(encoded, validate=False)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
            for member in archive:
                size += member.size
                if size > budget:
                    raise TaskError(f"unpacks to more than {MAX_UNPACKED >> 20} MiB", path=path, key=column)
                archive.extract(member, folder, filter="data")
    except (binascii.Error, tarfile.TarError, EOFError, zlib.error, OSError, ValueError, TypeError) as error:
        if isinstance(error, TaskError):
            raise
        raise TaskError(f"cannot be unpacked: {error}", path=path, key=column) from error
    return size
