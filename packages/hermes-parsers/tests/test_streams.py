"""What holds for any text at all: it is read, and the same however it is cut."""

import time

import pytest
from hermes_parsers import catalog, get_parser, list_parsers
from hermes_parsers.testing import check_stream, load_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parsers_renderers import RENDERERS

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}},
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
PIECES = [
    *(
        "hello ",
        "\n",
        " ",
        '"',
        "\\",
        "'",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        ";",
        "=",
        "<",
        ">",
        "f",
        "a",
    ),
    *(
        '{"name": "f", "arguments": {"a": "x"}}',
        '{"name": "f", "parameters": {"n": 1}}',
        '{"name"',
        "{}",
        "[]",
    ),
    *(
        "functions.f:0",
        "function",
        "call:f{a:1}",
        "f(a='x', n=[1])",
        "now()",
        "null",
        "1",
        "```json\n",
        "```",
    ),
    *("<think>", "</think>", "<|im_end|>", "</s>", "é🫐", "\ud83d", "\0", "to=functions.f", "json"),
    *("<parameter=a>", "</parameter>", "<function=f>", "</function>", '<invoke name="f">', "</invoke>"),
    # Siblings in an array and what breaks them: words, quotes and brackets where none may stand.
    *(
        '[{"name": "f", "arguments": {"a": "',
        '"}}, {"name": "now", "arguments": {}}]',
        '{"name": "f", "id": 1}',
    ),
    *(
        "f{",
        'f{"a": "x"}',
        "x]",
        'ame": 1',
        "MID",
        '""',
        "}, {",
        ", x",
        "}}]",
        "it's",
        "' b='",
        "', 'y",
        "', now(",
        "\nnow(",
    ),
]


def texts(name):
    format = catalog.load(name)
    marks = [*format.special, *format.openers, *format.closers, *format.lenient_openers]
    marks += [word for pair in format.thinking for word in pair]
    marks += [part for word in marks for part in (word[: len(word) // 2], word[len(word) // 2 :]) if part]
    samples = [case.text for case in load_cases(name) if len(case.text) < 600]
    part = st.one_of(st.sampled_from(marks), st.sampled_from(PIECES), st.sampled_from(samples))
    return st.lists(part, max_size=12).map("".join)


OPTIONS = st.fixed_dictionaries(
    {
        "tools": st.sampled_from([None, TOOLS]),
        "reasoning": st.sampled_from(["auto", "open", "off"]),
        "lenient": st.booleans(),
        "untyped": st.sampled_from(["string", "json"]),
    }
)


def holds(name, data):
    text = data.draw(texts(name))
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
    parser = get_parser(name, **data.draw(OPTIONS))
    size = data.draw(st.integers(1, 5))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert check_stream(parser, text, pieces) is None
    result = parser.parse(text)
    for call in result.tool_calls:
        assert isinstance(call.args, dict)
    for error in result.errors:
        assert text[error.start : error.end] == error.raw


@pytest.mark.parametrize("name", list_parsers())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_text_reads_alike_in_any_pieces(name, data):
    holds(name, data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list_parsers())
@settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_very_many_texts_read_alike(name, data):
    holds(name, data)


def once_in_a_few(holds):
    """Whether a comparison of times comes out right once: a machine that stood still may count that as work."""
    return any(holds() for _ in range(3))


@pytest.mark.parametrize("name", list_parsers())
def test_floods_end_soon(name):
    format = catalog.load(name)
    marks = dict.fromkeys((*format.openers, *format.special, "<parameter=a>\n", "f(a='", '{"a":['))
    parser = get_parser(name)

    def seconds(mark):
        begin = time.process_time()
        parser.parse(mark * 800)
        parser.parse((format.openers or ("",))[0] + mark * 800)
        return time.process_time() - begin

    for mark in marks:
        assert once_in_a_few(lambda mark=mark: seconds(mark) < 3), mark


@pytest.mark.parametrize("name", list_parsers())
@pytest.mark.parametrize("bracket", ["[", "{", '{"a":', "(", "[[1],"])
def test_deep_nesting_is_an_error_or_text(name, bracket):
    for case in load_cases(name):
        if case.calls and len(case.text) < 400:
            text = case.text.replace("{", "{" + bracket * 20_000, 1)
            assert len(get_parser(name, case.tools).parse(text).tool_calls) <= len(case.calls)
            break


@pytest.mark.parametrize("name", list_parsers())
def test_openers_in_prose_cost_the_same_each(name):
    """However much was said before them."""
    format = catalog.load(name)
    text = "so " + " ".join(dict.fromkeys((*format.openers, "[[1],", '{"a":', "[{")))

    def seconds(times):
        begin = time.process_time()
        get_parser(name).parse(text * times)
        return time.process_time() - begin

    assert once_in_a_few(lambda: seconds(8_000) < 10 * max(seconds(2_000), 0.05))


@pytest.mark.parametrize("name", ["jamba", "hunyuan_a13b", "nemotron", "granite", "mistral"])
@pytest.mark.parametrize("entry", ["x", "ame", "1x", "-", "'x'"])
def test_an_entry_that_is_no_json_reads_alike_in_any_pieces(name, entry):
    call = '{"name": "f", "arguments": {"a": "b"}}'
    text = catalog.load(name).openers[0] + f"[{call}, {entry}]" + (catalog.load(name).closers or ("",))[0]
    for size in (1, 2, 3, 5):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert check_stream(get_parser(name), text, pieces) is None


def test_content_is_never_held_for_longer_than_a_marker():
    stream = get_parser("hermes").stream()
    shown = ""
    for char in "a <tool_bar> <tool_call" + "x" * 5:
        shown += "".join(delta.content or "" for delta in stream.feed(char))
    assert shown == "a <tool_bar> <tool_callxxxxx"


def test_arguments_arrive_while_they_are_written():
    stream = get_parser("hermes").stream()
    stream.feed('<tool_call>{"name": "f", "arguments": {"a": "')
    got = "".join(delta.tool_call.arguments for delta in stream.feed("x" * 100) if delta.tool_call)
    assert "x" * 98 in got


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1} oops</tool_call>'),
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b\n</function></tool_call>",
        ),
        ("mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1} oops}]'),
    ],
)
def test_arguments_of_a_broken_call_never_join_to_json(name, text):
    import json

    stream = get_parser(name).stream()
    deltas = [*stream.feed(text), *stream.finish()]
    streamed = "".join(delta.tool_call.arguments for delta in deltas if delta.tool_call)
    assert stream.result().errors and not stream.result().tool_calls
    with pytest.raises(ValueError):
        json.loads(streamed)


def test_a_finished_stream_takes_no_more():
    stream = get_parser("hermes").stream()
    stream.feed("a")
    assert stream.finish() == [] and stream.finish() == []
    with pytest.raises(ValueError, match="finished"):
        stream.feed("b")


LONG = [size + more for size in (128, 256, 512, 1024, 4000) for more in (-1, 0, 1, 2)]


@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_the_bounds_of_names_do_not_depend_on_the_chunks(name):
    parser = get_parser(name)
    for size in LONG:
        for call in (("n" * size, {"a": "b"}), ("f", {"k" * size: "b"})):
            text = RENDERERS[name]([call])
            for step in (len(text) // 2, size - 3, 61):
                pieces = [text[at : at + step] for at in range(0, len(text), step)]
                assert check_stream(parser, text, pieces) is None


@pytest.mark.parametrize("size", [900, 1000, 1014, 1015, 1016, 1023, 1024, 1025, 3000])
def test_the_bound_of_a_harmony_header_does_not_depend_on_the_chunks(size):
    for text in (
        f"<|channel|>commentary to=functions.f{' ' * size}<|message|>{{}}<|call|>",
        f"<|start|>{'x' * size}<|message|>hi",
    ):
        for step in (1, 7, 100):
            pieces = [text[at : at + step] for at in range(0, len(text), step)]
            assert check_stream(get_parser("gpt_oss"), text, pieces) is None


@pytest.mark.parametrize("name", ["mistral", "deepseek_v3_1"])
@pytest.mark.parametrize("tool", ["a_function", "function", "my_fn", "{x", "[y", "</s>z"])
def test_bare_names_of_tools_read_alike_in_any_pieces(name, tool):
    tools = [{"name": each} for each in (tool, "fn", "f")]
    parser = get_parser(name, tools, lenient=True)
    for text in (f'{tool}{{"a": 1}}fn{{}}f{{}}', f"so {tool}{{}}\nmy_fn{{\nfn{{"):
        for size in (1, 2, 3):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            assert check_stream(parser, text, pieces) is None


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("name", list_parsers())
def test_an_opener_before_itself_reads_alike_in_any_pieces(name, lenient):
    """A flood of openers takes a short cut, which depends on how much of it is in hand."""
    texts = [case.text for case in load_cases(name) if case.calls and len(case.text) < 200][:3]
    for text in [*texts, RENDERERS[name]([("f", {"a": "b"}), ("now", {})])]:
        for opener in catalog.load(name).openers:
            bare = text[max(0, text.find(opener)) :].replace(opener, opener * 2)
            for doubled in (bare, text + bare):
                parser = get_parser(name, TOOLS, lenient=lenient)
                for size in (1, 2, len(opener)):
                    pieces = [doubled[at : at + size] for at in range(0, len(doubled), size)]
                    assert check_stream(parser, doubled, pieces) is None
