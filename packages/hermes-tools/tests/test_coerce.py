"""Properties of coercion and of the schema check, against the reference implementation of JSON Schema."""

from typing import Any

import jsonschema
from hermes_tools.coerce import coerce
from hermes_tools.schema import fits
from hypothesis import given, settings
from hypothesis import strategies as st

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", "1", "2.5", "true", "null", "[1]"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
leaves: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "maximum": 3},
        {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"enum": ["a", 1, None]},
        {"const": "a"},
        {},
    ]
)
schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item, "maxItems": 2}, inner),
        st.builds(lambda x, y: {"anyOf": [x, y]}, inner, inner),
        st.builds(
            lambda a, b, more: {
                "type": "object",
                "properties": {"a": a, "b": b},
                "required": ["a"],
                "additionalProperties": more,
            },
            inner,
            inner,
            st.booleans() | inner,
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None)
@given(values, schemas)
def test_the_check_agrees_with_jsonschema(value, schema):
    if not _unequal_truth(value, schema):
        assert fits(value, schema) == jsonschema.Draft202012Validator(schema).is_valid(value)


def _unequal_truth(value: Any, schema: Any) -> bool:
    """Whether the difference is that JSON Schema tells true from 1, which Python does not."""
    text = repr(value)
    return ("True" in text or "False" in text) and ("enum" in repr(schema) or "const" in repr(schema))


@settings(max_examples=500, deadline=None)
@given(values, schemas)
def test_what_fits_is_left_alone(value, schema):
    if fits(value, schema):
        assert fits(coerce(value, schema), schema)
        if not isinstance(value, dict | list):
            assert coerce(value, schema) == value


@settings(max_examples=300, deadline=None)
@given(values, schemas)
def test_coercing_twice_changes_nothing_more(value, schema):
    once = coerce(value, schema)
    if fits(once, schema):
        assert coerce(once, schema) == once


def test_a_huge_number_in_a_string_is_not_a_crash():
    assert coerce("9" * 10_000, {"type": "integer"}) == "9" * 10_000
    assert coerce("1e999", {"type": "integer"}) == "1e999"
