"""Trajectories and verifier output, cut to what a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hermes_benchmarks.files import read_json

MOST_STEPS = 600
SHOWN_FILES = 12


def compact(folder: Path, limit: int) -> dict[str, Any]:
    """The steps of a trial's trajectory, and the text files of its verifier; each text at most `limit` characters."""
    trajectory = read_json(folder / "trajectory.json") or {}
    steps = cast("list[dict[str, Any]]", trajectory.get("steps", []))
    shown = [_step(step, limit) for step in steps[:MOST_STEPS]]
    return {"steps": shown, "left_out": len(steps) - len(shown), "files": _files(folder / "verifier", limit)}


def _step(step: Mapping[str, Any], limit: int) -> dict[str, Any]:
    calls = [
        {"name": call.get("function_name", ""), "arguments": _arguments(call.get("arguments"), limit)}
        for call in step.get("tool_calls", ())
    ]
    results = [
        _text(result.get("content"), limit) for result in step.get("observation", {}).get("results", ())
    ]
    metrics = step.get("metrics", {})
    found = {
        "source": step.get("source", ""),
        "message": _text(step.get("message"), limit),
        "reasoning": _text(step.get("reasoning_content"), limit),
        "calls": calls,
        "results": results,
        "tokens": [metrics.get("prompt_tokens"), metrics.get("completion_tokens")] if metrics else None,
        "seconds": metrics.get("extra", {}).get("model_seconds"),
    }
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _arguments(arguments: object, limit: int) -> dict[str, str]:
    pairs = cast("Mapping[str, Any]", arguments) if isinstance(arguments, dict) else {"": arguments}
    return {str(key): _text(value, limit) for key, value in pairs.items()}


def _text(value: object, limit: int) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text, limit)


def shorten(text: str, limit: int) -> str:
    """The head and the tail of a long text, and how much is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


def _files(folder: Path, limit: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*"))[:200] if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and len(found) < SHOWN_FILES:
            with path.open("rb") as file:
                data = file.read(limit * 8)
            if b"\0" not in data:
                name = path.relative_to(folder).as_posix()
                found[name] = shorten(data.decode("utf-8", "replace"), limit)
    return found
