"""The command line, run as a program."""

import json
import os
import subprocess
import sys

import pytest
from hermes_sandbox.cli import backend_options, main


def command(*argv: str, data: bytes = b"", timeout: float = 300) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-W", "ignore", "-m", "hermes_sandbox.cli", *argv]
    return subprocess.run(program, input=data, capture_output=True, timeout=timeout)


def test_run_passes_everything_through() -> None:
    done = command(
        "run",
        "local",
        "--env",
        "V=a b",
        "--stdin",
        "--option",
        "local.quiet=true",
        "--",
        'cat; echo "$V" >&2; exit 7',
        data=b"in\0\xff",
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"in\0\xff", b"a b\n")


def test_more_words_are_an_argv() -> None:
    assert (
        command("run", "local", "--option", "local.quiet=true", "--", "printf", "%s|", "a b", "$HOME").stdout
        == b"a b|$HOME|"
    )


def test_dashes_of_the_commands_own_are_passed_on() -> None:
    done = command(
        "run", "local", "--option", "local.quiet=true", "--", "printf", "[%s]", "--", "a", "--", "b"
    )
    assert done.stdout == b"[--][a][--][b]"
    assert command("run", "local", "--").returncode == 2


def test_a_timeout_is_124() -> None:
    for seconds in ("0.5", "8", "60"):  # a machine that stands still gets the time that it needs to begin
        done = command(
            *(
                "run",
                "local",
                "--option",
                "local.quiet=true",
                "--timeout",
                seconds,
                "--",
                "echo begun; sleep 600",
            )
        )
        if done.stdout:
            break
    assert (done.returncode, done.stdout) == (124, b"begun\n")


def test_what_cannot_be_enforced_is_said_before_anything_runs() -> None:
    done = command("run", "local", "--memory-mb", "64", "--", "echo never")
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"memory_mb" in done.stderr


def test_doctor_reports_every_backend_as_json() -> None:
    """It imports every SDK, one after the other: seconds of work, which a busy machine draws out."""
    done = command("doctor", "--no-start", "--timeout", "500", "--json", timeout=550)
    found = {each["backend"]: each for each in json.loads(done.stdout)}
    assert {"local", "docker", "ssh", "singularity", "modal", "daytona"} <= set(found)
    assert found["local"]["ok"]
    assert found["ssh"]["detail"] == "the ssh backend needs the option host"
    assert found["ssh"]["remedy"].endswith("--option ssh.host=HOST")
    assert [name for name, each in found.items() if not each["ok"] and not each["remedy"]] == []
    assert done.returncode == 0


def test_doctor_measures_what_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "local", "--option", "local.quiet=true"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("local        ok   start ")
    assert main(["doctor", "ssh"]) == 1


def test_reap_lists_nothing_of_the_living(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reap", "local", "--dry-run", "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


def test_options_are_json_where_they_can_be() -> None:
    assert backend_options(["ssh.host=box", "ssh.port=22", 'ssh.keys=["a"]', "local.quiet=true"]) == {
        "ssh": {"host": "box", "port": 22, "keys": ["a"]},
        "local": {"quiet": True},
    }
    with pytest.raises(ValueError, match=r"BACKEND\.NAME=VALUE"):
        backend_options(["host=box"])


def test_a_reader_that_has_gone_ends_it_quietly() -> None:
    argv = [sys.executable, "-m", "hermes_sandbox.cli", "doctor", "local"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writing)
    assert done.returncode == 141
    assert b"Broken pipe" not in done.stderr
