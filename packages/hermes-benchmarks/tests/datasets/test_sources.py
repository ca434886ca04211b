"""Datasets by folder, file of rows, hub name and `sample` give the same kind of task."""

import base64
import importlib
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
from hermes_benchmarks.datasets import DatasetError, load_dataset_tasks, sample_path
from hermes_envs.harbor import Task, TaskError, UnknownTask, load_tasks

SAMPLES = load_tasks(sample_path(), only=["fix-durations", "tidy-inbox"])


def tar_of(folder: Path, *, without: str = "") -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in sorted(folder.iterdir()):
            if path.name != without:
                archive.add(path, arcname=path.name)
    return base64.b64encode(buffer.getvalue()).decode()


def row_of(task: Task) -> dict[str, object]:
    return {
        "task_name": task.name,
        "instruction": task.instruction,
        "category": task.config.category,
        "difficulty": task.config.difficulty,
        "tags": json.dumps(list(task.config.tags)),
        "docker_image": f"example/{task.name}:1",
        "environment_tar": tar_of(task.environment_dir),
        "tests_tar": tar_of(task.tests_dir, without="test.sh"),
        "test_sh": (task.tests_dir / "test.sh").read_text(),
        "agent_timeout_sec": task.config.agent_timeout,
        "test_timeout_sec": task.config.verifier_timeout,
    }


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def evil_row(name: str, *, link: str = "", size: int = 0) -> dict[str, object]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        data = b"x" * size
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return row_of(SAMPLES[0]) | {"tests_tar": base64.b64encode(buffer.getvalue()).decode()}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_become_the_tasks_they_were_made_from(tmp_path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    file = write_rows(tmp_path / f"rows{suffix}", [row_of(task) for task in reversed(SAMPLES)])
    tasks = load_dataset_tasks(file, cache=tmp_path / "cache")
    assert [task.name for task in tasks] == [task.name for task in SAMPLES]
    for task, sample in zip(tasks, SAMPLES, strict=True):
        assert task.instruction == sample.instruction
        assert (task.config.tags, task.config.difficulty) == (sample.config.tags, sample.config.difficulty)
        assert (task.config.agent_timeout, task.config.verifier_timeout) == (300.0, 120.0)
        assert task.config.docker_image == f"example/{task.name}:1"
        for name in ("tests/check.py", "tests/test.sh", "environment/Dockerfile", "environment/setup.sh"):
            assert (task.path / name).read_bytes() == (sample.path / name).read_bytes()
    again = load_dataset_tasks(file, cache=tmp_path / "cache")
    assert [task.checksum for task in again] == [task.checksum for task in tasks]


def test_only_the_chosen_rows_are_unpacked(tmp_path: Path) -> None:
    file = write_rows(
        tmp_path / "rows.jsonl", [row_of(SAMPLES[0]), evil_row("../../evil") | {"task_name": "other"}]
    )
    assert [task.name for task in load_dataset_tasks(file, only=["fix-durations"], cache=tmp_path / "c")] == [
        "fix-durations"
    ]
    assert [task.name for task in load_dataset_tasks(file, skip=["other"], cache=tmp_path / "c")] == [
        "fix-durations"
    ]
    with pytest.raises(UnknownTask, match="did you mean fix-durations"):
        load_dataset_tasks(file, only=["fix-duration"], cache=tmp_path / "c")


@pytest.mark.parametrize(
    "row",
    [
        evil_row("../escaped"),
        evil_row("link", link="/etc/passwd"),
        evil_row("link", link="../../outside"),
        row_of(SAMPLES[0]) | {"task_name": "../evil"},
        row_of(SAMPLES[0]) | {"tests_tar": "not base64 of anything"},
        row_of(SAMPLES[0]) | {"instruction": None},
        row_of(SAMPLES[0]) | {"test_sh": None},
        row_of(SAMPLES[0]) | {"agent_timeout_sec": "soon"},
        row_of(SAMPLES[0]) | {"test_timeout_sec": [1]},
        row_of(SAMPLES[0]) | {"environment_tar": 5},
        row_of(SAMPLES[0]) | {"instruction": "\ud800"},
        evil_row("test.sh/inside"),
    ],
    ids=[
        *("parent", "absolute link", "link out", "name", "broken tar", "no instruction", "no tests"),
        *("no time", "a list", "no tar", "no text", "a folder in the way"),
    ],
)
def test_a_bad_row_is_refused_and_leaves_nothing(tmp_path: Path, row: dict[str, object]) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [row])
    cache = tmp_path / "deep" / "cache"
    with pytest.raises(TaskError):
        load_dataset_tasks(file, cache=cache)
    assert not list(tmp_path.rglob("*escaped*"))
    assert not [path for path in cache.rglob(".*") if path.is_dir()]


@pytest.mark.parametrize("text", ["[1, 2]\n", "[" * 100_000, '{"task_name": "a"}\n{"task_name": "a"}\n'])
def test_a_file_that_holds_no_rows_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    with pytest.raises(DatasetError):
        load_dataset_tasks(file, cache=tmp_path / "cache")
    pytest.importorskip("pyarrow")
    with pytest.raises(DatasetError, match="no Parquet file"):
        load_dataset_tasks(file.rename(tmp_path / "rows.parquet"), cache=tmp_path / "cache")


def test_a_dataset_that_changed_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row_of(SAMPLES[0])]
    library = ModuleType("datasets")
    library.load_dataset = lambda name, **options: rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", library)
    before = load_dataset_tasks("someone/tasks", cache=tmp_path)
    rows[0] = rows[0] | {"instruction": "another"}
    after = load_dataset_tasks("someone/tasks", cache=tmp_path)
    assert (before[0].instruction != "another", after[0].instruction) == (True, "another")


def test_the_folder_of_a_user_who_does_not_exist_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no dataset '~nobody-of-that-name/tasks'"):
        load_dataset_tasks("~nobody-of-that-name/tasks", cache=tmp_path)


def test_an_archive_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_benchmarks.datasets.rows.MAX_UNPACKED", 1 << 20)
    file = write_rows(tmp_path / "rows.jsonl", [evil_row("zeros", size=2 << 20)])
    with pytest.raises(TaskError, match="unpacks to more than 1 MiB"):
        load_dataset_tasks(file, cache=tmp_path / "cache")


def test_hub_names_are_pinned_and_errors_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []
    library = ModuleType("datasets")

    def load_dataset(name: str, *, split: str, revision: str) -> list[dict[str, object]]:
        asked.append((name, split, revision))
        if "missing" in name:
            raise ConnectionError("offline\nmore")
        return [row_of(SAMPLES[0])]

    library.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", library)
    tasks = load_dataset_tasks("NousResearch/terminal-bench-2", cache=tmp_path)
    load_dataset_tasks("someone/tasks@abc", split="test", cache=tmp_path)
    assert [task.name for task in tasks] == ["fix-durations"]
    assert asked == [
        ("NousResearch/terminal-bench-2", "train", "e837821065825f4df78220cf7aa302abd2708401"),
        ("someone/tasks", "test", "abc"),
    ]
    with pytest.raises(DatasetError, match=r"cannot load some/missing@main .*: offline\. A local copy"):
        load_dataset_tasks("some/missing", cache=tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match=r"pip install 'hermes-benchmarks\[hub\]'"):
        load_dataset_tasks("some/tasks", cache=tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "./missing/folder", "missing.jsonl", "/no/such/folder"])
def test_a_missing_dataset_says_so(name: str) -> None:
    with pytest.raises(DatasetError, match=r"no dataset|no such file"):
        load_dataset_tasks(name)
