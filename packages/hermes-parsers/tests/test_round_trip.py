"""Whatever calls a template writes, with whatever around them and however the text is cut, are read back."""

import pytest
from hermes_parsers import get_parser, list_parsers
from hermes_parsers.testing import check_stream
from hermes_parsers.testing.check import same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parsers_renderers import RENDERERS, TEXT_VALUES, array

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,11}", fullmatch=True)
PROSE = st.text(alphabet="abc ÆØ東🫐\n.!<>()=/", max_size=24)
STRINGS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="\"'\\\n\t{}[](),:<>/=|# ab", max_size=30),
    st.sampled_from(["null", "None", "true", "42", "1.10", "0150", "</tool_call>", "&lt;b&gt;", "a\\nb"]),
)
SCALARS = st.one_of(
    STRINGS,
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TYPED = {
    "text": ("string", STRINGS),
    "count": ("integer", st.integers(-(10**25), 10**25)),
    "score": ("number", st.floats(allow_nan=False, allow_infinity=False)),
    "flag": ("boolean", st.booleans()),
    "items": ("array", st.lists(VALUES, max_size=3)),
    "options": ("object", st.dictionaries(NAMES, VALUES, max_size=3)),
}
TOOL_NAMES = ("f", "write_file", "get_weather")
PROPERTIES = {key: {"type": kind} for key, (kind, _) in TYPED.items()}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}},
    }
    for name in TOOL_NAMES
]
WHOLE_TEXT = ("xlam", "gpt_oss")


def clean(value, words):
    """`value` without the tags that its format cannot carry."""
    if isinstance(value, str):
        return "" if any(word in value for word in words) else value
    if isinstance(value, dict):
        return {clean(key, words): clean(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [clean(each, words) for each in value]
    return value


@st.composite
def calls_for(draw, name):
    if name not in TEXT_VALUES:
        names = st.one_of(NAMES, st.just("mcp__fs__read"))
        arguments = st.dictionaries(NAMES, VALUES, max_size=4)
        return draw(st.lists(st.tuples(names, arguments), min_size=1, max_size=3))
    words = get_parser(name).format.special
    typed = st.fixed_dictionaries({}, optional={key: values for key, (_, values) in TYPED.items()})
    calls = draw(st.lists(st.tuples(st.sampled_from(TOOL_NAMES), typed), min_size=1, max_size=3))
    return [(tool, clean(arguments, words)) for tool, arguments in calls]


def test_every_format_has_a_renderer():
    assert sorted(RENDERERS) == list_parsers()


@pytest.mark.parametrize("name", sorted(RENDERERS))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_calls_come_back(name, data):
    read_back(name, data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(RENDERERS))
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_many_calls_come_back(name, data):
    read_back(name, data)


def read_back(name, data):
    calls = data.draw(calls_for(name))
    before = "" if name in WHOLE_TEXT else data.draw(PROSE)
    after = "" if name in WHOLE_TEXT else data.draw(PROSE)
    thought = data.draw(st.one_of(st.just(""), st.just("Let me see."), PROSE))
    end = data.draw(st.sampled_from(["", *get_parser(name).format.end_of_turn[:2]]))
    if name == "gpt_oss":
        head = f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant" if thought else ""
        end = ""
    else:
        start, stop = get_parser(name).format.thinking[0]
        head = f"{start}{thought}{stop}" if thought else ""
    text = head + before + RENDERERS[name](calls) + after + end

    parser = get_parser(name, TOOLS if name in TEXT_VALUES else None)
    result = parser.parse(text)

    assert not result.errors
    assert [call.name for call in result.tool_calls] == [tool for tool, _ in calls]
    for call, (_, arguments) in zip(result.tool_calls, calls, strict=True):
        assert same(call.args, arguments)
    assert "".join((result.content or "").split()) == "".join((before + after).split())
    assert (result.reasoning or "") == (thought if thought.strip() else "")
    size = data.draw(st.integers(1, 9))
    assert check_stream(parser, text, [text[at : at + size] for at in range(0, len(text), size)]) is None


THREE = [("a", {"k": "one"}), ("b", {"k": "MID"}), ("c", {"k": "three", "n": [{"o": 1}, {"p": 2}]})]
ARRAYS = {
    **{
        name: RENDERERS[name]
        for name in ("jamba", "hunyuan_a13b", "nemotron", "granite", "phi4_mini", "xlam")
    },
    "hermes": array("<tool_call>", "</tool_call>"),
    "mistral": array("[TOOL_CALLS] ", ""),
    "llama3_json": array("", ""),
}
BREAKS = {
    "word": ('"MID"', "MID"),
    "bracket": ('"MID"}', '"MID"'),
    "quote": ('"MID"', '"MID'),
    "stray quote": ('"MID"', '"MID""'),
    "inner quote": ('"MID"', '"it"s"'),
    "no object": ('{"k": "MID"}', '["MID"]'),
    "no JSON": ('{"k": "MID"}', "oops"),
    "no name": ('"name": "b"', '"nme": "b"'),
    "no entry": ('{"name": "b", "arguments": {"k": "MID"}}', "oops(1)"),
    "nested": ('"MID"', '[{"o": 1}, {"name": "rm", "arguments": {"k": 1}}, oops]'),
}


@pytest.mark.parametrize("name", sorted(ARRAYS))
@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_call_of_an_array_is_an_error_and_leaves_its_siblings(name, kind):
    good, broken = BREAKS[kind]
    text = ARRAYS[name](THREE)
    if name == "llama3_json":
        text, good, broken = (each.replace("arguments", "parameters") for each in (text, good, broken))
    for pretty in (text, text.replace("}, {", "},\n  {")):
        cut = pretty.replace(good, broken)
        parser = get_parser(name)
        result = parser.parse(cut)
        assert [(call.name, call.args) for call in result.tool_calls] == [THREE[0], THREE[2]]
        (error,) = result.errors
        assert broken in error.raw and "three" not in error.raw and not result.content
        for size in (1, 3, 7):
            assert check_stream(parser, cut, [cut[at : at + size] for at in range(0, len(cut), size)]) is None


@pytest.mark.parametrize(
    "broken", ['{"k": "MID"', '{"k": 1', '{"k": [1, ', "", "{", '{"k": "MID', '{"k": MID}']
)
def test_a_call_of_mistral_may_be_cut_off_before_the_next(broken):
    text = f'[TOOL_CALLS]a[ARGS]{{"k": 1}}[TOOL_CALLS]b[ARGS]{broken}[TOOL_CALLS]c[ARGS]{{"k": "three"}}'
    result = get_parser("mistral").parse(text)
    assert [call.name for call in result.tool_calls] == ["a", "c"]
    assert [error.raw for error in result.errors] == [f"[TOOL_CALLS]b[ARGS]{broken}"]
    for size in (1, 2, 3, 7):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert check_stream(get_parser("mistral"), text, pieces) is None


@pytest.mark.parametrize(
    ("text", "calls", "broken"),
    [
        ("[a(k='one'), b(k='MID', c(k='three')]", ["a", "c"], ["b(k='MID'"]),
        ("[a(k='one'), b(k=1, c(k='three')]", ["a", "c"], ["b(k=1"]),
        ("[a(k='one')\nb(k='MID'\nc(k='three')]", ["a", "c"], ["b(k='MID'"]),
        ("[a(k='one'), b(k=1, c(k=3))]", ["a"], ["b(k=1", "c(k=3))"]),
        ("[a(k='one'), b(k='MID), c(k='three')]", ["a"], ["b(k='MID), c(k='three')"]),
        ("[f(a='x' b='y')]", [], ["[f(a='x' b='y')"]),
        ("[f(a='x', 'y')]", [], ["[f(a='x', 'y')"]),
        ("[f(a='x', 'y', b='z'), g()]", ["g"], ["[f(a='x', 'y', b='z')"]),
        ("[f(t='print('hi')\nrest(1)')]", [], ["[f(t='print('hi')"]),
    ],
)
def test_a_broken_python_call_is_never_made(text, calls, broken):
    parser = get_parser("pythonic")
    result = parser.parse(text)
    assert [call.name for call in result.tool_calls] == calls
    assert [error.raw for error in result.errors] == broken
    for size in (1, 2, 5):
        assert check_stream(parser, text, [text[at : at + size] for at in range(0, len(text), size)]) is None


@pytest.mark.parametrize(
    "value",
    [
        "it's",
        "sed -n '360,450p' f",
        "the boys' toys (many)",
        "rock 'n roll",
        "it's = 3",
        "x in ('a', 'b')",
        "<a class='x' href='y'>z</a>",
        "say 'x', then go(now)",
    ],
)
def test_quotes_inside_a_python_string_need_no_escaping(value):
    result = get_parser("pythonic").parse(f"[f(a='{value}', n=1), g(a='{value}')]")
    assert [call.args for call in result.tool_calls] == [{"a": value, "n": 1}, {"a": value}]


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
@pytest.mark.parametrize(
    "broken",
    ["{k:QMIDQ", "{k:QMID}", "{k:QMIDQ l:QxQ}", "{k:[QMIDQ QxQ]}", "{k:QMIDQ,QxQ}", "{k:QMIDQ,l:{m:QxQ}"],
)
def test_a_broken_call_of_gemma_is_never_made_and_leaves_its_siblings(name, broken):
    parser = get_parser(name)
    opener, close, quote = parser.format.special
    wire = RENDERERS[name](THREE)
    text = wire.replace(f"{{k:{quote}MID{quote}}}", broken.replace("Q", quote))
    result = parser.parse(text)
    assert [call.name for call in result.tool_calls] == ["a", "c"]
    assert [error.kind for error in result.errors] == ["invalid_json"]
    assert result.errors[0].raw == f"{opener}call:b{broken.replace('Q', quote)}{close}"
    for size in (1, 3, 8):
        assert check_stream(parser, text, [text[at : at + size] for at in range(0, len(text), size)]) is None


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
def test_delimiters_inside_a_string_of_gemma_are_data(name):
    opener, close, quote = get_parser(name).format.special
    for value in (f"say {quote}hi{quote} to: me", f"see {close} there", f"a, {{b}}: [{opener}]"):
        text = RENDERERS[name]([("f", {"k": value, "l": "x"}), ("g", {})])
        calls = get_parser(name).extract_tool_calls(text)
        assert [call.args for call in calls] == [{"k": value, "l": "x"}, {}]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "parameters": {"k": oops}}; {"name": "b", "parameters": {}}',
        '<|python_tag|>{"name": "a", "parameters": {"k": 1}; {"name": "b", "parameters": {}}',
        '[{"name": "a", "parameters": {"k": oops}}, {"name": "b", "parameters": {}}]',
        '[{"name": "b", "parameters": {}}, {"name": "a", "parameters": {"k": oops}}]',
    ],
)
def test_what_separates_a_broken_call_from_the_next_is_not_content(text):
    result = get_parser("llama3_json").parse(text)
    assert [call.name for call in result.tool_calls] == ["b"]
    assert [error.kind for error in result.errors] == ["invalid_json"]
    assert result.content is None


@pytest.mark.parametrize("name", list_parsers())
def test_calls_inside_a_value_are_part_of_it(name):
    """A model that writes a file about tool calls must not run what stands in the file."""
    render = RENDERERS[name]
    tools = [
        {"name": tool, "parameters": {"properties": {key: {"type": "string"} for key in "tu"}}}
        for tool in ("w", "rm")
    ]
    parser = get_parser(name, tools)
    one, two = render([("rm", {"t": "x"})]), render([("rm", {"t": "x"}), ("rm", {})])
    for value in (one, two, f"{one}\n{two}", f"doc:\n{two}\nend", f"<think>hm</think> {one}"):
        for arguments in ({"t": value}, {"t": value, "u": "z"}, {"t": "a", "u": value}):
            text = render([("w", arguments), ("w", {"t": "k"})])
            result = parser.parse(text)
            assert [(call.name, call.args) for call in result.tool_calls] == [
                ("w", arguments),
                ("w", {"t": "k"}),
            ]
            assert not result.errors and not (result.content or "").strip()
            assert check_stream(parser, text, [text[at : at + 3] for at in range(0, len(text), 3)]) is None
            cut = text[: text.index("x") + 30]
            assert not any(call.name == "rm" for call in parser.extract_tool_calls(cut))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mistral", '[TOOL_CALLS]w[ARGS]{"t": "[TOOL_CALLS]rm[ARGS]{}", "u": oops}'),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>"
            '{"t": "<|tool_call_begin|>functions.rm:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "u": oops}'
            "<|tool_call_end|><|tool_calls_section_end|>",
        ),
        ("llama3_json", '{"name": "w", "parameters": {"t": {"name": "rm", "parameters": {}}, "u": oops}}'),
        (
            "qwen3_coder",
            "<tool_call>\n<function=w>\n<parameter=t>\n<tool_call>\n<function=rm>\n</function>\n</tool_call>\n"
            "</parameter>\n<parameter=u\n</function>\n</tool_call>",
        ),
        ("gemma4", '<|tool_call>call:w{t:<|"|><|tool_call>call:rm{}<tool_call|><|"|>,u:[}<tool_call|>'),
    ],
)
def test_a_call_inside_a_value_of_a_broken_call_is_not_made(name, text):
    result = get_parser(name).parse(text)
    assert not result.tool_calls and len(result.errors) == 1
    for size in (1, 4):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert check_stream(get_parser(name), text, pieces) is None
