"""Names, one's own parsers and entry points."""

from importlib.metadata import EntryPoint

import pytest
from hermes_parsers import (
    Parser,
    ParserStream,
    UnknownParserError,
    get_parser,
    list_parsers,
    register_parser,
    registry,
)
from hermes_parsers.format import Format, Options


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_aliases", {})


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownParserError, match="did you mean 'hermes'") as caught:
        get_parser("hermse")
    assert isinstance(caught.value, KeyError) and "kimi_k2" in str(caught.value)
    assert caught.value.known == list_parsers()


def test_options_are_checked():
    with pytest.raises(ValueError, match="reasoning"):
        get_parser("hermes", reasoning="yes")
    with pytest.raises(ValueError, match="untyped"):
        get_parser("hermes", untyped="guess")


def test_tools_must_be_dicts():
    for tools in ([None], ["x"], "x", [{"name": "f"}, 1], {"name": "f"}):
        with pytest.raises(TypeError, match="tool dict, not"):
            get_parser("qwen3_coder", tools)


def test_a_parser_is_immutable():
    parser = get_parser("hermes")
    for name in ("options", "format", "name", "other"):
        with pytest.raises(AttributeError):
            setattr(parser, name, None)
    assert parser.parse("hi").content == "hi"


def test_a_format_of_ones_own():
    known = get_parser("hermes").format
    register_parser("mine", Format("mine", openers=known.openers, read=known.read), aliases=["my"])
    assert "mine" in list_parsers() and "my" not in list_parsers()
    assert get_parser("my").extract_tool_calls('<tool_call>{"name": "f"}</tool_call>')[0].name == "f"
    for taken in ("hermes", "mine", "my", "llama4_json"):
        with pytest.raises(ValueError, match="exists already"):
            register_parser(taken, known)


def test_a_parser_of_ones_own():
    class Shouting(Parser):
        def stream(self) -> ParserStream:
            return super().stream()

        def parse(self, text):
            return super().parse(text.lower())

    def make(options: Options) -> Parser:
        return Shouting(get_parser("hermes").format, options)

    register_parser("shouting", make)
    assert get_parser("shouting", lenient=True).options.lenient
    assert get_parser("shouting").parse("HI").content == "hi"


def test_entry_points(monkeypatch):
    entry = EntryPoint("theirs", "hermes_parsers.formats.mistral:_FOR_TEST", registry.GROUP)
    from hermes_parsers.formats import mistral

    monkeypatch.setattr(mistral, "_FOR_TEST", mistral.FORMATS["mistral"], raising=False)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    assert "theirs" in list_parsers()
    assert get_parser("theirs").extract_tool_calls("[TOOL_CALLS]f[ARGS]{}")[0].name == "f"


def test_tools_may_be_written_in_several_ways():
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}},
        },
        {"name": "g", "input_schema": {"properties": {"n": {"type": "integer"}}}},
        {"type": "web_search"},
    ]
    text = "".join(
        f"<tool_call>\n<function={name}>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>"
        for name in "fgh"
    )
    result = get_parser("qwen3_coder", tools).parse(text)
    assert [call.args for call in result.tool_calls] == [{"n": 1}, {"n": 1}, {"n": "1"}]
    assert result.unknown == ["h"]
