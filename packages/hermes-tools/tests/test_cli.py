"""The command, and the reference page made by it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hermes_tools.cli import main

ROOT = Path(__file__).parents[3]


def test_list(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "read_file, write_file, patch, search_files" in out and "[terminal], [file], [web]" in out
    assert main(["list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["terminal"]["tools"] == ["terminal", "process"] and entries["terminal"]["missing"] is None


def test_schema(capsys):
    assert main(["schema", "todo", "terminal", "--strict"]) == 0
    names = [item["function"]["name"] for item in json.loads(capsys.readouterr().out)]
    assert names == ["todo", "terminal", "process"]
    assert main(["schema", "tod"]) == 2
    assert "Did you mean 'todo'" in capsys.readouterr().err


def test_call(capsys, tmp_path: Path):
    assert main(["call", "write_file", '{"path": "a/b", "content": "é"}', "--root", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_written"] == 2
    assert main(["call", "read_file", '{"path": "none"}', "--root", str(tmp_path)]) == 1
    assert "not found" in capsys.readouterr().out
    assert main(["call", "terminal", '{"command": "pwd"}', "--root", str(tmp_path / "none")]) == 2


def test_call_from_standard_input(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-m", "hermes_tools.cli", "call", "terminal", "-", "--root", str(tmp_path)],
        input='{"command": "echo hi"}',
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0 and json.loads(run.stdout) == {"output": "hi\n", "exit_code": 0}, run.stderr


def test_an_interrupt_ends_a_call_quietly(tmp_path):
    command = [sys.executable, "-m", "hermes_tools.cli", "call", "--root", str(tmp_path), "terminal"]
    call = json.dumps({"command": "touch begun; sleep 60"})
    with subprocess.Popen([*command, call], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        assert (running.wait(60), running.stderr.read()) == (130, b"")


def test_wrong_use():
    with pytest.raises(SystemExit) as exit_info:
        main(["nonsense"])
    assert exit_info.value.code == 2


def test_the_reference_page_is_up_to_date(capsys):
    assert main(["docs"]) == 0
    page = ROOT / "docs" / "tools.md"
    assert page.read_text(encoding="utf-8") == capsys.readouterr().out, (
        "run: hermes-tools docs > docs/tools.md"
    )


def test_importing_the_package_loads_nothing_heavy():
    script = "import sys, hermes_tools; print([m for m in ('pydantic', 'aiohttp', 'playwright', 'mcp', 'yaml') if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "[]\n"
