"""Names of formats: built in, registered, or installed as entry points in the group `hermes_parsers.parsers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from hermes_parsers import catalog
from hermes_parsers.format import Format, Options, call_id
from hermes_parsers.parser import Parser

GROUP = "hermes_parsers.parsers"
"""Entry points of this group name a `Format` or a function from `Options` to a parser."""

Factory = Callable[[Options], Parser]
"""Makes a parser from options, for parsers that are not a `Format`."""

_registered: dict[str, Format | Factory] = {}
_aliases: dict[str, str] = {}


class UnknownParserError(KeyError):
    """No parser has this name. The message lists the nearest names and all of them.

    Args:
        name: The name asked for.
        known: The names there are.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = list(known)

    def __str__(self) -> str:
        from difflib import get_close_matches

        near = get_close_matches(str(self.name), self.known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        return f"no parser is named {self.name!r}{hint} (known: {', '.join(self.known)})"


def get_parser(
    name: str,
    tools: Iterable[Mapping[str, Any]] | None = None,
    *,
    reasoning: Literal["auto", "open", "off"] = "auto",
    untyped: Literal["string", "json"] = "string",
    lenient: bool = False,
    new_id: Callable[[], str] | None = None,
    known_only: bool = False,
) -> Parser:
    """A parser for one request.

    Args:
        name: A format of `list_parsers()`, or an alias such as `llama4_json`.
        tools: OpenAI tool dicts; tagged formats type the arguments by their JSON Schemas.
        reasoning: `auto` reads reasoning blocks; `open` also takes the text to begin inside one, as after a
            chat template that ends with the start tag; `off` leaves them in the content.
        untyped: What a value of a tagged format without a schema becomes: its text, or its JSON value if it
            has one.
        lenient: Read also calls that only a damaged text contains; `ParseResult.recovered` names how.
        new_id: Makes ids for calls that carry none; by default `call_` and 24 random hex digits, or what the
            format's API wants.
        known_only: In formats whose calls have no marker (`llama3_json`, `pythonic`, `xlam`), read only calls of
            the given tools, so that JSON or Python in prose is not taken for one.

    Raises:
        UnknownParserError: No such format.
        ValueError: An option has an unknown value.
        TypeError: One of the tools is no dict.
    """
    if reasoning not in ("auto", "open", "off"):
        raise ValueError(f"reasoning must be 'auto', 'open' or 'off', not {reasoning!r}")
    if untyped not in ("string", "json"):
        raise ValueError(f"untyped must be 'string' or 'json', not {untyped!r}")
    found = _find(name)
    make_id = new_id or (found.new_id if isinstance(found, Format) else call_id)
    options = Options(schemas_of(tools), reasoning, untyped, lenient, make_id, known_only)
    return Parser(found, options) if isinstance(found, Format) else found(options)


def list_parsers() -> list[str]:
    """The names of all formats, without aliases, sorted."""
    return sorted({*catalog.FORMATS, *_registered, *_entry_points()})


def register_parser(name: str, parser: Format | Factory, *, aliases: Sequence[str] = ()) -> None:
    """Make a format or a parser of one's own available to `get_parser`.

    Args:
        name: Its name.
        parser: A `Format`, or a function that takes `Options` and returns a parser.
        aliases: Further names, which `list_parsers` does not show.

    Raises:
        ValueError: One of the names is taken.
    """
    for each in (name, *aliases):
        if each in catalog.FORMATS or each in catalog.ALIASES or each in _registered or each in _aliases:
            raise ValueError(f"a parser named {each!r} exists already; choose another name")
    _registered[name] = parser
    _aliases.update(dict.fromkeys(aliases, name))


def parser_for_model(model: str) -> str | None:
    """The format that a model writes, from its name or path; None where no rule knows it.

    Args:
        model: Such as `Qwen/Qwen3-Coder-30B-A3B-Instruct`.
    """
    return catalog.format_of(model)


def resolve(name: str) -> str:
    """The name of the format that `name` stands for; `name` itself when it is no alias."""
    return catalog.ALIASES.get(name) or _aliases.get(name) or name


def _find(name: str) -> Format | Factory:
    name = resolve(name)
    if name in _registered:
        return _registered[name]
    if name in catalog.FORMATS:
        return catalog.load(name)
    entry = _entry_points().get(name)
    if entry is None:
        raise UnknownParserError(name, list_parsers())
    return cast("Format | Factory", entry.load())


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def schemas_of(tools: Iterable[Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]] | None:
    """The schemas of the parameters by tool name; None when there are no tools."""
    if not tools:
        return None
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if not isinstance(tool, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers need not be typed
            raise TypeError(f"each of `tools` must be an OpenAI tool dict, not {tool!r}")
        inner: Any = tool.get("function", tool)
        function: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}
        name: Any = function.get("name")
        schema: Any = function.get("parameters") or function.get("input_schema")
        if isinstance(name, str):
            schemas[name] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    return schemas
