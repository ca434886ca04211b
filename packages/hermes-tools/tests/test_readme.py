"""The README's programs run, and say what it says they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_readme(number: int, tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAMS[number]], cwd=tmp_path, capture_output=True, text=True, timeout=500
    )
    assert run.returncode == 0, run.stderr
    if number == 0:
        assert run.stdout.strip() == '{"output": "42\\n", "exit_code": 0}' and run.stdout.strip() in README
