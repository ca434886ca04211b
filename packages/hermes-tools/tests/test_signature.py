"""From a typed function to a schema, and from what models send to the function's arguments."""

from __future__ import annotations

import functools
import math
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from hermes_tools import Tool, ToolDefinitionError, ToolRegistry, ToolSession, default_registry, tool
from hermes_tools.signature import strict_schema
from hermes_tools_calls import fail, succeed
from pydantic import BaseModel, Field


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


@tool
def paint(
    colour: Annotated[Colour, "Which one"],
    points: list[Point],
    mode: Literal["fast", "slow"] = "fast",
    width: Annotated[float, Field(gt=0)] = 1.5,
    label: Optional[str] = None,  # noqa: UP045 - models' code is full of it
    extra: dict[str, int] | None = None,
    size: int | str = 3,
) -> dict[str, Any]:
    """Paint points.

    Args:
        points: Where to paint
            and how often.
    """
    return {
        "colour": colour.value,
        "points": [(p.x, p.y) for p in points],
        "mode": mode,
        "width": width,
        "label": label,
        "extra": extra,
        "size": size,
    }


def test_the_schema_follows_from_the_signature():
    assert paint.name == "paint"
    assert paint.description == "Paint points."
    schema = paint.parameters
    assert schema["required"] == ["colour", "points"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["colour"] == {
        "description": "Which one",
        "enum": ["red", "blue"],
        "type": "string",
    }
    assert schema["properties"]["points"]["description"] == "Where to paint and how often."
    assert schema["properties"]["points"]["items"]["properties"]["x"] == {"type": "integer"}
    assert schema["properties"]["mode"] == {"enum": ["fast", "slow"], "type": "string", "default": "fast"}
    assert schema["properties"]["width"] == {"exclusiveMinimum": 0, "type": "number", "default": 1.5}
    assert schema["properties"]["label"] == {"type": "string"}
    assert schema["properties"]["size"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "$defs" not in schema


def test_the_order_of_a_union_is_the_one_written():
    @tool
    def one(a: str | int) -> str:
        return ""

    @tool
    def two(a: int | str) -> str:
        return ""

    kinds = [
        [part["type"] for part in item.parameters["properties"]["a"]["anyOf"]] for item in (one, two, one)
    ]
    assert kinds == [["string", "integer"], ["integer", "string"], ["string", "integer"]]


def test_recursive_models_keep_their_reference():
    @tool
    def plant(tree: Tree) -> str:
        return tree.children[0].name

    jsonschema.Draft202012Validator.check_schema(plant.parameters)
    assert (
        plant.parse({"tree": {"name": "a", "children": '[{"name": "b"}]'}})[1]["tree"].children[0].name == "b"
    )


@pytest.mark.parametrize("name", sorted(default_registry().tools))
def test_every_built_in_schema_is_valid_in_both_variants(name: str):
    definition = default_registry().tools[name].definition()["function"]
    jsonschema.Draft202012Validator.check_schema(definition["parameters"])
    assert definition["description"].strip()
    for parameter, schema in definition["parameters"]["properties"].items():
        assert schema.get("description"), f"{name}.{parameter} has no description"
    strict = default_registry().tools[name].definition(strict=True)["function"]
    assert strict["strict"] is True
    _check_strict(strict["parameters"])


def _check_strict(schema: Any) -> None:
    """What OpenAI's strict mode asks of every object schema."""
    if isinstance(schema, list):
        for item in schema:
            _check_strict(item)
    elif isinstance(schema, dict):
        if "properties" in schema and isinstance(schema["properties"], dict):
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        for value in schema.values():
            _check_strict(value)


@pytest.mark.parametrize(
    "hint", [dict, dict[str, int], tuple[int, str], Any, list, list[dict[str, Any]], Point | dict[str, Point]]
)
def test_what_strict_mode_cannot_express_stays_without_it(hint: Any):
    def draw(what: Any) -> str:
        return ""

    draw.__annotations__["what"] = hint
    shown = tool(draw).definition(strict=True)["function"]
    assert "strict" not in shown and shown["parameters"] == tool(draw).parameters


class Rise(BaseModel):
    kind: Literal["rise"]
    by: Annotated[int, Field(ge=1)]


class Turn(BaseModel):
    kind: Literal["turn"]
    side: str


@tool
def move(step: Rise | Turn, times: int = 1, fast: bool = False) -> str:
    """Move."""
    return f"{step.kind} {times} {fast}"


async def test_a_union_is_refused_by_the_form_that_comes_nearest(open_session):
    session = open_session("custom", registry=ToolRegistry().with_tools(move))
    for step, words in (
        ({"kind": "rise", "by": 0}, "`step.by`: must be at least 1"),
        ({"kind": "fall"}, "meets none of its forms: `step.by`: is required"),
        (5, "`step`: must be an object, not 5"),
    ):
        assert words in await fail(session, "move", step=step)


async def test_true_is_no_number(open_session):
    session = open_session("custom", registry=ToolRegistry().with_tools(move))
    rise = {"kind": "rise", "by": 1}
    assert "`times`: must be an integer, not true" in await fail(session, "move", step=rise, times=True)
    assert "`step.by`: must be an integer" in await fail(session, "move", step=rise | {"by": True})
    assert (await succeed(session, "move", step=rise, times="2", fast="true"))["result"] == "rise 2 True"


def test_in_strict_mode_null_stands_for_the_default():
    strict = strict_schema(paint.parameters)
    assert {"type": "null"} in strict["properties"]["mode"]["anyOf"]
    assert strict["properties"]["width"]["type"] == ["number", "null"]
    arguments = {
        "colour": "red",
        "points": [],
        "mode": None,
        "width": None,
        "label": None,
        "extra": None,
        "size": None,
    }
    jsonschema.validate(arguments, strict)
    assert paint.parse(arguments)[1] == {"colour": Colour.RED, "points": []}


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        ({"points": '[{"x": "1"}]'}, {"points": [(1, 0)]}),
        ({"points": {"x": 1, "y": "2"}}, {"points": [(1, 2)]}),
        ({"points": []}, {"points": []}),
        ({"points": [], "colour": " RED "}, {"colour": "red"}),
        ({"points": [], "width": "2.5"}, {"width": 2.5}),
        ({"points": [], "label": 12}, {"label": "12"}),
        ({"points": [], "label": {"a": 1}}, {"label": '{\n  "a": 1\n}'}),
        ({"points": [], "label": None}, {"label": None}),
        ({"points": [], "extra": '{"a": "7"}'}, {"extra": {"a": 7}}),
        ({"points": [], "size": "9"}, {"size": "9"}),
        ({"points": [], "mode": "SLOW"}, {"mode": "slow"}),
    ],
)
async def test_what_models_send_is_brought_to_the_types(open_session, sent, got):
    result = await succeed(open_session(paint), "paint", **{"colour": "blue", **sent})
    got = {key: [list(point) for point in value] if key == "points" else value for key, value in got.items()}
    assert {key: result[key] for key in got} == got


@pytest.mark.parametrize(
    ("sent", "parts"),
    [
        ({}, ["`colour`: is required", "`points`: is required"]),
        ({"colour": "green", "points": []}, ["colour", "red", "blue", "green"]),
        ({"colour": "red", "points": [{"y": 1}]}, ["points", "x", "required"]),
        ({"colour": "red", "points": [{"x": "one"}]}, ["points[0].x", "an integer", '"one"']),
        ({"colour": "red", "points": [], "widht": 1}, ["widht", "Did you mean 'width'?"]),
        ({"colour": "red", "points": [], "width": -1}, ["width", "more than 0"]),
        ({"colour": "red", "points": [], "width": float("nan")}, ["width", "not NaN"]),
    ],
)
async def test_errors_say_what_to_fix(open_session, sent, parts):
    message = await fail(open_session(paint), "paint", **sent)
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize("sent", ["", "  ", "{}", '"{}"', "null"])
async def test_ways_to_send_no_arguments(sent):
    @tool
    def ping(count: int = 1) -> str:
        return "pong"

    assert ping.parse(sent) == ((), {})


@pytest.mark.parametrize("sent", ["[1]", "{", "5", '{"a": 1', "[" * 100_000, '"x"'])
async def test_arguments_that_are_no_object_are_refused(open_session, sent):
    from hermes_tools import call_tool

    output = await call_tool("paint", sent, open_session(paint))
    assert output.error and "JSON" in output.error


def test_parameters_may_have_any_name():
    @tool
    def odd(schema: str, copy: int, json: bool, model_config: str = "") -> str:
        return ""

    assert list(odd.parameters["properties"]) == ["schema", "copy", "json", "model_config"]
    assert odd.parse('{"schema": "s", "copy": 1, "json": true}')[1] == {
        "schema": "s",
        "copy": 1,
        "json": True,
    }


def test_the_session_is_not_shown_to_the_model():
    @tool
    async def who(session: ToolSession, name: str) -> str:
        return name

    assert list(who.parameters["properties"]) == ["name"]


def test_a_wrong_declaration_is_refused():
    @tool
    def bare(thing):
        return thing

    @tool
    def many(*things: str):
        return things

    with pytest.raises(ToolDefinitionError, match="'thing' has no annotation"):
        _ = bare.parameters
    with pytest.raises(ToolDefinitionError, match="'things'"):
        _ = many.parameters
    with pytest.raises(ToolDefinitionError, match="no tool name"):
        tool(name="not a name")(paint.handler)
    with pytest.raises(ToolDefinitionError, match="no function"):
        tool(name="part")(functools.partial(paint.handler, 1))


def test_what_pydantic_cannot_check_is_refused_as_a_wrong_declaration():
    class Odd:
        pass

    @tool
    def strange(thing: Odd) -> None:
        """Takes anything."""

    with pytest.raises(ToolDefinitionError, match="strange"):
        _ = strange.parameters


def test_a_tool_that_yields_is_refused():
    async def each():
        yield 1

    with pytest.raises(ToolDefinitionError, match="yield"):
        tool(each)


def test_a_default_that_json_has_not_is_not_shown():
    @tool
    def bounded(most: float = math.inf) -> float:
        return most

    assert bounded.parameters["properties"] == {"most": {"type": "number"}}


async def test_pairs_and_the_schemas_of_older_servers_are_coerced_too(open_session):
    @tool
    def pair(both: tuple[int, str]) -> list[int | str]:
        """Two things."""
        return list(both)

    schema = {"properties": {"n": {"allOf": [{"$ref": "#/$defs/N"}]}}, "$defs": {"N": {"type": "integer"}}}
    old = Tool.from_schema("old", "Takes a number.", schema, lambda session, args: args)
    session = open_session(pair, old)
    assert await succeed(session, "pair", both=["1", 2]) == {"result": [1, "2"]}
    assert await succeed(session, "old", n="5") == {"n": 5}


async def test_a_tool_from_a_plain_schema(open_session):
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    adder = Tool.from_schema(
        "adder", "Adds one.", schema, lambda session, args: {"sum": args["n"] + 1, **args}
    )
    session = open_session(adder)
    assert await succeed(session, "adder", n="4", tags="a") == {"sum": 5, "n": 4, "tags": ["a"]}
    assert "at least 1" in await fail(session, "adder", n=0)
    assert "`n`: is required" in await fail(session, "adder", tags=[])
    assert "no parameter 'm'" in await fail(session, "adder", n=1, m=2)
