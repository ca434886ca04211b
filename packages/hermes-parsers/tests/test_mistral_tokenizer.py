"""What Mistral's own tokenizer writes for calls is read back, ids included."""

import json

import pytest
from hermes_parsers import get_parser

pytest.importorskip("mistral_common")
pytest.importorskip("sentencepiece")

CALLS = [
    ("abcdefgh1", "get_weather", {"city": 'Bodø, [ARGS] "quoted"', "days": 3}),
    ("abcdefgh2", "get_weather", {}),
]


def wire_text(version):
    from mistral_common.protocol.instruct.messages import AssistantMessage, ToolMessage, UserMessage
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.tool_calls import Function, FunctionCall, Tool, ToolCall
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = getattr(MistralTokenizer, version)()
    tool = Tool(function=Function(name="get_weather", description="d", parameters={"type": "object"}))
    calls = [
        ToolCall(id=id, function=FunctionCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False)))
        for id, name, arguments in CALLS
    ]
    answers = [ToolMessage(tool_call_id=id, content="x", name=name) for id, name, _ in CALLS]
    messages = [UserMessage(content="hi"), AssistantMessage(content=None, tool_calls=calls), *answers]
    tokens = tokenizer.encode_chat_completion(ChatCompletionRequest(tools=[tool], messages=messages)).tokens
    decode = tokenizer.instruct_tokenizer.tokenizer.decode
    text = decode(tokens, special_token_policy=SpecialTokenPolicy.KEEP).replace("▁", " ")
    return text[text.index("[TOOL_CALLS]") : text.index("[TOOL_RESULTS]")]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("version", ["v3", "v7"])
def test_calls_of_the_real_tokenizer(version):
    result = get_parser("mistral").parse(wire_text(version))
    assert [(call.id, call.name, call.args) for call in result.tool_calls] == CALLS
    assert result.content is None and not result.errors
