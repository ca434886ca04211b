"""Typing of text by JSON Schema."""

import json

import pytest
from hermes_parsers.format import Options
from hermes_parsers.schema import Typing, child, convert, typed, types_of


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("integer", "3", 3),
        ("integer", "3.0", 3),
        ("integer", "1_000", 1000),
        ("integer", " -7\n", -7),
        ("integer", "+7", 7),
        ("integer", "007", 7),
        ("integer", "9" * 60, int("9" * 60)),
        ("number", "1e3", 1000.0),
        ("number", ".5", 0.5),
        ("number", "2", 2),
        ("boolean", "True", True),
        ("boolean", "0", False),
        ("object", '{"a": 1}', {"a": 1}),
        ("object", "{'a': None, 'b': True}", {"a": None, "b": True}),
        ("array", "[1, 'x', (2,)]", [1, "x", [2]]),
    ],
)
def test_conversions(name, text, expected):
    value = convert(text, name)
    assert value is not None
    assert json.loads(value) == expected and type(json.loads(value)) is type(expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("integer", "3.5"),
        ("integer", "three"),
        ("number", "inf"),
        ("number", "nan"),
        ("number", "1e999"),
        ("boolean", "yes"),
        ("object", "[1]"),
        ("object", '{"a": NaN}'),
        ("array", "[1,,2]"),
        ("array", "[" * 100_000),
        ("object", "word " * 50_000),
    ],
)
def test_what_does_not_fit(name, text):
    assert convert(text, name) is None


def test_number_text_is_kept_where_it_is_json():
    assert convert("1.10", "number") == "1.10"
    assert convert("1E5", "number") == "1E5"


def typing(properties, **more):
    return Typing(Options(tools={"f": {"type": "object", "properties": properties, **more}}), "f")


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ["string"]),
        ({"type": ["integer", "null"]}, ["integer", "null"]),
        ({"type": "float"}, ["number"]),
        ({"type": "uint32"}, ["integer"]),
        ({"type": "datetime"}, ["string"]),
        ({"type": "any"}, []),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ["integer", "string"]),
        ({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Level"}]}, ["null", "integer"]),
        ({"allOf": [{"$ref": "#/$defs/Level"}, {"description": "x"}]}, ["integer"]),
        ({"$ref": "#/$defs/Loop"}, []),
        ({"$ref": "#/$defs/Missing"}, []),
        ({"$ref": "https://elsewhere"}, []),
        ({"type": "string", "nullable": True}, ["string", "null"]),
        ({"enum": ["a", 1, None, 1.5, True]}, ["string", "integer", "null", "number", "boolean"]),
        ({"const": {"a": 1}}, ["object"]),
        ({"properties": {}}, ["object"]),
        ({"items": {}}, ["array"]),
        (True, []),
        ("nonsense", []),
    ],
)
def test_types(schema, types):
    root = {"$defs": {"Level": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert list(types_of(schema, root)[0]) == types


def test_null_is_text_where_only_text_may_stand():
    assert typed("null", ("string",)) == '"null"'
    assert typed("null", ("string", "null")) == "null"
    assert typed("None", ("integer",)) == "null"
    assert typed("None", ("integer", "string")) == '"None"'
    assert typed("none", ("string", "null")) == '"none"'


def test_words_of_an_enum_stay_words():
    assert typed("1", ("integer", "string"), frozenset({"1"})) == '"1"'


def test_a_parameter_without_a_schema_is_text():
    known = typing({"n": {"type": "integer"}})
    assert known.json("n", "4") == "4" and known.is_text("other") and known.json("other", "4") == '"4"'
    assert typing({}, additionalProperties={"type": "integer"}).json("other", "4") == "4"
    guessing = Typing(Options(untyped="json"), "f")
    assert guessing.json("x", " [1] ") == "[1]" and guessing.json("x", "0150") == '"0150"'


def test_members_of_nested_schemas():
    schema = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    element = child(schema, None, {})
    assert child(element, "n", {}) == {"type": "integer"}
    assert child(element, "m", {}) is None
    assert child({"type": "object"}, "n", {}) == {}
    assert child({"anyOf": [{"type": "null"}, schema]}, None, {}) == schema["items"]
