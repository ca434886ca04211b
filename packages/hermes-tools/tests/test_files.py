"""read_file and write_file."""

from pathlib import Path

import pytest
from hermes_tools import ResultBudget
from hermes_tools.toolsets.file import read as read_module
from hermes_tools_calls import fail, succeed


@pytest.fixture
def session(open_session):
    return open_session("file", "terminal")


async def test_lines_have_numbers_and_pages(session, tmp_path: Path):
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    result = await succeed(session, "read_file", path="a.txt", offset=3, limit="2")
    assert result["content"] == "3|line 3\n4|line 4"
    assert (result["total_lines"], result["file_size"], result["truncated"], result["next_offset"]) == (
        10,
        71,
        True,
        5,
    )
    last = await succeed(session, "read_file", path=str(tmp_path / "a.txt"), offset=9)
    assert last["content"] == "9|line 9\n10|line 10" and last["truncated"] is False
    clamped = await succeed(session, "read_file", path="a.txt", offset=0, limit=1_000_000)
    assert clamped["content"].startswith("1|line 1\n") and clamped["content"].endswith("10|line 10")
    beyond = await succeed(session, "read_file", path="a.txt", offset=99)
    assert beyond["content"] == "" and "only 10 lines" in beyond["note"]


async def test_paths_start_where_the_shell_is(session, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    await succeed(session, "terminal", command="cd sub; echo hi > b.txt")
    assert (await succeed(session, "read_file", path="b.txt"))["content"] == "1|hi"
    assert (await succeed(session, "write_file", path="../c.txt", content="x"))["path"] == str(
        tmp_path / "c.txt"
    )


async def test_the_home_folder(session, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    await succeed(session, "write_file", path="~/x/y.txt", content="é\n")
    assert (tmp_path / "home/x/y.txt").read_text(encoding="utf-8") == "é\n"


@pytest.mark.parametrize(
    ("data", "content", "encoding"),
    [
        (b"", "", None),
        (b"no end", "1|no end", None),
        (b"a\r\nb\r\n", "1|a\n2|b", None),
        (b"\n\n", "1|\n2|", None),
        ("\ufeffbom\n".encode(), "1|bom", None),
        ("é\n".encode("utf-16"), "1|é", "utf-16-le"),
        ("caf\u00e9\n".encode("latin-1"), "1|café", "latin-1"),
        (b"a\x0cb\x1cc\n", "1|a\x0cb\x1cc", None),
    ],
)
async def test_encodings_and_line_ends(session, tmp_path: Path, data, content, encoding):
    (tmp_path / "f").write_bytes(data)
    result = await succeed(session, "read_file", path="f")
    assert result["content"] == content and result.get("encoding") == encoding


async def test_long_lines_are_cut(session, tmp_path: Path):
    (tmp_path / "f").write_text("x" * 100_000 + "\nshort\n")
    content = (await succeed(session, "read_file", path="f"))["content"]
    assert "[... line cut: 100,000 characters]\n2|short" in content and len(content) < 2_200


async def test_the_budget_ends_a_page_not_a_result(open_session, tmp_path: Path):
    session = open_session("file", budget=ResultBudget(per_result=4_000))
    (tmp_path / "f").write_text("".join(f"{n:0100}\n" for n in range(1, 1_001)))
    result = await succeed(session, "read_file", path="f", limit=2_000)
    assert result["truncated"] and 20 < result["next_offset"] < 40
    following = await succeed(session, "read_file", path="f", offset=result["next_offset"])
    assert following["content"].startswith(f"{result['next_offset']}|")


async def test_a_file_too_large_to_hold_is_read_in_place(session, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(read_module, "MAX_WHOLE", 1_000_000)
    with (tmp_path / "big").open("w") as file:
        file.writelines(f"line {n} é\n" for n in range(1, 200_001))
        file.write("last")
    result = await succeed(session, "read_file", path="big", offset=150_000, limit=2)
    assert result["content"] == "150000|line 150000 é\n150001|line 150001 é"
    assert (result["total_lines"], result["file_size"]) == (200_001, (tmp_path / "big").stat().st_size)
    assert (await succeed(session, "read_file", path="big", offset=200_001))["content"] == "200001|last"


async def test_binary_files_are_refused(session, tmp_path: Path):
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "b").write_bytes(bytes(range(256)) * 10)
    assert "PNG image" in await fail(session, "read_file", path="p.png")
    assert "binary file, 2,560 bytes" in await fail(session, "read_file", path="b")


async def test_what_is_missing_is_told_with_what_is_there(session, tmp_path: Path):
    from hermes_tools_calls import call

    (tmp_path / "config.yaml").touch()
    (tmp_path / "other").mkdir()
    result = await call(session, "read_file", path="confg.yml")
    assert "File not found" in result["error"] and result["similar_files"] == [str(tmp_path / "config.yaml")]
    assert "does not exist" in await fail(session, "read_file", path="none/sub/x")
    assert "is a folder" in await fail(session, "read_file", path="other")
    assert "empty" in await fail(session, "read_file", path=" ")
    assert "null byte" in await fail(session, "read_file", path="a\0b")


@pytest.mark.parametrize("name", ["a b", "ü", "'\"$(x)`", "-rf", "new\nline", "*", "\\"])
async def test_odd_names(session, tmp_path: Path, name):
    written = await succeed(session, "write_file", path=name, content="one\ntwo\n")
    assert written == {"path": str(tmp_path / name), "bytes_written": 8}
    assert (await succeed(session, "read_file", path=name))["total_lines"] == 2
    await succeed(session, "patch", path=name, old_string="two", new_string="2")
    assert (tmp_path / name).read_text() == "one\n2\n"
    assert (await succeed(session, "search_files", pattern="one", path=name))["total_count"] == 1


async def test_writing_keeps_modes_and_refuses_folders(session, tmp_path: Path):
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await succeed(session, "write_file", path="run.sh", content="new")
    assert script.stat().st_mode & 0o777 == 0o750
    assert "is a folder" in await fail(session, "write_file", path=".", content="x")
    assert "is a file where a folder is needed" in await fail(
        session, "write_file", path="run.sh/x", content="x"
    )


async def test_content_that_is_no_string(session, tmp_path: Path):
    await succeed(session, "write_file", path="a.json", content={"a": [1, "é"]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "a": [\n    1,\n    "é"\n  ]\n}'
    assert "surrogate" in await fail(session, "write_file", path="x", content="\ud800")
    await succeed(session, "write_file", path="smile", content="\N{GRINNING FACE}")
