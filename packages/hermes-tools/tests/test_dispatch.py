"""Calls: what passes, what becomes an error, deadlines, lanes, budgets, and sessions side by side."""

import asyncio
import json
import sys
import threading
from dataclasses import dataclass

import pytest
from hermes_tools import (
    Content,
    HostWorkspace,
    ResultBudget,
    ToolError,
    ToolSession,
    call_tool,
    fit_turn,
    handle_function_call,
    tool,
)
from hermes_tools_calls import call, fail, succeed
from hermes_tools_waiting import until


@dataclass
class Answer:
    value: int
    note: str | None = None


@tool
def answer(number: int) -> Answer:
    """Answers."""
    return Answer(number)


@tool
def shout(text: str) -> str:
    """Shouts."""
    return text.upper()


@tool
def broken(kind: str) -> str:
    """Breaks."""
    raise {
        "tool": ToolError("use another", hint=3),
        "key": KeyError("k"),
        "os": FileNotFoundError(2, "No such", "f"),
    }[kind]


async def test_results_become_json_objects(open_session):
    session = open_session(answer, shout)
    assert await handle_function_call("answer", '{"number": 3}', session) == '{"value": 3}'
    assert await succeed(session, "shout", text="hé\ud800x".replace("\ud800", "")) == {"result": "HÉX"}


async def test_numbers_that_json_has_not(open_session):
    @tool
    def odd() -> list[float]:
        """Odd numbers."""
        return [float("nan"), float("inf"), 1.5]

    assert await succeed(open_session(odd), "odd") == {"result": ["nan", "inf", 1.5]}


async def test_failures_become_errors_the_model_can_read(open_session):
    session = open_session(broken, shout)
    assert await call(session, "broken", kind="tool") == {"error": "use another", "hint": 3}
    assert await fail(session, "broken", kind="key") == "broken failed: KeyError: 'k'"
    assert await fail(session, "broken", kind="os") == "No such: f"
    message = await fail(session, "shoot", text="x")
    assert "Did you mean 'shout'?" in message and "broken" in message


async def test_a_tool_that_exits_or_fails_oddly_ends_nothing_else(open_session):
    @tool
    def leave() -> None:
        """Leaves."""
        sys.exit(3)

    @tool
    async def leave_too() -> None:
        """Leaves."""
        raise SystemExit(4)

    @tool
    def mute() -> None:
        """Fails."""

        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        raise Mute

    session = open_session(leave, leave_too, mute)
    assert await fail(session, "leave") == "leave failed: SystemExit: 3"
    assert await fail(session, "leave_too") == "leave_too failed: SystemExit: 4"
    assert "mute failed: Mute" in await fail(session, "mute")


class Gone(Exception):
    """What a workspace raises when it is no more."""


class Vanishing(HostWorkspace):
    async def exec(self, *args, **options):
        raise Gone("the machine is gone")


@tool(toolset="custom")
async def careless(session: ToolSession, wrap: bool = False) -> str:
    """Uses the workspace."""
    try:
        await session.workspace.exec("true")
    except Exception as error:
        if wrap:
            raise ToolError("something happened") from error
        raise
    return "done"


@pytest.mark.parametrize("wrap", [False, True])
async def test_a_workspace_that_is_gone_passes_through(tmp_path, wrap):
    async with ToolSession(None, [careless], Vanishing(tmp_path)) as session:
        with pytest.raises(Gone):
            await call_tool("careless", {"wrap": wrap}, session)


async def test_a_tool_of_its_own_deadline_is_stopped(open_session):
    stopped = asyncio.Event()

    @tool(deadline=0.05)
    async def slow() -> str:
        """Sleeps."""
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    session = open_session(slow)
    assert await fail(session, "slow") == "slow did not finish within 0.05 seconds."
    assert stopped.is_set()


async def test_cancellation_reaches_the_tool_and_passes(open_session):
    stopped = asyncio.Event()
    begun = asyncio.Event()

    @tool
    async def slow() -> str:
        """Sleeps."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    task = asyncio.create_task(call_tool("slow", {}, open_session(slow)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_functions_that_block_do_not_block_the_loop_and_are_bounded(open_session):
    running = most = 0
    lock, go_on = threading.Lock(), threading.Event()

    @tool
    def block() -> bool:
        """Blocks until the loop lets it go on."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        released = go_on.wait(60)
        with lock:
            running -= 1
        return released

    session = open_session(block, max_blocking=3)
    calls = asyncio.gather(*(succeed(session, "block") for _ in range(9)))
    await until(lambda: running >= 3)
    go_on.set()
    assert await calls == [{"result": True}] * 9
    assert most == 3


async def test_a_lane_keeps_order_and_lets_readers_share(open_session):
    log: list[str] = []

    @tool(lane="x")
    async def change(name: str) -> str:
        """Changes."""
        log.append(f"+{name}")
        await asyncio.sleep(0.02)
        log.append(f"-{name}")
        return ""

    @tool(lane="x", read_only=True)
    async def look(name: str) -> str:
        """Looks."""
        log.append(f"+{name}")
        await asyncio.sleep(0.02)
        log.append(f"-{name}")
        return ""

    session = open_session(change, look)
    calls = [("change", "a"), ("look", "b"), ("look", "c"), ("change", "d"), ("look", "e")]
    await asyncio.gather(*(call_tool(tool_name, {"name": name}, session) for tool_name, name in calls))
    assert log == ["+a", "-a", "+b", "+c", "-b", "-c", "+d", "-d", "+e", "-e"]


async def test_a_lane_survives_cancelled_waiters(open_session):
    @tool(lane="x", deadline=None)
    async def hold(seconds: float) -> str:
        """Holds."""
        await asyncio.sleep(seconds)
        return ""

    session = open_session(hold)
    first = asyncio.create_task(call_tool("hold", {"seconds": 0.1}, session))
    waiting = [asyncio.create_task(call_tool("hold", {"seconds": 60}, session)) for _ in range(3)]
    await asyncio.sleep(0.02)
    for task in waiting:
        task.cancel()
    last = asyncio.create_task(call_tool("hold", {"seconds": 0}, session))
    ended = await asyncio.wait_for(asyncio.gather(first, last), 30)
    assert [output.error for output in ended] == [None, None]
    assert all(task.cancelled() for task in waiting)


async def test_a_large_result_is_kept_whole_in_the_workspace(open_session, workspace):
    @tool
    def much(count: int) -> str:
        """Much."""
        return "".join(f"line {n}\n" for n in range(count))

    session = open_session(much, budget=ResultBudget(per_result=2_000, preview=100))
    small = await succeed(session, "much", count=3)
    assert small == {"result": "line 0\nline 1\nline 2\n"}
    large = await succeed(session, "much", count=1_000)
    assert large["truncated"] and len(large["head"]) + len(large["tail"]) == 100
    whole = json.loads(await workspace.read_bytes(large["full_result"]))
    assert whole["result"].endswith("line 999\n")
    assert large["total_chars"] == len((await workspace.read_bytes(large["full_result"])).decode())
    folder = large["full_result"].rpartition("/")[0]
    await session.close()
    assert (await workspace.exec(["test", "-e", folder])).exit_code == 1


async def test_the_results_of_a_turn_keep_to_its_budget(open_session):
    session = open_session(shout, budget=ResultBudget(per_turn=3_000, preview=100))
    sizes = (50, 2_000, 1_500, 700)
    outputs = [await call_tool("shout", {"text": "x" * size}, session) for size in sizes]
    fitted = await fit_turn(session, outputs)
    assert [json.loads(output.text).get("truncated", False) for output in fitted] == [
        False,
        True,
        False,
        False,
    ]
    assert sum(len(output.text) for output in fitted) <= 3_000


async def test_pictures_come_as_content_parts(open_session):
    @tool
    def draw() -> Content:
        """Draws."""
        return Content({"width": 1}, ("data:image/png;base64,AAAA",))

    output = await call_tool("draw", None, open_session(draw))
    assert output.parts == [
        {"type": "text", "text": '{"width": 1}'},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


async def test_a_thousand_sessions_do_not_see_each_other(tmp_path):
    class Count:
        def __init__(self, session: ToolSession) -> None:
            self.value = 0

    @tool
    async def bump(session: ToolSession) -> int:
        """Counts."""
        state = session.state(Count)
        await asyncio.sleep(0)
        state.value += 1
        return state.value

    sessions = [ToolSession(None, [bump, "todo"], HostWorkspace(tmp_path)) for _ in range(1_000)]
    for _ in range(3):
        results = await asyncio.gather(*(handle_function_call("bump", {}, session) for session in sessions))
    assert set(results) == {'{"result": 3}'}
    await asyncio.gather(*(session.close() for session in sessions))


async def test_closing_goes_on_when_something_cannot_be_closed(open_session, caplog):
    closed: list[str] = []

    class Good:
        def __init__(self, session: ToolSession) -> None: ...

        async def aclose(self) -> None:
            closed.append("good")

    class Bad(Good):
        async def aclose(self) -> None:
            raise Gone("no more")

    session = open_session(shout)
    session.state(Good)
    session.state(Bad)
    await session.close()
    await session.close()
    assert closed == ["good"]
    assert "closing Bad: Gone: no more" in caplog.text
    with pytest.raises(RuntimeError, match="closed"):
        session.state(Good)
