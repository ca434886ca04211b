"""What models really send, brought to the types of a JSON Schema.

Only what does not fit is touched: a number or boolean in a string, JSON in a string, a scalar where a list is
wanted, any value where a string is wanted, an enumeration value in other case. Whatever stays wrong is left for
the check, which says so.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from hermes_tools.schema import JsonSchema, fits, resolve, types_of


def coerce(value: Any, schema: JsonSchema, root: JsonSchema | None = None) -> Any:
    """The value brought to the schema where that can be done without guessing.

    Args:
        value: A JSON value.
        schema: Its JSON Schema.
        root: The schema that `$ref`s are looked up in; by default `schema`.
    """
    root = schema if root is None else root
    schema = resolve(schema, root)
    for branch in schema.get("allOf", ()):
        value = coerce(value, branch, root)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _coerce_union(value, schema[word], root)
    if "enum" in schema:
        return _coerce_enum(value, schema["enum"])
    for kind in types_of(schema):
        done, coerced = _coerce_to(value, kind, schema, root)
        if done:
            return coerced
    return value


def _coerce_union(value: Any, branches: list[JsonSchema], root: JsonSchema) -> Any:
    if any(fits(value, branch, root) for branch in branches):
        return value
    # A string is the last resort: everything can be made one.
    ordered = sorted(branches, key=lambda branch: "string" in types_of(resolve(branch, root)))
    for branch in ordered:
        coerced = coerce(value, branch, root)
        if fits(coerced, branch, root):
            return coerced
    return value


def _coerce_enum(value: Any, allowed: list[Any]) -> Any:
    if value in allowed:
        return value
    word = str(value).strip().casefold()
    return next((item for item in allowed if str(item).casefold() == word), value)


def _coerce_to(value: Any, kind: str, schema: JsonSchema, root: JsonSchema) -> tuple[bool, Any]:
    """Whether the value could be brought to this type, and what it became."""
    if kind == "string":
        return _to_string(value)
    if kind in ("object", "array") and isinstance(value, str):
        parsed = _from_json(value, dict if kind == "object" else list)
        if parsed is not None:
            value = parsed
    if kind == "object":
        return _to_object(value, schema, root)
    if kind == "array":
        return _to_array(value, schema, root)
    if kind == "boolean":
        return _to_boolean(value)
    if kind in ("integer", "number"):
        return _to_number(value, kind)
    return (value is None or value in ("null", "None", "")), None


def _to_string(value: Any) -> tuple[bool, Any]:
    if isinstance(value, str):
        return True, value
    if value is None:
        return False, value
    indent = 2 if isinstance(value, dict | list) else None
    return True, json.dumps(value, ensure_ascii=False, indent=indent)


def _to_boolean(value: Any) -> tuple[bool, Any]:
    if isinstance(value, bool):
        return True, value
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    word = str(value).strip().lower()
    return word in words, words.get(word, value)


def _to_number(value: Any, kind: str) -> tuple[bool, Any]:
    if isinstance(value, str):
        try:
            value = (
                float(value) if len(value) < 400 and not value.strip().lstrip("+-").isdigit() else int(value)
            )
        except ValueError:
            return False, value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False, value
    if kind == "integer" and isinstance(value, float):
        return (True, int(value)) if math.isfinite(value) and value.is_integer() else (False, value)
    return True, value


def _to_array(value: Any, schema: JsonSchema, root: JsonSchema) -> tuple[bool, Any]:
    if value is None:
        return False, value
    items = cast(list[Any], value if isinstance(value, list) else [value])
    parts = [*schema.get("prefixItems", ())[: len(items)]]
    parts += [schema.get("items")] * (len(items) - len(parts))
    return True, [
        coerce(item, cast(JsonSchema, part), root) if isinstance(part, Mapping) else item
        for item, part in zip(items, parts, strict=True)
    ]


def _to_object(value: Any, schema: JsonSchema, root: JsonSchema) -> tuple[bool, Any]:
    if not isinstance(value, dict):
        return False, value
    fields = cast(dict[str, Any], value)
    properties: dict[str, JsonSchema] = schema.get("properties", {})
    required = schema.get("required", ())
    further: Any = schema.get("additionalProperties")
    coerced: dict[str, Any] = {}
    for name, item in fields.items():
        part = properties.get(name, cast(JsonSchema, further) if isinstance(further, Mapping) else None)
        if part is None:
            coerced[name] = item
            continue
        # Null for an optional value stands for "not given", as strict mode makes models write it.
        if item is None and name in properties and name not in required and not fits(None, part, root):
            continue
        coerced[name] = coerce(item, part, root)
    return True, coerced


def _from_json(text: str, kind: type) -> Any:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, kind) else None
