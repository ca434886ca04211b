"""The patch tool: exact and tolerant replacement, V4A patches, diffs, all or nothing."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hermes_tools import HostWorkspace, ToolError, ToolSession
from hermes_tools.toolsets.file.diff import unified_diff
from hermes_tools.toolsets.file.matching import Edit, apply_edits, find_edits, without_overlaps
from hermes_tools_calls import call, fail, succeed
from hermes_tools_waiting import takes_less
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

CODE = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"


@pytest.fixture
def session(open_session):
    return open_session("file")


async def replace(session: ToolSession, old: str, new: str, **more):
    return await succeed(
        session, "patch", mode="replace", path="a.py", old_string=old, new_string=new, **more
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "strategy"),
    [
        (CODE, "return 1", "return 10", CODE.replace("return 1", "return 10"), "exact"),
        ("a  \nb\t\nc\n", "a\nb\n", "A\nB\n", "A\nB\nc\n", "trailing_space"),
        (
            CODE,
            "def g(self):\n    return 2",
            "def g(self):\n    x = 2\n\n    return x",
            CODE.replace("        return 2", "        x = 2\n\n        return x"),
            "indentation",
        ),
        (
            "if x:\n  y = 1\n",
            "        if x:\n          y = 1\n",
            "        if x:\n          y = 2\n          z\n",
            "if x:\n  y = 2\n  z\n",
            "indentation",
        ),
        (
            "def f(a):\n\tif a:\n\t\tx = 1\n\t\treturn x\n",
            "    if a:\n        x = 1",
            "    if a:\n        for x in a:\n            y(x,\n              x)\nz",
            "def f(a):\n\tif a:\n\t\tfor x in a:\n\t\t\ty(x,\n\t\t\t  x)\nz\n\t\treturn x\n",
            "indentation",
        ),
        (
            "  if x:\n    y\n",
            "    if x:\n        y",
            "    while x:\n        z",
            "  while x:\n    z\n",
            "indentation",
        ),
        (
            "  if x:\n    y\n",
            "\tif x:\n\t\ty",
            "\tif x:\n\t\tif y:\n\t\t\tz",
            "  if x:\n    if y:\n      z\n",
            "indentation",
        ),
        ("\tx = 1\n", "x  = 1", "if x:\n    if y:\n        z", "\tif x:\n\t\tif y:\n\t\t\tz\n", "spacing"),
        ("  a(\n    b)\nc\n", "a(\nb)", "a(\nb)\n", "  a(\n    b)\n\nc\n", "indentation"),
        ("f( a,   b )\n", "f( a, b )", "g(a, b)", "g(a, b)\n", "spacing"),
        ("print(“hi” – x)\n", 'print("hi" - x)', "pass", "pass\n", "typography"),
        ("a\nb", "a \nb ", "c", "c", "trailing_space"),
        ("a\n b\n", "a\nb\n", "", "", "indentation"),
    ],
)
async def test_the_ways_an_old_text_is_found(session, tmp_path: Path, text, old, new, after, strategy):
    (tmp_path / "a.py").write_text(text)
    result = await replace(session, old, new)
    assert (tmp_path / "a.py").read_text() == after
    assert result["strategy"] == strategy and result["replacements"] == 1 and result["success"] is True


async def test_a_guess_at_the_indentation_is_refused(session, tmp_path: Path):
    text = "\tif a:\n\t\tx = 1\n"
    (tmp_path / "a.py").write_text(text)
    message = await fail(session, "patch", path="a.py", old_string="if a:\nx = 1", new_string="if a:\nx = 2")
    assert "'x = 2' is to be indented" in message and "copy the lines as they are" in message
    assert (tmp_path / "a.py").read_text() == text


async def test_an_old_text_must_be_unique(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\ny = 1\nx = 1\n")
    message = await fail(session, "patch", path="a.py", old_string="x = 1", new_string="x = 2")
    assert "2 times" in message and "lines 1, 3" in message
    assert "not found" in await fail(session, "patch", path="a.py", old_string="z", new_string="")
    assert (tmp_path / "a.py").read_text() == "x = 1\ny = 1\nx = 1\n"
    result = await replace(session, "x = 1", "x = 2", replace_all=True)
    assert result["replacements"] == 2 and (tmp_path / "a.py").read_text() == "x = 2\ny = 1\nx = 2\n"


async def test_overlapping_occurrences_are_not_unique(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("aaa")
    assert "2 times" in await fail(session, "patch", path="a.py", old_string="aa", new_string="b")
    await replace(session, "aa", "b", replace_all=True)
    assert (tmp_path / "a.py").read_text() == "ba"


async def test_white_space_alone_is_only_found_exactly(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("a\n\n\nb\n")
    assert "not found" in await fail(session, "patch", path="a.py", old_string="  \n ", new_string="x")


@pytest.mark.parametrize(
    ("data", "after"),
    [
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nB2\r\nc\r\n"),
        (b"a\r\nb\nc\n", b"a\r\nB\nB2\nc\n"),
        ("a\nb\nc é\n".encode("latin-1"), "a\nB\nB2\nc é\n".encode("latin-1")),
        ("a\nb\nc\n".encode("utf-16"), "a\nB\nB2\nc\n".encode("utf-16")),
        (b"\xef\xbb\xbfa\nb\nc", b"\xef\xbb\xbfa\nB\nB2\nc"),
    ],
)
async def test_line_ends_and_encodings_stay(session, tmp_path: Path, data, after):
    (tmp_path / "a.py").write_bytes(data)
    await replace(session, "b\nc", "B\nB2\nc") if b"\r\nb\n" not in data else await replace(
        session, "b\n", "B\nB2\n"
    )
    assert (tmp_path / "a.py").read_bytes() == after


async def test_what_the_encoding_cannot_hold_is_refused(session, tmp_path: Path):
    (tmp_path / "a.py").write_bytes("é = 1\n".encode("latin-1"))
    assert "latin-1" in await fail(session, "patch", path="a.py", old_string="1", new_string="→")


async def test_wrong_calls(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("a")
    assert "empty" in await fail(session, "patch", path="a.py", old_string="", new_string="x")
    assert "same" in await fail(session, "patch", path="a.py", old_string="a", new_string="a")
    assert "needs path" in await fail(session, "patch", old_string="a", new_string="b")
    assert "needs the parameter patch" in await fail(session, "patch", mode="patch")
    assert "similar_files" in await call(session, "patch", path="a.pyy", old_string="a", new_string="b")
    (tmp_path / "b").write_bytes(bytes(10))
    assert "no text" in await fail(session, "patch", path="b", old_string="a", new_string="b")


async def v4a(session: ToolSession, *lines: str, marks: bool = True):
    body = "\n".join(lines)
    text = f"*** Begin Patch\n{body}\n*** End Patch" if marks else body
    return await call(session, "patch", mode="patch", patch=text)


async def test_a_patch_of_several_files(session, tmp_path: Path):
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "old.txt").write_text("bye\n")
    (tmp_path / "m.sh").write_text("one\ntwo\n")
    (tmp_path / "m.sh").chmod(0o755)
    result = await v4a(
        session,
        "*** Update File: a.py",
        "@@ class A:",
        "@@     def g(self):",
        "-        return 2",
        "+        two = 2",
        "+        return two",
        "*** Add File: new/b.txt",
        "+hello",
        "+",
        "+world",
        "*** Delete File: old.txt",
        "*** Update File: m.sh",
        "*** Move to: bin/m.sh",
        " one",
        "-two",
        "+2",
    )
    assert (tmp_path / "a.py").read_text() == CODE.replace(
        "        return 2", "        two = 2\n        return two"
    )
    assert (tmp_path / "new/b.txt").read_text() == "hello\n\nworld\n"
    assert not (tmp_path / "old.txt").exists() and not (tmp_path / "m.sh").exists()
    assert (tmp_path / "bin/m.sh").read_text() == "one\n2\n" and (
        tmp_path / "bin/m.sh"
    ).stat().st_mode & 0o777 == 0o755
    assert result["files_modified"] == [str(tmp_path / "a.py")]
    assert result["files_created"] == [str(tmp_path / "new/b.txt"), str(tmp_path / "bin/m.sh")]
    assert result["files_deleted"] == [str(tmp_path / "old.txt"), str(tmp_path / "m.sh")]
    assert "+++ /dev/null\n@@ -1,1 +0,0 @@\n-bye\n" in result["diff"]


async def test_a_file_moved_twice_is_named_once(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("1\n")
    moves = [("b.py", "1", "2"), ("c.py", "2", "3")]
    lines = [
        line
        for to, old, new in moves
        for line in ("*** Update File: a.py", f"*** Move to: {to}", f"-{old}", f"+{new}")
    ]
    result = await v4a(session, *lines)
    assert (result["files_created"], result["files_deleted"]) == (
        [str(tmp_path / "c.py")],
        [str(tmp_path / "a.py")],
    )
    assert "files_modified" not in result or result["files_modified"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["c.py"] and (tmp_path / "c.py").read_text() == "3\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["*** Update File: a.py", "@@", "-        return 3", "+        return 4"],
        ["*** Update File: none.py", "-a", "+b"],
        ["*** Add File: a.py", "+x"],
        ["*** Delete File: none.py"],
        ["*** Update File: a.py", "@@ class B:", "-        return 2", "+x"],
        ["*** Update File: a.py", "*** Move to: first.txt", "-class A:", "+class B:"],
        ["*** Add File: first.txt/below", "+x"],
    ],
)
async def test_a_patch_that_fails_changes_nothing(session, tmp_path: Path, lines):
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "first.txt").write_text("1\n")
    result = await v4a(
        session, "*** Update File: first.txt", "-1", "+2", "*** Add File: made.txt", "+x", *lines
    )
    assert "error" in result
    assert (tmp_path / "first.txt").read_text() == "1\n" and (tmp_path / "a.py").read_text() == CODE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "first.txt"]


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ([" hello"], "Line 2"),
        (["*** Update File: a.py", "no mark"], "Line 3"),
        (["*** Update File:"], "names no file"),
        ([""], "names no file"),
        (["*** Update File: a.py"], "changes nothing"),
        (["*** Add File: b.py", "x = 1"], "begins with +"),
        (["*** Delete File: a.py", "-x"], "does not belong"),
    ],
)
async def test_patches_that_cannot_be_read_say_where(session, tmp_path: Path, lines, part):
    (tmp_path / "a.py").write_text(CODE)
    assert part in (await v4a(session, *lines))["error"]


async def test_lenient_forms_of_a_patch(session, tmp_path: Path):
    (tmp_path / "a.py").write_text(CODE)
    lines = [
        "*** Update File: a.py",
        "@@ -1,3 +1,3 @@ class A:",
        "     def f(self):",
        "-        return 1",
        "+        return 5",
        "",
    ]
    assert (await v4a(session, *lines, marks=False))["success"]
    # Less indented than the file, a blank line without its space, an insertion at the end.
    second = ["*** Update File: a.py", "     return 5", "", " def g(self):", "-    return 2", "+    return 6"]
    assert (await v4a(session, *second, "*** Update File: a.py", "@@", "+# end"))["success"]
    assert (tmp_path / "a.py").read_text() == CODE.replace("1", "5").replace("2", "6") + "# end\n"


async def test_hunks_are_found_in_order_and_at_the_end(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("x\ny\nx\ny\nx\n")
    assert (await v4a(session, "*** Update File: a.py", "-x", "+1", "@@", "-x", "+2"))["success"]
    assert (tmp_path / "a.py").read_text() == "1\ny\n2\ny\nx\n"
    (tmp_path / "a.py").write_text("x\ny\nx\ny\nx\n")
    assert (await v4a(session, "*** Update File: a.py", "-x", "+3", "*** End of File"))["success"]
    assert (tmp_path / "a.py").read_text() == "x\ny\nx\ny\n3\n"


async def test_a_write_that_fails_midway_is_taken_back(tmp_path: Path):
    class Full(HostWorkspace):
        async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
            if path.endswith("b.txt") and data != b"b\n":
                raise OSError(28, "No space left on device")
            await super().write_bytes(path, data, mode=mode)

    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    async with Full(tmp_path) as workspace, ToolSession(None, ["file"], workspace) as session:
        lines = [line for name in "abc" for line in (f"*** Update File: {name}.txt", f"-{name}", "+x")]
        result = await v4a(session, *lines, "*** Add File: d.txt", "+d")
    assert "No space left" in result["error"]
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {f"{n}.txt": f"{n}\n" for n in "abc"}


async def test_files_removed_before_one_that_cannot_be_come_back(tmp_path: Path):
    class Held(HostWorkspace):
        async def exec(self, command, **options):
            if isinstance(command, str) and command.startswith("rm -f"):
                command = f"rm -f {tmp_path}/a.txt; echo held >&2; false"
            return await super().exec(command, **options)

    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    async with Held(tmp_path) as workspace, ToolSession(None, ["file"], workspace) as session:
        result = await v4a(session, "*** Delete File: a.txt", "*** Delete File: b.txt")
    assert "held" in result["error"]
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {f"{n}.txt": f"{n}\n" for n in "ab"}


async def test_a_patch_that_is_cancelled_midway_is_taken_back(tmp_path: Path):
    reached = asyncio.Event()

    class Slow(HostWorkspace):
        async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
            if path.endswith("b.txt") and data != b"b\n":
                reached.set()
                await asyncio.Event().wait()
            await super().write_bytes(path, data, mode=mode)

    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    async with Slow(tmp_path) as workspace, ToolSession(None, ["file"], workspace) as session:
        lines = [line for name in "ab" for line in (f"*** Update File: {name}.txt", f"-{name}", "+x")]
        patching = asyncio.create_task(v4a(session, *lines))
        await reached.wait()
        assert (tmp_path / "a.txt").read_text() == "x\n"
        patching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await patching
    assert (tmp_path / "a.txt").read_text() == "a\n"


async def test_deleting_a_last_line_leaves_no_empty_one(session, tmp_path: Path):
    (tmp_path / "a.py").write_text("a\nb")
    assert (await v4a(session, "*** Update File: a.py", " a", "-b"))["success"]
    assert (tmp_path / "a.py").read_text() == "a"


lines_of_text = st.lists(st.sampled_from(["a", "b", " a", "", "a b", "é"]), max_size=12)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines_of_text, st.booleans(), st.data())
def test_git_applies_the_diffs(tmp_path: Path, lines, newline, data):
    """The diff of any replacements is one that takes the old text to the new one."""
    text = "\n".join(lines) + ("\n" if newline and lines else "")
    old = data.draw(st.sampled_from(["a", "b", "a\n", "\n", "b\na", "é", "a b\n"]))
    new = data.draw(st.sampled_from(["", "x", "x\n", "\n\n", "a", "y\nz\n"]))
    try:
        edits = without_overlaps(list(find_edits(text, old, new)[1]))
    except ToolError:  # lines that follow are at an indentation that stands for two
        reject()
    after = apply_edits(text, edits)
    diff = unified_diff("f", text, edits)
    if text == after or not text or not after:
        return
    assert _patched(tmp_path, text, diff) == after


def _patched(folder: Path, text: str, diff: str) -> str:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    (work / "f").write_bytes(text.encode())
    run = subprocess.run(
        ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"],
        cwd=work,
        env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(folder)},  # in no repository
        input=diff.encode(),
        capture_output=True,
    )
    assert run.returncode == 0, (run.stderr, diff)
    return (work / "f").read_bytes().decode()


@settings(max_examples=200, deadline=None)
@given(lines_of_text, lines_of_text.filter(any), st.sampled_from(["new", "", "n\n"]))
def test_what_is_found_replaces_whole_occurrences(lines, wanted, new):
    """Each edit lies in the text, in order, and exactly replaced texts are equal to the one looked for."""
    text = "\n".join(lines)
    try:
        strategy, edits = find_edits(text, "\n".join(wanted), new)
    except ToolError:
        reject()
    assert [edit.start for edit in edits] == sorted(edit.start for edit in edits)
    for edit in edits:
        assert 0 <= edit.start <= edit.end <= len(text)
        if strategy == "exact":
            assert text[edit.start : edit.end] == "\n".join(wanted)
        else:
            assert text[edit.start : edit.end].split() == "\n".join(wanted).split()


def test_hostile_texts_take_linear_time():
    text = "a\n" * 60_000
    edits = [Edit(position, position + 1, "b") for position in range(0, len(text), 2)]

    def work():
        assert find_edits(text, "a\n" * 5_000 + "b", "")[1] == []
        assert find_edits(text, " a\n" * 5_000 + " b", "")[1] == []
        assert unified_diff("f", text, edits).count("\n+b") == 60_000

    assert takes_less(10, work)
