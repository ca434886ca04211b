"""JSON Schemas of the files in a run's folder, for programs that read them without this package.

config.schema.json    config.json
result.schema.json    trials/TASK__N/result.json
line.schema.json      each line of trials.jsonl
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from hermes_benchmarks.plan import Plan
from hermes_benchmarks.record import LINE_FIELDS, TrialRecord

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by the name of its file, made from the classes themselves."""
    result = TrialRecord.model_json_schema(mode="serialization")
    line = {name: value for name, value in result["properties"].items() if name in LINE_FIELDS}
    return {
        "config.schema.json": _titled(Plan.model_json_schema(mode="serialization"), "config.json of a run"),
        "result.schema.json": _titled(result, "result.json of a trial"),
        "line.schema.json": _titled(
            {
                "type": "object",
                "properties": line,
                "required": sorted(line),
                "additionalProperties": False,
                "$defs": {"Verdict": result["$defs"]["Verdict"]},
            },
            "a line of trials.jsonl",
        ),
    }


def published(name: str) -> dict[str, Any]:
    """A schema as this package ships it."""
    return json.loads((files(__name__) / name).read_text("utf-8"))


def write(folder: Path) -> None:
    """Write the schemas; run `python -m hermes_benchmarks.schemas` after a change of the classes."""
    for name, schema in schemas().items():
        (folder / name).write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _titled(schema: Mapping[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": DIALECT, **schema, "title": title}
