"""OpenAI's shapes, checked by the `openai` library's own types, and the two adapters."""

import asyncio
import json

import pytest
from hermes_parsers import get_parser
from hermes_parsers.openai import ChunkWriter, chunks_from_text, parse_server_stream

chat = pytest.importorskip(
    "openai.types.chat", reason="openai is not installed: it is no dependency of this package"
)
ChatCompletionChunk, ChatCompletionMessage = chat.ChatCompletionChunk, chat.ChatCompletionMessage

TEXT = '<think>hm</think>Look: <tool_call>{"name": "f", "arguments": {"a": "x y"}}</tool_call><tool_call>{"name": "g"}</tool_call>'


async def pieces(text, size=3):
    for at in range(0, len(text), size):
        await asyncio.sleep(0)
        yield text[at : at + size]


async def collect(chunks):
    return [chunk async for chunk in chunks]


def joined(chunks):
    """What a client sees that adds up the chunks of one choice."""
    content, reasoning, calls, reasons = "", "", {}, []
    for chunk in chunks:
        for choice in ChatCompletionChunk.model_validate(chunk).choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or []:
                entry = calls.setdefault(call.index, {"id": None, "name": None, "arguments": ""})
                entry["id"] = entry["id"] or call.id
                entry["name"] = entry["name"] or call.function.name
                entry["arguments"] += call.function.arguments or ""
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
    return content, reasoning, list(calls.values()), reasons


def test_a_result_is_an_assistant_message():
    message = get_parser("hermes").parse(TEXT).to_openai()
    assert ChatCompletionMessage.model_validate(message).tool_calls[0].function.arguments == '{"a": "x y"}'
    assert message["reasoning_content"] == "hm" and message["content"] == "Look: "
    assert get_parser("hermes").parse("hi").to_openai() == {"role": "assistant", "content": "hi"}


async def test_text_becomes_chunks():
    chunks = await collect(chunks_from_text(get_parser("hermes"), pieces(TEXT), model="m"))
    content, reasoning, calls, reasons = joined(chunks)
    assert (content, reasoning, reasons) == ("Look: ", "hm", ["tool_calls"])
    assert [(call["name"], call["arguments"]) for call in calls] == [("f", '{"a": "x y"}'), ("g", "{}")]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert len({chunk["id"] for chunk in chunks}) == 1 and chunks[0]["model"] == "m"


async def test_a_broken_call_is_reported_and_does_not_count():
    text = '<tool_call>{"name": "f", "arguments": {"a": 1} oops</tool_call>'
    chunks = await collect(chunks_from_text(get_parser("hermes"), pieces(text)))
    _, _, calls, reasons = joined(chunks)
    assert reasons == ["stop"]
    with pytest.raises(ValueError):
        json.loads(calls[0]["arguments"])
    (report,) = [chunk["hermes_parsers"] for chunk in chunks if "hermes_parsers" in chunk]
    assert report["errors"][0]["kind"] == "invalid_json" and report["errors"][0]["index"] == 0


async def test_the_source_is_closed_when_the_reader_leaves():
    closed = asyncio.Event()

    async def source():
        try:
            while True:
                yield "word "
        finally:
            closed.set()

    chunks = chunks_from_text(get_parser("hermes"), source())
    async for _ in chunks:
        break
    await chunks.aclose()
    assert closed.is_set()


def server_chunk(delta, index=0, finish=None, **more):
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more,
    }  # fmt: skip


async def served(*chunks):
    for chunk in chunks:
        yield chunk


async def test_a_servers_markup_becomes_calls():
    raw = [server_chunk({"role": "assistant"})]
    raw += [server_chunk({"content": TEXT[at : at + 5]}) for at in range(0, len(TEXT), 5)]
    raw += [server_chunk({}, finish="stop"), {**server_chunk({}), "choices": [], "usage": None}]
    chunks = await collect(parse_server_stream(get_parser("hermes"), served(*raw)))
    content, reasoning, calls, reasons = joined(chunks)
    assert (content, reasoning, reasons) == ("Look: ", "hm", ["tool_calls"])
    assert [call["name"] for call in calls] == ["f", "g"]
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"} and chunks[-1]["choices"] == []


async def test_objects_of_the_library_pass_too():
    chunk = ChatCompletionChunk.model_validate(server_chunk({"content": TEXT}))
    end = ChatCompletionChunk.model_validate(server_chunk({}, finish="stop"))
    chunks = await collect(parse_server_stream(get_parser("hermes"), served(chunk, end)))
    assert [call["name"] for call in joined(chunks)[2]] == ["f", "g"]


async def test_each_choice_has_its_own_stream():
    first, second = '<tool_call>{"name": "a"}</tool_call>', '<tool_call>{"name": "b"}</tool_call>'
    raw = []
    for at in range(0, len(first), 4):
        raw += [
            server_chunk({"content": first[at : at + 4]}),
            server_chunk({"content": second[at : at + 4]}, index=1),
        ]
    raw += [server_chunk({}, finish="stop"), server_chunk({}, index=1, finish="length")]
    chunks = await collect(parse_server_stream(get_parser("hermes"), served(*raw)))
    by_choice = {
        index: joined([chunk for chunk in chunks if chunk["choices"][0]["index"] == index])
        for index in (0, 1)
    }
    assert by_choice[0][2][0]["name"] == "a" and by_choice[0][3] == ["tool_calls"]
    assert by_choice[1][2][0]["name"] == "b" and by_choice[1][3] == ["length"]


async def test_what_the_server_split_off_passes_as_it_is():
    raw = [
        server_chunk({"reasoning_content": "hm", "content": "a <"}),
        server_chunk({"content": "b"}, finish="stop"),
    ]
    chunks = await collect(parse_server_stream(get_parser("hermes"), served(*raw)))
    assert joined(chunks)[:2] == ("a <b", "hm")


async def test_a_stream_cut_off_gives_what_was_held():
    chunks = await collect(
        parse_server_stream(get_parser("hermes"), served(server_chunk({"content": "2 <"})))
    )
    assert joined(chunks)[0] == "2 <"


async def test_usage_and_logprobs_pass_once_each_and_the_servers_chunks_stay_as_they_were():
    def with_logprobs(chunk, token):
        chunk["choices"][0]["logprobs"] = {"content": [{"token": token, "logprob": 0.0, "top_logprobs": []}]}
        return chunk

    def usage(total):
        return {"prompt_tokens": 0, "completion_tokens": total, "total_tokens": total}

    several = '_call>{"name": "f", "arguments": {}}</tool_call> and more'
    raw = [
        with_logprobs(server_chunk({"content": "<tool"}, usage=usage(1)), "held"),
        with_logprobs(server_chunk({"content": several}, usage=usage(2)), "several"),
        server_chunk({"content": "<to"}, usage=usage(3)),
    ]
    before = json.loads(json.dumps(raw))
    chunks = await collect(parse_server_stream(get_parser("hermes"), served(*raw)))
    assert raw == before
    assert [chunk["usage"] for chunk in chunks if chunk.get("usage")] == [usage(1), usage(2), usage(3)]
    tokens = [
        entry["token"]
        for chunk in chunks
        for choice in chunk["choices"]
        for entry in (choice.get("logprobs") or {}).get("content", ())
    ]
    assert tokens == ["held", "several"]
    assert joined(chunks)[0] == " and more<to"


async def test_the_usage_at_the_end_of_a_stream_that_was_cut_off_survives():
    end = {
        **server_chunk({}),
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    chunks = await collect(
        parse_server_stream(get_parser("hermes"), served(server_chunk({"content": "2 <"}), end))
    )
    assert [chunk["usage"]["total_tokens"] for chunk in chunks if chunk.get("usage")] == [3]
    assert joined(chunks)[0] == "2 <"


def test_deltas_have_their_dict():
    stream = get_parser("hermes").stream()
    writer = ChunkWriter("m", id="x", created=1)
    chunks = list(writer.chunks([*stream.feed("a"), *stream.finish()]))
    assert chunks == [
        {
            "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": None}],
        }
    ]  # fmt: skip
    assert writer.last("length")["choices"][0]["finish_reason"] == "length"
