"""Typing of values that the wire gives as plain text, by the tool's JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hermes_parsers.format import Options
from hermes_parsers.json_text import decode, encode
from hermes_parsers.python_text import read_literal

_DEEPEST = 12
_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "short": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "binary": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "none": "null",
}
_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_INTEGER = re.compile(r"[+-]?\d+(?:_\d+)*").fullmatch
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch
_LONGEST_NUMBER = 4000

Types = tuple[str, ...]
"""Names of JSON types in the order in which the schema gives them; none when anything may stand."""


class Typing:
    """The types of one tool's parameters.

    Args:
        options: The tools, and what to do without a schema.
        tool: Name of the tool.

    Attributes:
        declared: The tool is among those given.
        known: The schemas of its parameters; None when it gives none.
    """

    __slots__ = ("_root", "_types", "_untyped", "declared", "known")

    def __init__(self, options: Options, tool: str) -> None:
        self._root: Mapping[str, Any] = (options.tools or {}).get(tool) or {}
        self._untyped = options.untyped
        self.declared = tool in (options.tools or {})
        self._types: dict[str, tuple[Types, frozenset[str]]] = {}
        properties = self._root.get("properties")
        self.known: Mapping[str, Any] | None = None
        if isinstance(properties, Mapping) and properties:
            self.known = cast("Mapping[str, Any]", properties)

    @property
    def required(self) -> Sequence[str]:
        """Names of the parameters that must be given."""
        required = self._root.get("required")
        return cast("list[str]", required) if isinstance(required, list) else ()

    def is_text(self, key: str) -> bool:
        """The parameter is always a string, so that its text can be passed on as it arrives."""
        types, _ = self._of(key)
        return types == ("string",) or (not types and self._untyped == "string")

    def json(self, key: str, text: str) -> str:
        """JSON text of the value that `text` stands for; a string when it fits no type of the schema."""
        types, words = self._of(key)
        if not types and self._untyped == "json":
            return _valid(text) or encode(text)
        return typed(text, types, words)

    def _of(self, key: str) -> tuple[Types, frozenset[str]]:
        found = self._types.get(key)
        if found is None:
            schema: Any = (self.known or {}).get(key)
            if schema is None:
                schema = self._root.get("additionalProperties")
            found = self._types[key] = types_of(schema, self._root)
        return found


def types_of(schema: Any, root: Mapping[str, Any]) -> tuple[Types, frozenset[str]]:
    """The types that a schema allows, and the words among its allowed values; `root` holds its definitions."""
    return tuple(dict.fromkeys(_types(schema, root, 0))), frozenset(_words(schema))


def typed(text: str, types: Types, words: frozenset[str] = frozenset()) -> str:
    """JSON text of `text` as the first of `types` that it fits, strings last."""
    if text in words:
        return encode(text)
    if text.strip() in ("null", "None") and types and ("null" in types or "string" not in types):
        return "null"
    for name in types:
        if name != "string" and (value := convert(text, name)) is not None:
            return value
    return encode(text)


def child(schema: Any, key: str | None, root: Mapping[str, Any], depth: int = 0) -> Any:
    """The schema of a member, or of an element when `key` is None.

    Returns:
        None when `schema` is None or does not name the member, `{}` when it leaves its members open.
    """
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    node = cast("Mapping[str, Any]", schema)
    if isinstance(reference := node.get("$ref"), str):
        return child(_target(reference, root), key, root, depth + 1)
    members: Any = node.get("items") if key is None else node.get("properties")
    if isinstance(members, Mapping) and members:
        known = cast("Mapping[str, Any]", members)
        found: Any = known if key is None else known.get(key)
        more: Any = node.get("additionalProperties")
        return found if found is not None else cast("Any", more) if isinstance(more, Mapping) else None
    for word in ("anyOf", "oneOf", "allOf"):
        for each in cast("list[Any]", node.get(word) or []):
            found = child(each, key, root, depth + 1)
            if found:
                return found
    return {}


def convert(text: str, name: str) -> str | None:
    """JSON text of `text` read as a value of the JSON type `name`; None when it is none."""
    word = text.strip()
    if name == "null":
        return None
    if name == "boolean":
        return {"true": "true", "false": "false", "1": "true", "0": "false"}.get(word.lower())
    if name in ("integer", "number"):
        return _number(word, whole=name == "integer")
    kind = dict if name == "object" else list
    try:
        value = decode(word)
    except ValueError:
        value = read_literal(word)
        return encode(value) if isinstance(value, kind) else None
    return word if isinstance(value, kind) else None


def _number(word: str, *, whole: bool) -> str | None:
    if len(word) > _LONGEST_NUMBER:
        return word if _JSON_NUMBER(word) and _INTEGER(word) else None
    if _INTEGER(word):
        return word if _JSON_NUMBER(word) else str(int(word))
    try:
        value = float(word)
    except ValueError:
        return None
    if value - value != 0:  # infinite, or not a number
        return None
    if whole:
        return str(int(value)) if value == int(value) else None
    return word if _JSON_NUMBER(word) else repr(value)


def _valid(text: str) -> str | None:
    try:
        decode(text)
    except ValueError:
        return None
    return text.strip()


def _types(schema: Any, root: Mapping[str, Any], depth: int) -> list[str]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return []
    node = cast("Mapping[str, Any]", schema)
    names: list[str] = []
    given = node.get("type")
    for each in cast("list[Any]", given if isinstance(given, list) else [given] if given else []):
        names.append(_NAMES.get(str(each).lower(), str(each).lower()))
    names = [name if name in _TYPES else _by_prefix(name) for name in names if name != "any"]
    reference = node.get("$ref")
    if not names and isinstance(reference, str):
        names += _types(_target(reference, root), root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for each in cast("list[Any]", node.get(word) or []) if not names else []:
            names += _types(each, root, depth + 1)
    if not names:
        names += [_type_of(value) for value in _values(node)]
    if not names:
        names += ["object"] if "properties" in node else ["array"] if "items" in node else []
    if names and node.get("nullable") is True:
        names.append("null")
    return names


def _by_prefix(name: str) -> str:
    for prefix, known in (
        ("int", "integer"),
        ("uint", "integer"),
        ("unsigned", "integer"),
        ("num", "number"),
    ):
        if name.startswith(prefix):
            return known
    for prefix, known in (("float", "number"), ("dict", "object"), ("list", "array")):
        if name.startswith(prefix):
            return known
    return "string"


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    """What a JSON pointer into the tool's own schema names; None when it is not there."""
    if not reference.startswith("#"):
        return None
    node: Any = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = cast("Mapping[str, Any]", node)[part]
    return node


def _values(node: Mapping[str, Any]) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else []


def _words(schema: Any) -> list[str]:
    """The strings among the schema's allowed values."""
    if not isinstance(schema, Mapping):
        return []
    return [value for value in _values(cast("Mapping[str, Any]", schema)) if isinstance(value, str)]


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    for kind, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"
