"""What was sampled is kept exactly, under every habit of chat templates."""

import functools
import json
import tempfile
import tracemalloc
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from hermes_envs.tokens import MASKED_LOGPROB, FolderTokenizer, Segment, TokenSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_templates import END_OF, TEMPLATES, write_tokenizer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "terminal",
            "description": "Run a command",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]


@functools.cache
def tokenizer(name: str) -> FolderTokenizer:
    return FolderTokenizer(write_tokenizer(Path(tempfile.mkdtemp()) / name, name))


@dataclass
class Reply:
    """One sampled turn and what the harness makes of it."""

    text: str
    calls: list[dict[str, str]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    ended: bool = True
    then: list[str] = field(default_factory=lambda: ["go on"])


texts = st.text(st.sampled_from("ab \n\t:{}<>'\"é雪0"), max_size=24)
calls = st.lists(st.fixed_dictionaries({"command": texts, "b": texts, "a": texts}), max_size=3)
replies = st.builds(
    Reply,
    text=st.one_of(texts, st.just("<think>\nhm\n</think>\n\nok \n"), st.just("")),
    calls=calls,
    cuts=st.lists(st.integers(0, 200), max_size=4),
    ended=st.booleans(),
    then=st.lists(texts, min_size=1, max_size=3),
)


def sampled_ids(tok: FolderTokenizer, text: str, cuts: list[int]) -> list[int]:
    """Ids of a text as a policy may sample it: pieces that a tokenizer would have merged stay apart."""
    points = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [token for start, end in pairwise(points) for token in tok.encode(text[start:end])]


def assistant(reply: Reply, turn: int) -> dict:
    called = [
        {
            "id": f"call{turn:03d}{index}",
            "type": "function",
            "function": {"name": "terminal", "arguments": json.dumps(arguments)},
        }
        for index, arguments in enumerate(reply.calls)
    ]
    return {"role": "assistant", "content": reply.text, **({"tool_calls": called} if called else {})}


def answers(message: dict, reply: Reply) -> list[dict]:
    if not message.get("tool_calls"):
        return [{"role": "user", "content": reply.then[0]}]
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "name": "terminal",
            "content": reply.then[n % len(reply.then)],
        }
        for n, call in enumerate(message["tool_calls"])
    ]


@dataclass
class Played:
    session: TokenSession
    prompts: list[list[int]]
    completions: list[list[int]]
    logprobs: list[list[float]]
    messages: list[dict]
    new: list[list[dict]]

    @property
    def segments(self) -> list[Segment]:
        return self.session.segments


def play(name: str, script: list[Reply], *, system: bool = True, history: str = "append") -> Played:
    tok = tokenizer(name)
    session = TokenSession(tok, history=history)
    messages: list[dict] = [{"role": "user", "content": "Do it."}]
    if system:
        messages.insert(0, {"role": "system", "content": "Be brief."})
    played = Played(session, [], [], [], messages, [])
    end = END_OF.get(name, "<|im_end|>")
    for turn, reply in enumerate(script):
        played.prompts.append(session.prompt(messages, TOOLS))
        raw = reply.text + "".join(
            f"\n<tool_call>\n{json.dumps(call)} \n</tool_call>" for call in reply.calls
        )
        ids = sampled_ids(tok, raw, reply.cuts) + (tok.encode(end) if reply.ended else [])
        logprobs = [-0.001 * (n + 1) for n in range(len(ids))]
        message = assistant(reply, turn)
        session.record(ids, logprobs, message=message, temperature=0.7)
        added = answers(message, reply)
        messages += [message, *added]
        played.completions.append(ids)
        played.logprobs.append(logprobs)
        played.new.append(added)
    return played


def check_exact(played: Played, name: str) -> Segment:
    """One segment, in which every invariant that a trainer relies on holds."""
    tok = tokenizer(name)
    (segment,) = played.segments
    assert segment.sampled_runs() == played.completions
    assert segment.tokens[: len(played.prompts[0])] == played.prompts[0]
    at = 0
    for prompt, completion, logprobs in zip(played.prompts, played.completions, played.logprobs, strict=True):
        assert segment.tokens[: len(prompt)] == prompt
        assert segment.mask[at : len(prompt)] == [False] * (len(prompt) - at)
        assert segment.logprobs[at : len(prompt)] == [MASKED_LOGPROB] * (len(prompt) - at)
        at = len(prompt) + len(completion)
        assert segment.mask[len(prompt) : at] == [True] * len(completion)
        assert segment.logprobs[len(prompt) : at] == logprobs
    assert at == len(segment.tokens)
    ends = set(tok.end_tokens.values())
    if name != "glm":  # a GLM turn ends with the token that opens the next
        assert not any(a in ends and b in ends for a, b in pairwise(segment.tokens))
    for after, (prompt, completion) in enumerate(zip(played.prompts[1:], played.completions, strict=False)):
        inserted = tok.decode(prompt[len(played.prompts[after]) + len(completion) :])
        for message in played.new[after]:
            content = message["content"].strip()
            assert content in inserted or json.dumps(content, ensure_ascii=False)[1:-1] in inserted
    return segment


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(replies, min_size=1, max_size=5), system=st.booleans())
def test_append_keeps_one_exact_segment(name, script, system):
    check_exact(play(name, script, system=system), name)


@pytest.mark.parametrize("name", TEMPLATES)
def test_ended_and_cut_turns_have_one_end_token(name):
    script = [Reply("one", ended=True, then=["x"]), Reply("two", ended=False, then=["y"]), Reply("three")]
    segment = check_exact(play(name, script), name)
    end = END_OF.get(name, "<|im_end|>")
    text = tokenizer(name).decode(segment.tokens)
    if end and name != "glm":
        assert f"one{end}" in text and f"two{end}" in text and f"{end}{end}" not in text
    if name == "glm":
        assert "<|observation|><|observation|>" not in text


def test_inserted_text_is_the_templates_own():
    """Where the template changes nothing, appending gives what rendering the whole conversation gives."""
    script = [
        Reply("I look.", [{"command": "ls"}], then=["a.txt\nb.txt"]),
        Reply("Two files.", then=["Thanks"]),
    ]
    tok = tokenizer("chatml")
    played = play("chatml", script)
    prompt = played.session.prompt(played.messages, TOOLS)
    rendered = tok.render(played.messages, TOOLS, add_generation_prompt=True)
    sampled = '\n<tool_call>\n{"command": "ls"} \n</tool_call>'
    rendering = '<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>'
    assert tok.decode(prompt) == rendered.replace(rendering, sampled)


def test_pieces_that_merge_across_a_boundary_stay_apart():
    tok = tokenizer("plain")
    played = play("plain", [Reply("the quick brown\n", ended=False, then=["fox"]), Reply("ok")])
    segment = check_exact(played, "plain")
    assert tok.encode(tok.decode(segment.tokens)) != segment.tokens


def test_thinking_stays_in_an_appended_history():
    script = [Reply("<think>\nsecret\n</think>\n\nanswer", then=["next"]), Reply("done")]
    segment = check_exact(play("strips_thinking", script), "strips_thinking")
    assert "secret" in tokenizer("strips_thinking").decode(segment.tokens)


def test_template_history_splits_where_the_template_rewrites_a_turn():
    script = [
        Reply("<think>\nsecret\n</think>\n\nanswer", then=["next"]),
        Reply("done", then=["more"]),
        Reply("end"),
    ]
    played = play("strips_thinking", script, history="template")
    assert len(played.segments) == 2
    assert [run for segment in played.segments for run in segment.sampled_runs()] == played.completions
    assert "secret" not in tokenizer("strips_thinking").decode(played.segments[1].tokens)


def test_template_history_is_one_segment_where_nothing_is_rewritten():
    script = [Reply("the answer", then=["next"]), Reply("done")]
    check_exact(play("chatml", script, history="template"), "chatml")


@pytest.mark.parametrize(
    "edit",
    [
        lambda messages: messages.__setitem__(1, {"role": "user", "content": "Something else."}),
        lambda messages: messages[1].__setitem__("content", "Edited in place."),
        lambda messages: messages[2].__setitem__("content", "What I never said."),
        lambda messages: messages.__delitem__(slice(1, 3)),
    ],
    ids=["replaced", "in-place", "assistant", "compacted"],
)
def test_a_changed_history_opens_a_segment(edit):
    played = play("chatml", [Reply("first", then=["go on"]), Reply("second", then=["more"])])
    edit(played.messages)
    prompt = played.session.prompt(played.messages, TOOLS)
    played.session.record([5], [-1.0])
    first, second = played.segments
    assert first.sampled_runs() == played.completions
    assert second.tokens == [*prompt, 5]
    assert second.spans[0].turn == 2


def test_other_tools_open_a_segment():
    played = play("chatml", [Reply("first", then=["go on"])])
    played.session.prompt(played.messages, [])
    played.session.record([5], [-1.0])
    assert len(played.segments) == 2


def test_asking_again_changes_nothing():
    played = play("chatml", [Reply("first", then=["go on"])])
    before = played.segments
    assert played.session.prompt(played.messages, TOOLS) == played.session.prompt(played.messages, TOOLS)
    assert played.segments == before


def test_prompts_stay_what_they_were():
    """A prompt shares the session's list, which grows, and is left alone where another prompt is asked for."""
    tok = tokenizer("chatml")
    session = TokenSession(tok)
    ask = {"role": "user", "content": "Do it."}
    first = session.prompt([ask])
    then = list(first)
    session.record([5], [-1.0])
    assert first == then and len(first) == len(then) and first[-2:] == then[-2:] and first[0] == then[0]
    turn = {"role": "assistant", "content": tok.decode([5])}
    before = session.segments
    dropped = session.prompt([ask, turn, {"role": "user", "content": "One way."}])
    kept = list(dropped)
    assert session.segments == before
    taken = session.prompt([ask, turn, {"role": "user", "content": "Another way."}])
    assert list(dropped) == kept != list(taken)
    session.record([6], [-2.0])
    (segment,) = session.segments
    assert list(dropped) == kept
    assert segment.tokens == [*taken, 6]
    assert segment.sampled_runs() == [[5], [6]]


def test_a_turn_copies_nothing_of_a_long_history():
    tok = tokenizer("chatml")
    session = TokenSession(tok)
    messages = [{"role": "user", "content": "word " * 100_000}]
    session.prompt(messages)
    session.record([5], [-1.0])
    messages += [{"role": "assistant", "content": tok.decode([5])}, {"role": "user", "content": "go on"}]
    tracemalloc.start()
    try:
        prompt = session.prompt(messages)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(prompt) > 100_000
    assert peak < 8 * len(prompt) / 2  # a list takes eight bytes for each of its entries


def test_spelling_of_the_harness_is_no_change():
    played = play("chatml", [Reply("first ", [{"command": "ls", "a": "é"}], then=["go on"])])
    turn = played.messages[2]
    turn["content"] = "first"
    turn["tool_calls"][0]["function"]["arguments"] = '{"a":"\\u00e9",\n "command":"ls"}'
    played.session.prompt(played.messages, TOOLS)
    played.session.record([5], [-1.0])
    assert len(played.segments) == 1


def test_misuse_is_named():
    session = TokenSession(tokenizer("chatml"))
    with pytest.raises(RuntimeError, match="ask for the prompt"):
        session.record([1], [-1.0])
    session.prompt([{"role": "user", "content": "x"}])
    with pytest.raises(ValueError, match="must align"):
        session.record([1, 2], [-1.0])


def test_segments_survive_json():
    (segment,) = play("chatml", [Reply("first", then=["go on"]), Reply("second")]).segments
    assert Segment.from_dict(json.loads(json.dumps(segment.to_dict()))) == segment
    assert [label for label in segment.labels if label != -100] == [
        token for run in segment.sampled_runs() for token in run
    ]
    assert segment.temperature == 0.7
