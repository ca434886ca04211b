"""Which files of a build context are left out."""

from pathlib import Path

import pytest
from hermes_sandbox.backends.dockerignore import ignored


@pytest.mark.parametrize(
    ("patterns", "out", "in_"),
    [
        ("*.log", ["a.log"], ["x/a.log", "a.logs"]),
        ("**/*.log", ["a.log", "x/a.log", "x/y/a.log"], ["a.txt"]),
        ("node_modules", ["node_modules", "node_modules/x/y"], ["src/node_modules"]),
        ("/build/", ["build/x"], ["rebuild"]),
        ("*\n!keep", ["a", "b/c"], ["keep", "keep/x"]),
        ("# a comment\n\n  spaced  ", ["spaced"], ["# a comment"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[ab]x", ["ax", "bx"], ["cx"]),
        ("**/__pycache__", ["__pycache__/m", "a/b/__pycache__/m"], ["a/pycache"]),
    ],
)
def test_patterns(tmp_path: Path, patterns: str, out: list[str], in_: list[str]) -> None:
    (tmp_path / ".dockerignore").write_text(patterns)
    skip = ignored(tmp_path / ".dockerignore")
    assert [name for name in out if not skip(name)] == []
    assert [name for name in in_ if skip(name)] == []


def test_without_the_file_nothing_is_left_out(tmp_path: Path) -> None:
    assert not ignored(tmp_path / ".dockerignore")("anything")
