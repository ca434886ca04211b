"""search_files: both engines give the same, correct answers."""

import os
import random
import re
from pathlib import Path

import pytest
from hermes_tools import HostWorkspace, ToolSession
from hermes_tools.toolsets.file.search_engine import EXCLUDED, SearchOptions, checked_pattern
from hermes_tools_calls import call, fail, succeed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ENGINES = ("rg", "grep")


@pytest.fixture(params=ENGINES)
def session(request, open_session):
    return open_session("file", options=[SearchOptions(engine=request.param)])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "a.py": "import os\ndef f():\n    return os\n",
        "src/b.py": "x = 1\n\n# return\ny = 2\nreturn\n",
        "src/deep/c.ts": "return c;\n",
        "src/.hidden/d.py": "return d\n",
        "node_modules/e.py": "return e\n",
        ".git/f.py": "return f\n",
        ".gitignore": "ignored.py\n",
        "ignored.py": "return ignored\n",
        "odd 'name\n$x.py": "return odd\n",
        "ünï.py": "Straße return\n",
        "z.min.js": "x" * 9_000 + " return",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin.dat").write_bytes(b"return\0return\n")
    (tmp_path / "late.dat").write_bytes(b"return\n" + b"x\n" * 40_000 + b"\0\nreturn\n")
    (tmp_path / "latin.txt").write_bytes("caf\u00e9 return\n".encode("latin-1"))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "empty.py").touch()
    return tmp_path


async def test_matching_lines_sorted_with_context(session, tree):
    result = await succeed(session, "search_files", pattern=r"\breturn\b", context=1, file_glob="*.py")
    shown = [(match["path"], match["line"]) for match in result["matches"]]
    assert shown == [
        ("a.py", 3),
        ("ignored.py", 1),
        ("odd 'name\n$x.py", 1),
        ("src/.hidden/d.py", 1),
        ("src/b.py", 3),
        ("src/b.py", 5),
        ("ünï.py", 1),
    ]
    assert result["total_count"] == 7 and result["truncated"] is False
    assert result["matches"][0] == {
        "path": "a.py",
        "line": 3,
        "content": "    return os",
        "before": ["2|def f():"],
        "after": [],
    }
    assert result["matches"][4]["before"] == ["2|"] and result["matches"][4]["after"] == ["4|y = 2"]


@pytest.mark.parametrize("glob", ["*", "**", "[!q]*", "!*.ts"])
async def test_no_file_pattern_brings_excluded_folders_back(session, tree, glob):
    result = await succeed(
        session, "search_files", pattern="return", file_glob=glob, output_mode="files_only"
    )
    assert "a.py" in result["files"]
    assert not [name for name in result["files"] if name.startswith((".git/", "node_modules/"))]


async def test_utf_16_is_binary_to_both_engines(session, tmp_path):
    (tmp_path / "wide.txt").write_bytes("\ufeffreturn\n".encode("utf-16-le"))
    assert (await succeed(session, "search_files", pattern="return"))["total_count"] == 0


async def test_paging_counts_everything(session, tree):
    for number in range(30):
        (tree / f"n{number:02}.txt").write_text("hit\nmiss\nhit\n")
    pages = []
    offset = 0
    while offset is not None:
        page = await succeed(session, "search_files", pattern="^hit$", limit=7, offset=offset, context=1)
        assert page["total_count"] == 60
        pages += [(match["path"], match["line"]) for match in page["matches"]]
        offset = page.get("next_offset")
    assert pages == [(f"n{number:02}.txt", line) for number in range(30) for line in (1, 3)]


async def test_files_and_counts(session, tree):
    names = await succeed(
        session, "search_files", pattern="return", output_mode="files_only", file_glob="src/**"
    )
    assert names["files"] == ["src/.hidden/d.py", "src/b.py", "src/deep/c.ts"] and names["total_count"] == 3
    counts = await succeed(session, "search_files", pattern="return", path="src", output_mode="count")
    assert counts["counts"] == {"src/.hidden/d.py": 1, "src/b.py": 2, "src/deep/c.ts": 1}


async def test_binary_files_are_left_out_and_odd_bytes_are_not(session, tree):
    result = await succeed(session, "search_files", pattern="return", file_glob="{*.dat,*.txt,*.js}")
    assert [match["path"] for match in result["matches"]] == ["latin.txt", "z.min.js"]
    assert result["matches"][0]["content"] == "caf\ufffd return"
    assert result["matches"][1]["content"] == "x" * 500 + " [... line cut]"
    (tree / "named.dat").write_bytes(b"return\0return\n")
    assert (await succeed(session, "search_files", pattern="return", path="named.dat"))["total_count"] == 0


async def test_one_file_and_folders_that_are_left_out(session, tree):
    one = await succeed(session, "search_files", pattern="return", path="src/b.py")
    assert [(match["path"], match["line"]) for match in one["matches"]] == [("src/b.py", 3), ("src/b.py", 5)]
    inside = await succeed(session, "search_files", pattern="return", path="node_modules")
    assert [match["path"] for match in inside["matches"]] == ["node_modules/e.py"]
    absolute = await succeed(session, "search_files", pattern="import", path=str(tree))
    assert absolute["matches"][0]["path"] == f"{tree}/a.py"


async def test_finding_files_by_name(session, tree):
    async def find(pattern: str, **more) -> list[str]:
        return (await succeed(session, "search_files", pattern=pattern, target="files", **more))["files"]

    assert await find("*.ts") == ["src/deep/c.ts"]
    assert await find("[ab].py") == ["a.py", "src/b.py"]
    assert await find("src/*.py") == ["src/b.py"]
    assert await find("**/*.{ts,js}") == ["src/deep/c.ts", "z.min.js"]
    assert await find("*.py", path="src") == ["src/.hidden/d.py", "src/b.py"]
    assert await find("*", limit=2) == [".gitignore", "a.py"]
    missed = await succeed(session, "search_files", pattern="deep", target="files")
    assert missed["total_count"] == 0 and "*deep*" in missed["note"]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"\d+", ["x = 1", "y = 2"]),
        ("(?i)RETURN;?$", ["# return", "return"]),
        ("return(?= c)", ["return c;"]),
        ("f(){", None),
        ("{", []),
        (r"Stra\w+e", ["Straße return"]),
        (r"^.{6}\sret", ["Straße return"]),
        (r"\x72eturn c", ["return c;"]),
        (r"\p{Lu}tra", ["Straße return"]),
        ("return c;|def", ["def f():", "return c;"]),
        ("-e", []),
        ("'$x\"", []),
    ],
)
async def test_patterns(session, tree, pattern, texts):
    glob = "b.py" if pattern in (r"\d+", "(?i)RETURN;?$") else "{a.py,b.py,c.ts,ünï.py}"
    result = await succeed(session, "search_files", pattern=pattern, file_glob=glob)
    if texts is not None:
        assert [match["content"].strip() for match in result["matches"]] == texts


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a\nb", r"a\nb", "", "a\0b", "(?<x"])
async def test_wrong_patterns_are_errors(session, tree, pattern):
    assert "pattern" in await fail(session, "search_files", pattern=pattern)


async def test_what_is_not_there(session, tree):
    assert "File not found" in await fail(session, "search_files", pattern="x", path="nowhere")
    nothing = await succeed(session, "search_files", pattern="surely not here")
    assert nothing["total_count"] == 0 and ".git" in nothing["note"]


async def test_a_path_without_bytes_that_are_text(session, tmp_path):
    Path(os.fsdecode(bytes(tmp_path) + b"/bad\xff.txt")).write_text("here\n")
    result = await succeed(session, "search_files", pattern="here")
    assert result["matches"] == [{"path": "bad\ufffd.txt", "line": 1, "content": "here"}]


def test_braces_that_are_no_quantifier_are_meant_literally():
    assert checked_pattern(r"f(){") == r"f()\{"
    assert checked_pattern(r"a{2,3}b{x}") == r"a{2,3}b\{x}"
    assert checked_pattern(r"\p{Lu}{2}\{") == r"\p{Lu}{2}\{"


NAMES = st.sampled_from(["a.py", "b.py", "a.min.js", "README", "x y.py", ".env", "src", "venv"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
GLOBS = st.one_of(
    st.sampled_from(
        [
            "*",
            "*.py",
            "a*",
            "?.py",
            "**/a.py",
            "src/*",
            "src/**",
            "src/**/*.py",
            "/a.py",
            "./a.py",
            "{a,b}.py",
            "[!a].py",
            "!*.py",
            "!src",
            "!src/*",
            "!**/a.py",
            "*.{py,js}",
            "**",
            "a.p[xyz]",
            ".*",
            "x y*",
            r"\*",
            "src/",
        ]
    ),
    st.text(alphabet="ab*?/.[]!{},", min_size=1, max_size=6).filter(
        lambda g: "[" not in g and "{" not in g and "}" not in g
    ),
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sets(PATHS, min_size=1, max_size=6),
    GLOBS,
    st.sampled_from(["x", "^", "a|b", r"\w+", "[^x]"]),
    st.integers(0, 2),
)
async def test_engines_agree(tmp_path_factory, paths, glob, pattern, context):
    await _compare(tmp_path_factory.mktemp("t"), sorted(paths), glob, pattern, context)


async def test_engines_agree_on_many_trees(tmp_path_factory):
    rng = random.Random(5)
    names = ["a.py", "b.py", "a.min.js", "README", "x y.py", ".env", "src", "venv"]
    globs = [
        "*.py",
        "!*.py",
        "src/*",
        "!src",
        "**/a.py",
        "{a,b}.py",
        "src/**/*.py",
        "[!a].py",
        "/a.py",
        "!src/*",
    ]
    for glob in globs:
        paths = {"/".join(rng.choices(names, k=rng.randint(1, 3))) for _ in range(8)}
        await _compare(
            tmp_path_factory.mktemp("t"),
            sorted(paths),
            glob,
            rng.choice(["x", "^", r"\w+"]),
            rng.randint(0, 2),
        )


async def _compare(folder: Path, paths: list[str], glob: str, pattern: str, context: int) -> None:
    rng = random.Random(repr(paths))
    for path in paths:
        file = folder / path
        if any(parent.is_file() for parent in file.parents) or file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "".join(rng.choice(["x\n", "a\n", "b x\n", "\n", "é"]) for _ in range(rng.randint(0, 9)))
        )
    answers = []
    async with HostWorkspace(folder) as workspace:
        for engine in ENGINES:
            async with ToolSession(
                None, ["file"], workspace, options=[SearchOptions(engine=engine)]
            ) as session:
                answers.append(
                    await call(
                        session,
                        "search_files",
                        pattern=pattern,
                        file_glob=glob,
                        context=context,
                        limit=5,
                        offset=1,
                    )
                )
    assert answers[0] == answers[1], (paths, glob, pattern)


def test_the_folders_left_out_are_names_without_special_characters():
    assert all(re.fullmatch(r"[\w.]+", name) for name in EXCLUDED)
