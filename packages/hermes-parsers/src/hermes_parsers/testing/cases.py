"""The corpus: texts of models with what they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

ANYTHING = "*"
"""As expected content: whatever it is."""


@dataclass(frozen=True, slots=True)
class Case:
    """One text and what a parser must find in it.

    Attributes:
        id: Name of the case.
        format: Its format.
        text: The text.
        tools: OpenAI tool dicts, or None.
        options: Further options of `get_parser`.
        content: Expected content; compared without the white space around it, `*` for anything.
        calls: Expected `(name, arguments)` pairs; arguments are compared as JSON.
        ids: Expected ids, where the wire has them.
        errors: Expected kinds of errors; None when the case does not say.
        recovered: Expected recoveries; None when the case does not say.
        reasoning: Expected reasoning without the white space around it; `*` when the case does not say.
        chunks: A chunking that has broken parsers before.
        grows: How often a part of the text repeats; 0 where none does.
        only_survive: Nothing is expected but that the parser returns, and soon.
        disputed: Known parsers disagree here.
        policy: Why the expectation is as it is, where that is a matter of choice.
        source: The case as it stands in the file.
    """

    id: str
    format: str
    text: str
    tools: list[dict[str, Any]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    content: str = ANYTHING
    calls: tuple[tuple[str, Any], ...] = ()
    ids: tuple[str, ...] | None = None
    errors: tuple[str, ...] | None = None
    recovered: tuple[str, ...] | None = None
    reasoning: str = ANYTHING
    chunks: tuple[str, ...] = ()
    grows: int = 0
    only_survive: bool = False
    disputed: bool = False
    policy: str = ""
    source: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    def doubled(self) -> Case:
        """The same case with its repeating part twice as long."""
        source = dict(self.source)
        source["repeat"] = {**source["repeat"], "count": 2 * self.grows}
        if "expected_calls_repeat" in source:
            source["expected_calls_repeat"] = 2 * int(source["expected_calls_repeat"])
        return case_from(source)


def load_cases(format: str | None = None) -> list[Case]:
    """The corpus, or what it has of one format."""
    return [case for case in _cases() if format in (None, case.format)]


def _cases() -> Iterator[Case]:
    text = files("hermes_parsers.testing").joinpath("corpus.jsonl").read_text(encoding="utf-8")
    for line in text.split("\n"):
        if line.strip():
            yield case_from(json.loads(line))


def case_from(source: Mapping[str, Any]) -> Case:
    """The case that a dict of the corpus file describes."""
    repeat: Mapping[str, Any] = source.get("repeat") or {}

    def fill(value: Any) -> Any:
        if isinstance(value, str) and repeat:
            return value.replace(repeat["placeholder"], repeat["unit"] * repeat["count"])
        if isinstance(value, dict):
            return {key: fill(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value

    calls = [(call["name"], fill(call["arguments"])) for call in source["expected_calls"]]

    def words(key: str) -> tuple[str, ...] | None:
        return tuple(source[key]) if key in source else None

    return Case(
        id=source["id"],
        format=source["format"],
        text=fill(source["input"]),
        tools=source.get("tools"),
        options=source.get("options") or {},
        content=fill(source["expected_content"] or ""),
        calls=tuple(calls * source.get("expected_calls_repeat", 1)),
        ids=words("expected_ids"),
        errors=words("expected_errors"),
        recovered=words("expected_recovered"),
        reasoning=fill(source.get("expected_reasoning", ANYTHING) or ""),
        chunks=tuple(source.get("chunks", ())),
        grows=repeat.get("count", 0),
        only_survive=source.get("must_not_raise_only", False),
        disputed=source.get("disputed", False),
        policy=source.get("policy", ""),
        source=source,
    )
