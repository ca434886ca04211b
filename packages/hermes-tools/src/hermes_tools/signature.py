"""From a function's signature, or a plain schema, to what is checked on each call."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Protocol, cast, get_args, get_origin, get_type_hints

from hermes_tools.coerce import coerce
from hermes_tools.docstring import read_docstring
from hermes_tools.errors import ArgumentsError, ToolDefinitionError
from hermes_tools.results import JsonDict
from hermes_tools.schema import JsonSchema, fits, problems, resolve, show, types_of
from hermes_tools.tool import unknown_argument


class Arguments(Protocol):
    """What a tool knows of its arguments.

    Attributes:
        description: The tool's description.
        schema: JSON Schema of the arguments, an object.
        session_parameter: The keyword parameter that takes the session, or None.
        session_first: Whether the session is the first positional argument.
    """

    description: str
    schema: JsonDict
    session_parameter: str | None
    session_first: bool

    def parse(self, tool_name: str, values: JsonDict) -> tuple[tuple[Any, ...], JsonDict]:
        """The handler's arguments; raises `ArgumentsError`."""
        ...


class SchemaArguments:
    """Arguments described by a plain JSON Schema; the handler gets them as one dictionary."""

    session_parameter: str | None = None
    session_first = True

    def __init__(self, description: str, schema: JsonDict) -> None:
        if schema.get("type", "object") != "object":
            raise ToolDefinitionError("The parameters of a tool must be a JSON Schema of type object.")
        self.description = description
        self.schema: JsonDict = {"type": "object", "properties": {}, **schema}

    def parse(self, tool_name: str, values: JsonDict) -> tuple[tuple[Any, ...], JsonDict]:
        """Coerce and check by the schema."""
        coerced = coerce(values, self.schema)
        found = list(problems(coerced, self.schema))
        if found:
            raise _arguments_error(tool_name, found, self.schema)
        return (coerced,), {}


class FunctionArguments:
    """Arguments described by a function's signature, checked by pydantic."""

    session_first = False

    def __init__(self, function: Callable[..., Any], description: str | None, names: JsonDict) -> None:
        summary, described = read_docstring(function.__doc__)
        self.description = description or summary
        self.session_parameter: str | None = None
        fields: dict[str, Any] = {}
        self._defaults: JsonDict = {}
        required: set[str] = set()
        hints = _type_hints(function, names)
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in hints:
                raise ToolDefinitionError(f"{function.__qualname__}: parameter {name!r} has no annotation.")
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ToolDefinitionError(
                    f"{function.__qualname__}: parameter {name!r} must be an ordinary one."
                )
            if _is_session(hints[name]):
                self.session_parameter = name
                continue
            fields[name] = _described(hints[name], described.get(name))
            if parameter.default is parameter.empty:
                required.add(name)
            else:
                self._defaults[name] = parameter.default
        self._adapter, schema = _build(function, fields, required)
        self.schema = _tidy(schema, self._defaults)

    def parse(self, tool_name: str, values: JsonDict) -> tuple[tuple[Any, ...], JsonDict]:
        """Check by pydantic; where that fails, coerce by the schema and check again."""
        from pydantic import ValidationError

        tried, sentences = values, list[str]()
        for change in (None, coerce):
            tried = change(values, self.schema) if change else values
            try:
                # Pydantic takes true for 1, which no model means: of booleans the schema is the judge.
                if not _holds_boolean(tried) or fits(tried, self.schema):
                    return (), self._adapter.validate_python(tried)
            except ValidationError as error:
                sentences = list(_sentences(error, self.schema))
        found = list(problems(tried, self.schema)) or sentences
        raise _arguments_error(tool_name, found, self.schema)


def _holds_boolean(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_boolean, cast(JsonDict, value).values()))
    if isinstance(value, list):
        return any(map(_holds_boolean, cast(list[Any], value)))
    return isinstance(value, bool)


def _type_hints(function: Callable[..., Any], names: JsonDict) -> JsonDict:
    try:
        hints = get_type_hints(function, localns=names or None, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"{function.__qualname__}: {error}. Annotations of a tool must be importable at run time."
        ) from None
    hints.pop("return", None)
    return hints


def _is_session(hint: Any) -> bool:
    from hermes_tools.session import ToolSession

    return isinstance(hint, type) and issubclass(hint, ToolSession)


def _described(hint: Any, text: str | None) -> Any:
    """An annotation whose string, if it has one, became the field's description."""
    from pydantic import Field

    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        texts = [extra for extra in extras if isinstance(extra, str)]
        rest = [extra for extra in extras if not isinstance(extra, str)]
        text = texts[0] if texts else text
        for extra in rest:
            kind = Annotated[kind, extra]
        hint = kind
    # The mark is equal to no other, so that typing's caches cannot hand out an equal union of another order.
    hint = Annotated[hint, _Mark()]
    return Annotated[hint, Field(description=text)] if text else hint


class _Mark:
    """Tells one use of a type from another."""


def _build(function: Callable[..., Any], fields: dict[str, Any], required: set[str]) -> tuple[Any, JsonDict]:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError
    from typing_extensions import NotRequired, TypedDict  # noqa: UP035 - pydantic asks for this one

    # A TypedDict and no model: parameters may then have any name ("schema", "json", "copy").
    members = {key: hint if key in required else NotRequired[hint] for key, hint in fields.items()}
    shape = cast(Any, TypedDict)(function.__name__, members)
    shape.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(shape)
        return adapter, adapter.json_schema()
    except PydanticUserError as error:
        raise ToolDefinitionError(f"{function.__qualname__}: {error}") from None


def _tidy(schema: JsonDict, defaults: JsonDict) -> JsonDict:
    """The schema without titles, with defaults, its references put in place unless they are recursive."""
    from pydantic_core import to_jsonable_python

    definitions: JsonDict = schema.pop("$defs", {})
    recursive = {name for name in definitions if _refers_to(definitions[name], name, definitions, set())}
    tidy = _inline(schema, definitions, recursive)
    if recursive:
        tidy["$defs"] = {name: _inline(definitions[name], definitions, recursive) for name in recursive}
    for name, default in defaults.items():
        if default is None:
            tidy["properties"][name] = _without_null(tidy["properties"][name])
            continue
        # JSON has no infinite numbers: such a default is not shown.
        shown = to_jsonable_python(default, fallback=str, inf_nan_mode="null")
        if shown is not None:
            tidy["properties"][name]["default"] = shown
    tidy.setdefault("properties", {})
    tidy["additionalProperties"] = False
    return tidy


def _without_null(schema: JsonDict) -> JsonDict:
    """A value that may be left out need not be shown as nullable too; null is taken all the same."""
    branches = cast(list[JsonDict], schema.get("anyOf", []))
    rest = [branch for branch in branches if branch.get("type") != "null"]
    if len(rest) == len(branches):
        return schema
    others = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest[0], **others} if len(rest) == 1 else {**others, "anyOf": rest}


def _refers_to(schema: Any, name: str, definitions: JsonDict, seen: set[str]) -> bool:
    if isinstance(schema, list):
        return any(_refers_to(item, name, definitions, seen) for item in cast(list[Any], schema))
    if not isinstance(schema, dict):
        return False
    schema = cast(JsonDict, schema)
    target = str(schema.get("$ref", "")).rpartition("/")[2]
    if target == name:
        return True
    if target and target not in seen:
        seen.add(target)
        if _refers_to(definitions.get(target), name, definitions, seen):
            return True
    return any(_refers_to(value, name, definitions, seen) for value in schema.values())


def _inline(schema: Any, definitions: JsonDict, keep: set[str], naming: bool = False) -> Any:
    """A copy of a schema; `naming` says that its keys are the names of properties, not keywords."""
    if isinstance(schema, list):
        return [_inline(item, definitions, keep) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    schema = cast(JsonDict, schema)
    if not naming and "$ref" in schema:
        target = str(schema["$ref"]).rpartition("/")[2]
        if target not in keep:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return _inline({**definitions[target], **rest}, definitions, keep)
    return {
        key: copy.deepcopy(value)
        if key in ("default", "enum", "const", "examples") and not naming
        else _inline(value, definitions, keep, key == "properties" and not naming)
        for key, value in schema.items()
        if naming or key != "title"
    }


def is_closed(schema: JsonSchema) -> bool:
    """Whether it says of every value what it may be, with every key of every object, as OpenAI's strict mode asks."""
    if schema.get("additionalProperties") or "prefixItems" in schema or "patternProperties" in schema:
        return False
    kinds = types_of(schema)
    if not kinds and not any(word in schema for word in ("$ref", "enum", "const", "anyOf", "oneOf", "allOf")):
        return False
    if ("object" in kinds and "properties" not in schema) or ("array" in kinds and "items" not in schema):
        return False
    parts = [*cast(JsonDict, schema.get("properties", {})).values(), *schema.get("$defs", {}).values()]
    parts += [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
    parts += [schema["items"]] if "items" in schema else []
    return all(isinstance(part, Mapping) and is_closed(cast(JsonSchema, part)) for part in parts)


def strict_schema(schema: JsonSchema) -> JsonDict:
    """The variant for OpenAI's strict mode, at every level: all required, nothing further allowed."""
    strict: JsonDict = {}
    for key, value in schema.items():
        if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            strict[key] = [strict_schema(item) for item in cast(list[JsonSchema], value)]
        elif key in ("items", "$defs") and isinstance(value, Mapping):
            part = cast(JsonSchema, value)
            strict[key] = (
                strict_schema(part) if key == "items" else {k: strict_schema(v) for k, v in part.items()}
            )
        elif key not in ("properties", "required", "default"):
            strict[key] = value
    if "properties" in schema:
        required = schema.get("required", ())
        properties = cast(dict[str, JsonSchema], schema["properties"])
        strict["properties"] = {
            name: strict_schema(part) if name in required else _nullable(strict_schema(part))
            for name, part in properties.items()
        }
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    return strict


def _nullable(schema: JsonDict) -> JsonDict:
    if "anyOf" in schema:
        branches = cast(list[JsonDict], schema["anyOf"])
        known = any(branch.get("type") == "null" for branch in branches)
        return schema if known else {**schema, "anyOf": [*branches, {"type": "null"}]}
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    text = {"description": schema.pop("description")} if "description" in schema else {}
    return {"anyOf": [schema, {"type": "null"}], **text}


def _sentences(error: Any, schema: JsonSchema) -> Iterator[str]:
    for item in error.errors(include_url=False):
        path = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            yield unknown_argument(path, schema.get("properties", {}))
        else:
            yield f"`{path}`: {item['msg']}, not {show(item['input'])}"


def _arguments_error(tool_name: str, found: list[str], schema: JsonSchema) -> ArgumentsError:
    parameters: JsonDict = {}
    for name, part in cast(dict[str, JsonSchema], schema.get("properties", {})).items():
        kind = resolve(part, schema)
        kinds = types_of(kind) or [each for branch in kind.get("anyOf", ()) for each in types_of(branch)]
        text = " or ".join(dict.fromkeys(kinds)) or "any"
        parameters[name] = text if name in schema.get("required", ()) else f"{text}, optional"
    listed = "; ".join(found[:8])
    return ArgumentsError(
        f"Invalid arguments for {tool_name}: {listed}. Nothing was run.", parameters=parameters
    )
