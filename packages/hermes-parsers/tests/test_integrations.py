"""The plug-ins for inference servers, against the servers' published interfaces."""

import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import parsers_servers
import pytest
from hermes_parsers import UnknownParserError, list_parsers
from hermes_parsers.integrations import sglang, vllm

TEXT = "Ok.<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>"
TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}},
}


class Tool:
    def model_dump(self):
        return TOOL


@pytest.fixture
def servers(monkeypatch):
    parsers_servers.install(monkeypatch)


def test_without_the_servers_the_reason_is_told():
    with pytest.raises(ImportError, match="vLLM"):
        vllm.register()
    with pytest.raises(ImportError):
        sglang.register()


def test_vllm_knows_every_format(servers):
    names = vllm.register()
    assert names == [f"hermes_parsers_{name}" for name in list_parsers()]
    with pytest.raises(UnknownParserError):
        vllm.register(["hermse"])


def test_loading_the_plug_in_leaves_vllm_itself_in_place(servers, monkeypatch):
    server = sys.modules["vllm"]
    monkeypatch.setattr(server, "__spec__", ModuleSpec("vllm", None))
    monkeypatch.setitem(sys.modules, "__init__", None)
    parsers_servers.ToolParserManager.tool_parsers.clear()
    parsers_servers.ToolParserManager.import_tool_parser(vllm.__file__)
    assert sys.modules["vllm"] is server
    assert "hermes_parsers_hermes" in parsers_servers.ToolParserManager.tool_parsers


def test_vllm_keeps_the_special_tokens_where_calls_may_come(servers):
    parser = vllm.tool_parser("kimi_k2")("tokenizer")
    for tools, choice, skip in (([TOOL], "auto", False), ([TOOL], "none", True), (None, "auto", True)):
        request = SimpleNamespace(tools=tools, tool_choice=choice, skip_special_tokens=True)
        assert parser.adjust_request(request).skip_special_tokens is skip


BROKEN = '<tool_call>{"name": "f", "arguments": {]}</tool_call>'
NAMELESS = '<tool_call>{"arguments": {}}</tool_call>'


def test_servers_show_the_text_of_calls_that_cannot_be_read(servers):
    good = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    for text, content in (
        (BROKEN, BROKEN),
        ("Ok." + BROKEN + good, "Ok." + BROKEN),
        (good + NAMELESS, NAMELESS.removesuffix("</tool_call>")),
    ):
        found = vllm.tool_parser("hermes")("tokenizer").extract_tool_calls(
            text, SimpleNamespace(tools=[TOOL])
        )
        assert (found.content, len(found.tool_calls)) == (content, text.count(good))
        found = sglang.detector("hermes")().detect_and_parse(text, [])
        assert (found.normal_text, len(found.calls)) == (content, text.count(good))
    shown = sglang.detector("hermes")().parse_streaming_increment(NAMELESS, [])
    assert shown.normal_text == NAMELESS.removesuffix("</tool_call>")


def test_a_message_of_a_stream_holds_each_call_once(servers):
    # vLLM compares the arguments of the first piece of the last message with those that are complete.
    text = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
    parser = vllm.tool_parser("hermes")("tokenizer")
    message = parser.extract_tool_calls_streaming("", text, text, [], [], [], SimpleNamespace(tools=[TOOL]))
    assert [(call.index, call.function.arguments) for call in message.tool_calls] == [(0, '{"n": 1}')]
    shown = sglang.detector("hermes")().parse_streaming_increment(text, [])
    assert [(call.name, call.parameters) for call in shown.calls] == [("f", '{"n": 1}')]


def test_vllm_reads_whole_texts(servers):
    vllm.register(["qwen3_coder"], prefix="")
    parser = parsers_servers.ToolParserManager.get_tool_parser("qwen3_coder")("tokenizer")
    found = parser.extract_tool_calls(TEXT, SimpleNamespace(tools=[Tool()]))
    assert found.tools_called and found.content == "Ok."
    assert found.tool_calls[0].function.arguments == '{"n": 1}'
    assert not parser.extract_tool_calls("hi", SimpleNamespace(tools=None)).tools_called


def test_vllm_reads_streams(servers):
    parser = vllm.tool_parser("qwen3_coder")("tokenizer", [TOOL])
    request, text, content, arguments, names = SimpleNamespace(tools=[TOOL]), "", "", "", []
    for at in range(0, len(TEXT), 4):
        piece = TEXT[at : at + 4]
        message = parser.extract_tool_calls_streaming(text, text + piece, piece, [], [], [], request)
        text += piece
        content += getattr(message, "content", None) or ""
        for call in getattr(message, "tool_calls", []):
            names += [call.function.name] if hasattr(call.function, "name") else []
            arguments += call.function.arguments
    assert (content, names, arguments) == ("Ok.", ["f"], '{"n": 1}')
    # vLLM sends at the end what the first has beyond the second.
    assert parser.prev_tool_call_arr == [{"name": "f", "arguments": arguments}]
    assert parser.streamed_args_for_tool == [arguments]


def test_sglang_reads_whole_texts_and_streams(servers):
    sglang.register(["qwen3_coder"])
    make = parsers_servers.FunctionCallParser.ToolCallParserEnum["hermes_parsers_qwen3_coder"]
    assert make().has_tool_call(TEXT) and not make().has_tool_call("hi")
    found = make().detect_and_parse(TEXT, [Tool()])
    assert found.normal_text == "Ok."
    assert [(call.tool_index, call.name, call.parameters) for call in found.calls] == [(0, "f", '{"n": 1}')]
    detector, results = make(), []
    for at in range(0, len(TEXT), 4):
        results.append(detector.parse_streaming_increment(TEXT[at : at + 4], [Tool()]))
    results.append(detector.finish([Tool()]))
    calls = [call for result in results for call in result.calls]
    assert "".join(result.normal_text for result in results) == "Ok."
    assert [call.name for call in calls if call.name] == ["f"]
    assert "".join(call.parameters for call in calls) == '{"n": 1}'
    assert not detector.supports_structural_tag()


def test_sglang_gives_what_was_held_at_the_end(servers):
    detector = sglang.detector("hermes")()
    assert detector.parse_streaming_increment("2 <", []).normal_text == "2 "
    assert detector.finish([]).normal_text == "<"
