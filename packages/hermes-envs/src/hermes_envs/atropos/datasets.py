"""Rows of a dataset: a file on disk, or one of the Hugging Face hub."""

import json
from pathlib import Path
from typing import Any, cast

from hermes_envs.config import ConfigError


def load_rows(name: str, split: str = "train", *, subset: str | None = None) -> list[dict[str, Any]]:
    """The rows of a `.jsonl` or `.json` file, of a `.parquet` file, or of a hub dataset.

    Args:
        name: A path, or a dataset's name on the hub.
        split: The hub dataset's split.
        subset: The hub dataset's configuration.

    Raises:
        ConfigError: The file is missing or unreadable, or the library for it is not installed.
    """
    path = Path(name)
    if path.suffix in (".jsonl", ".json"):
        return _json_rows(path)
    try:
        from datasets import load_dataset  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    except ImportError as error:
        raise ConfigError(
            f"{name}: reading it needs the package `datasets` (pip install datasets)"
        ) from error
    try:
        if path.suffix == ".parquet":
            loaded: Any = load_dataset("parquet", data_files=name, split="train")
        else:
            loaded = load_dataset(name, subset, split=split)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot load the dataset {name} ({subset or 'default'}, {split}): {error}"
        ) from error
    return [dict(row) for row in loaded]


def _json_rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return cast("list[dict[str, Any]]", json.loads(text))
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error
