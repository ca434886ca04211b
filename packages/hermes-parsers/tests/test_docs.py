"""The pages tell the truth: the table lists every format, and the README's programs run."""

import re
from pathlib import Path

import pytest
from hermes_parsers import list_parsers, registry

ROOT = Path(__file__).parents[3]
README = Path(__file__).parents[1] / "README.md"


def test_the_table_lists_every_format():
    rows = re.findall(
        r"^\| `(\w+)` \|(?=.*\|.*\|.*\|)", (ROOT / "docs" / "parsers.md").read_text(), re.MULTILINE
    )
    assert sorted(set(rows) & set(list_parsers())) == list_parsers()


@pytest.mark.parametrize("heading", ["pip install", "A format of your own"])
def test_the_readmes_programs_run(heading, monkeypatch, capsys):
    monkeypatch.setattr(registry, "_registered", {})
    section = README.read_text().partition(heading)[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    exec(compile(program, heading, "exec"), {})
    assert capsys.readouterr().out in ("Hi  now {'tz': 'CET'}\n", "1 cases, 0 failures\n")
