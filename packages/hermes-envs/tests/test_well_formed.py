"""Halves of surrogate pairs: a model's JSON can spell them, and nothing may be lost to them."""

import json

from hermes_envs.clients import ScriptedClient, Turn
from hermes_envs.clients.completion import turn_of
from hermes_envs.messages import user_message
from hermes_envs.transcript import Transcript
from hermes_envs.well_formed import well_formed
from hermes_parsers import ParseError, ToolCall, get_parser

HALF = "a\ud83d"


def test_halves_are_replaced_and_halves_that_meet_are_joined():
    assert well_formed([HALF, {"k\udc00": (HALF, 1, None)}, "\ud83d\ude00", "ü"]) == [
        "a\ufffd",
        {"k\ufffd": ("a\ufffd", 1, None)},
        "😀",
        "ü",
    ]


def test_what_is_well_formed_is_left_alone():
    value = {"a": ["ü", (1, "b")], "call": ToolCall("1", "f", "{}")}
    assert well_formed(value) is value


def test_every_text_of_a_turn_can_be_written():
    message = {
        "content": HALF,
        "reasoning_content": HALF,
        "refusal": HALF,
        "reasoning_details": [{"text": HALF}],
        "tool_calls": [
            {"id": HALF, "function": {"name": HALF, "arguments": f'{{"a": "{HALF}"}}'}, "extra_content": HALF}
        ],
    }
    turn = turn_of({"model": HALF, "choices": [{"message": message}]})
    repr(turn).encode()
    assert turn.tool_calls[0].args == {"a": "a\ufffd"}
    call = '<tool_call>\n{"name": "a\\ud83d", "arguments": {}}\n</tool_call>'
    parsed = get_parser("hermes").parse(call)
    errors = (ParseError("malformed", HALF, 0, 1, HALF),)
    Turn(None, tool_calls=tuple(parsed.tool_calls), errors=errors).tool_calls[0].name.encode()


def test_a_datasets_prompt_can_be_sent():
    transcript = Transcript([user_message(HALF)], ScriptedClient([]))
    assert json.dumps(transcript.messages, ensure_ascii=False).encode()
