"""Spans, seen by the real OpenTelemetry SDK."""

import pytest
from envs_tools import call, tool_session
from hermes_envs import HermesAgentLoop, RolloutSpec, Telemetry, loop_agent, run_rollout
from hermes_envs.clients import ProviderUnavailable, ScriptedClient, Turn, Usage
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

ASK = [{"role": "user", "content": "a secret question"}]
SCRIPT = [
    Turn(
        "a secret answer",
        tool_calls=(call("add", '{"a": 1, "b": 2}'), call("explode", "{}", "c2")),
        finish_reason="tool_calls",
        usage=Usage(10, 5, 3),
        model="m1",
    ),
    "ok",
]


async def spans_of(tmp_path, script, **options):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer=provider.get_tracer("test"), **options)
    async with tool_session(tmp_path) as session:
        with telemetry.rollout("r1", {"hermes.task": "t"}):
            await HermesAgentLoop(ScriptedClient(script), session, telemetry=telemetry).run(ASK)
    return exporter.get_finished_spans()


async def test_rollout_turn_model_call_and_tool_calls_nest(tmp_path):
    spans = await spans_of(tmp_path, SCRIPT)
    names = {span.context.span_id: span.name for span in spans}
    tree = {(names.get(span.parent.span_id) if span.parent else None, span.name) for span in spans}
    assert tree == {
        (None, "rollout"),
        ("rollout", "turn"),
        ("turn", "chat scripted"),
        ("turn", "execute_tool add"),
        ("turn", "execute_tool explode"),
    }
    by_name = {span.name: span for span in spans if span.name != "chat scripted"}
    assert by_name["rollout"].attributes["hermes.rollout.id"] == "r1"
    assert by_name["execute_tool explode"].status.status_code is StatusCode.ERROR
    first = next(span for span in spans if span.name == "chat scripted")
    assert first.attributes["gen_ai.usage.input_tokens"] == 10
    assert first.attributes["gen_ai.usage.output_tokens"] == 5
    assert first.attributes["gen_ai.response.model"] == "m1"
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)


@pytest.mark.parametrize("contents", [False, True])
async def test_contents_are_recorded_only_when_asked_for(tmp_path, contents):
    spans = await spans_of(tmp_path, SCRIPT, contents=contents)
    text = " ".join(f"{dict(span.attributes)} {span.status.description}" for span in spans)
    assert ("secret" in text) == contents
    assert ("boom" in text) == contents


@pytest.mark.parametrize("contents", [False, True])
async def test_a_failing_model_call_is_an_error_span(tmp_path, contents):
    spans = await spans_of(tmp_path, [ProviderUnavailable("the server echoes a secret")], contents=contents)
    chat = next(span for span in spans if span.name.startswith("chat"))
    assert chat.status.status_code is StatusCode.ERROR
    assert "ProviderUnavailable" in chat.status.description
    said = f"{chat.status.description} {[dict(event.attributes) for event in chat.events]}"
    assert ("secret" in said) == contents


async def test_a_rollout_says_how_it_ended():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer=provider.get_tracer("test"))
    spec = RolloutSpec(
        messages=ASK, tools=["terminal"], labels={"task": "t1"}, reward=lambda result, ctx: 0.5
    )
    await run_rollout(spec, loop_agent(ScriptedClient(["ok"])), telemetry=telemetry)
    await run_rollout(spec, loop_agent(ScriptedClient([ProviderUnavailable("down")])), telemetry=telemetry)
    good, bad = (span for span in exporter.get_finished_spans() if span.name == "rollout")
    assert good.attributes["hermes.reward"] == 0.5
    assert good.attributes["hermes.task"] == "t1"
    assert (good.attributes["hermes.outcome"], bad.attributes["hermes.outcome"]) == (
        "completed",
        "infra_failed",
    )
    assert bad.status.description == "provider: ProviderUnavailable"
    phases = {span.name for span in exporter.get_finished_spans() if span.parent}
    assert phases >= {"sandbox", "reward"}
