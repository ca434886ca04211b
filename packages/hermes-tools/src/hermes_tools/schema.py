"""The part of JSON Schema that tool parameters use: looking up references and checking values.

Kept here instead of a dependency because it runs on every call and its messages are written for models.
Covered: type, enum, const, anyOf, oneOf, allOf, properties, required, additionalProperties, items, prefixItems,
minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, minItems, maxItems,
uniqueItems and local `$ref`s (draft 2020-12). `pattern` and `format` are not checked.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

JsonSchema = Mapping[str, Any]
MAX_REFERENCES = 32
MAX_PROBLEMS = 8


def resolve(schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    """The schema with a leading chain of local `$ref`s followed; an unknown one accepts everything."""
    for _ in range(MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Any = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            target = cast(JsonSchema, target).get(key, {}) if isinstance(target, Mapping) else {}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**cast(JsonSchema, target), **rest} if isinstance(target, Mapping) else rest
    return {}


def types_of(schema: JsonSchema) -> list[str]:
    """The types a schema names, or follows from its keywords; none when it takes anything."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return sorted(cast(list[str], kind), key=lambda name: name == "string")
    if "properties" in schema:
        return ["object"]
    return ["array"] if "items" in schema else []


def fits(value: Any, schema: JsonSchema, root: JsonSchema | None = None) -> bool:
    """Whether a value meets its schema."""
    return next(problems(value, schema, root), None) is None


def problems(value: Any, schema: JsonSchema, root: JsonSchema | None = None, path: str = "") -> Iterator[str]:
    """What is wrong with a value, one sentence part each: "`limit`: must be an integer, not 'abc'"."""
    root = schema if root is None else root
    schema = resolve(schema, root)
    where = f"`{path}`: " if path else ""
    for word in ("anyOf", "oneOf"):
        if found := _union_problems(value, schema.get(word, []), root, path):
            yield from found
            return
    for branch in schema.get("allOf", ()):
        yield from problems(value, branch, root, path)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}must be one of {', '.join(map(show, schema['enum']))}, not {show(value)}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}must be {show(schema['const'])}, not {show(value)}"
    kinds = types_of(schema)
    if kinds and not any(_IS_TYPE[kind](value) for kind in kinds if kind in _IS_TYPE):
        yield f"{where}must be {' or '.join(map(_article, kinds))}, not {show(value)}"
        return
    yield from _value_problems(value, schema, where)
    if isinstance(value, dict):
        yield from _object_problems(cast(dict[str, Any], value), schema, root, path)
    if isinstance(value, list):
        yield from _array_problems(cast(list[Any], value), schema, root, path)


def _union_problems(value: Any, branches: list[JsonSchema], root: JsonSchema, path: str) -> list[str]:
    """None if the value meets one of the branches, else what is wrong by those that come nearest."""
    near: list[list[str]] = []
    for branch in branches:
        # Each branch is looked at once, and not to its end: nested unions would take for ever.
        found = list(islice(problems(value, branch, root, path), MAX_PROBLEMS))
        if not found:
            return []
        kinds = types_of(resolve(branch, root))
        if not kinds or any(_IS_TYPE[kind](value) for kind in kinds if kind in _IS_TYPE):
            near.append(found)
    where = f"`{path}`: " if path else ""
    if not near:
        return [f"{where}must be {_union_name(branches, root)}, not {show(value)}"] if branches else []
    nearest = [found for found in near if len(found) == min(map(len, near))]
    if len(nearest) == 1:
        return nearest[0]
    forms = ", or ".join(" and ".join(found) for found in nearest[:3])
    return [f"{where}meets none of its forms: {forms}"]


def _value_problems(value: Any, schema: JsonSchema, where: str) -> Iterator[str]:
    size = len(cast("str | list[Any]", value)) if isinstance(value, str | list) else None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    unit = "characters" if isinstance(value, str) else "items"
    low, high = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
    if size is not None and size < schema.get(low, 0):
        yield f"{where}must have at least {schema[low]} {unit}, has {size}"
    if size is not None and high in schema and size > schema[high]:
        yield f"{where}must have at most {schema[high]} {unit}, has {size}"
    if number is None:
        return
    for word, holds, text in _BOUNDS:
        if word in schema and not holds(number, schema[word]):
            yield f"{where}must be {text} {schema[word]}, not {show(value)}"


def _object_problems(value: dict[str, Any], schema: JsonSchema, root: JsonSchema, path: str) -> Iterator[str]:
    properties: dict[str, JsonSchema] = schema.get("properties", {})
    further = schema.get("additionalProperties", True)
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"`{prefix}{name}`: is required and missing"
    for name, item in value.items():
        if name in properties:
            yield from problems(item, properties[name], root, prefix + name)
        elif isinstance(further, Mapping):
            yield from problems(item, cast(JsonSchema, further), root, prefix + name)
        elif not further:
            from hermes_tools.tool import unknown_argument

            yield unknown_argument(prefix + name, properties)


def _array_problems(value: list[Any], schema: JsonSchema, root: JsonSchema, path: str) -> Iterator[str]:
    first: list[JsonSchema] = schema.get("prefixItems", [])
    rest = schema.get("items")
    for index, item in enumerate(value):
        part = first[index] if index < len(first) else rest
        if isinstance(part, Mapping):
            yield from problems(item, cast(JsonSchema, part), root, f"{path}[{index}]")
    if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        yield f"`{path}`: must not have the same item twice"


def show(value: Any) -> str:
    """A value as a model would write it, cut short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _union_name(branches: list[JsonSchema], root: JsonSchema) -> str:
    kinds = [kind for branch in branches for kind in types_of(resolve(branch, root))]
    return " or ".join(map(_article, dict.fromkeys(kinds))) or "one of the forms in the schema"


def _article(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def _is_integer(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and value.is_integer()
    )


_IS_TYPE: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "at least"),
    ("maximum", lambda value, bound: value <= bound, "at most"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "less than"),
    ("multipleOf", lambda value, bound: bound and value % bound == 0, "a multiple of"),
)
