"""What models can get wrong, all at once: no call may raise, hang, or answer with anything but a JSON object."""

import asyncio
import json
import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hermes_tools import HostWorkspace, ToolSession, call_tool, default_registry
from hermes_tools_calls import call, fail, succeed
from hermes_tools_waiting import until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HARMLESS = ["read_file", "write_file", "patch", "search_files", "todo", "process", "vision_analyze"]
words = st.sampled_from(
    ["", "a", ".", "..", "/", "~", "a.py", "sub/x", "*", "[", "{", "\0", "\ud800", "é", "-1", "1e999", "null"]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | words
    | st.text(alphabet="ab/.*[](){}\\\n\r\t@+-= ", max_size=12)
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def arguments(name: str) -> st.SearchStrategy[dict[str, Any]]:
    tool = default_registry().tools[name]
    known: list[str] = list(tool.parameters["properties"])
    enums = [item for part in tool.parameters["properties"].values() for item in part.get("enum", [])]
    value = anything | (st.sampled_from(enums) if enums else st.nothing())
    return st.dictionaries(st.sampled_from(known) | words, value, max_size=len(known))


@pytest.mark.parametrize("name", HARMLESS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_arbitrary_arguments(tmp_path: Path, name: str, data):
    (tmp_path / "a.py").write_text("x = 1\n")
    given_arguments = data.draw(arguments(name))

    async def run() -> str:
        async with HostWorkspace(tmp_path) as workspace, ToolSession(None, HARMLESS, workspace) as session:
            return (await asyncio.wait_for(call_tool(name, given_arguments, session), 60)).text

    # Paths that lead out of the test's folder are only read; what lies there may take any time to search.
    changes = name in ("write_file", "patch")
    named = given_arguments if changes else given_arguments.get("path") if name == "search_files" else None
    if any(part in repr(named) for part in ("..", "'/", "~", "\\n")):
        return
    text = asyncio.run(run())
    assert isinstance(json.loads(text), dict)
    text.encode("utf-8")


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="*+- @\\/abBeginPatchUpdateFile:\n", max_size=120))
def test_arbitrary_patches(text):
    from hermes_tools import ToolError
    from hermes_tools.toolsets.file.matching import apply_edits
    from hermes_tools.toolsets.file.v4a import hunk_edits, parse_patch

    patch = f"*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch"
    source = "a\n b\n\nab\n"
    try:
        for file in parse_patch(patch):
            edits = hunk_edits("f", source, file.hunks)
            assert all(one.end <= two.start for one, two in pairwise(edits))
            apply_edits(source, edits)
    except ToolError:
        return


async def test_files_that_are_none(open_session, tmp_path: Path):
    session = open_session("file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nowhere")
    for path in (
        "/dev/zero",
        "fifo",
        "loop",
        "gone",
        "/proc/self/mem",
        "a" * 5_000,
        "/dev/null/x",
        "x/" * 2_000,
    ):
        assert (await call(session, "read_file", path=path)).get("error"), path
        assert (await call(session, "patch", path=path, old_string="a", new_string="b")).get("error"), path
    assert "total_count" in await call(session, "search_files", pattern="x")


async def test_a_file_of_gigabytes(open_session, tmp_path: Path):
    session = open_session("file")
    with (tmp_path / "huge.txt").open("wb") as file:
        file.write(b"first\n" * 2_000)
        file.truncate(1 << 30)
    result = await succeed(session, "read_file", path="huge.txt", limit=1)
    assert result["content"] == "1|first" and result["file_size"] == 1 << 30
    assert "larger than 16 MiB" in await fail(
        session, "patch", path="huge.txt", old_string="first", new_string="1"
    )


async def test_a_huge_argument(open_session, tmp_path: Path):
    session = open_session("file")
    content = "0123456789abcde\n" * 2_000_000
    assert (await succeed(session, "write_file", path="big", content=content))["bytes_written"] == 32_000_000
    assert (tmp_path / "big").stat().st_size == 32_000_000


async def test_a_pattern_that_explodes_ends(open_session, tmp_path: Path, monkeypatch):
    from hermes_tools.toolsets.file import search_engine

    monkeypatch.setattr(search_engine, "DEADLINE", 1.0)
    (tmp_path / "a").write_text("a" * 200_000 + "!\n")
    session = open_session("file", options=[search_engine.SearchOptions(engine="grep")])
    await call(session, "search_files", pattern=r"(?:a+)+(?<=b)$")


async def test_calls_of_one_turn_on_the_same_things(open_session, tmp_path: Path):
    """They are started together; each sees what those before it did."""
    session = open_session("file", "terminal")
    calls = [("write_file", {"path": "n", "content": "0"})]
    for number in range(10):
        calls.append(("patch", {"path": "n", "old_string": str(number), "new_string": str(number + 1)}))
        calls.append(("read_file", {"path": "n"}))
        calls.append(("terminal", {"command": f"cp n copy{number}"}))
    outputs = await asyncio.gather(*(call_tool(name, values, session) for name, values in calls))
    assert [output.error for output in outputs] == [None] * len(calls)
    assert [(tmp_path / f"copy{number}").read_text() for number in range(10)] == [
        str(n + 1) for n in range(10)
    ]


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.01, 0.05])
async def test_cancelling_at_any_moment_leaves_the_session_usable(
    open_session, tmp_path: Path, delay, monkeypatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    tempfile.gettempdir()  # once asked for it does not change: what follows is for the tools' commands
    monkeypatch.setenv("TMPDIR", str(temporary))
    session = open_session("file", "terminal", "code")
    (tmp_path / "a").write_text("x = 1\n")
    calls = [
        ("terminal", {"command": "sleep 0.02; echo 1"}),
        ("write_file", {"path": "w", "content": "1"}),
        ("patch", {"path": "a", "old_string": "x", "new_string": "x"}),
        ("search_files", {"pattern": "x"}),
        ("execute_code", {"code": "from hermes_tools import read_file; read_file('a')"}),
        ("read_file", {"path": "a"}),
    ]
    for start in range(len(calls)):
        tasks = [
            asyncio.create_task(call_tool(name, values, session))
            for name, values in calls[start:] + calls[:start]
        ]
        await asyncio.sleep(delay)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (await succeed(session, "terminal", command="echo on"))["output"] == "on\n"
    # A write that was cancelled goes on in its thread.
    await until(lambda: not [path for path in tmp_path.iterdir() if path.name.endswith(".part")])
    assert list(temporary.iterdir()) == []
