"""Judge of the task markdown-toc."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PARTIAL = False
HERE = Path(__file__).parent
TOC = """
- [Installation](#installation)
  - [From source (the long way)](#from-source-the-long-way)
  - [On macOS & Windows](#on-macos--windows)
- [Usage](#usage)
    - [`run --fast` in C++](#run---fast-in-c)
  - [Options](#options)
- [FAQ: What's new?](#faq-whats-new)
  - [Options](#options-1)
- [Installation](#installation-1)
- [Manual](#manual-2)
  - [snake_case and  two spaces](#snake_case-and--two-spaces)
- [Größe ändern](#größe-ändern)
- [Last words without a newline](#last-words-without-a-newline)

"""
OTHER = "# A\n\n<!-- toc -->\n<!-- /toc -->\n\n### B b\n\n~~~py\n## no\n~~~\n\n## A\n"
OTHER_TOC = "# A\n\n<!-- toc -->\n\n  - [B b](#b-b)\n- [A](#a-1)\n\n<!-- /toc -->\n\n### B b\n\n~~~py\n## no\n~~~\n\n## A\n"


def expected():
    before, rest = (HERE / "manual.md").read_bytes().decode().split("<!-- toc -->\n")
    after = rest.split("<!-- /toc -->")[1]
    return f"{before}<!-- toc -->\n{TOC}<!-- /toc -->{after}"


def run_script(text):
    """What the agent's script makes of `text`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.md")
        path.write_bytes(text.encode())
        script = str(Path("toc.py").resolve())
        subprocess.run([script, str(path)], check=True, cwd=folder, timeout=20, capture_output=True)
        return path.read_bytes().decode()


def check_table_of_contents():
    found = Path("manual.md").read_bytes().decode()
    assert found.split("<!-- toc -->\n")[1].split("<!-- /toc -->")[0] == TOC


def check_rest_of_the_file():
    assert Path("manual.md").read_bytes().decode() == expected()


def check_script_changes_nothing_the_second_time():
    assert run_script(expected()) == expected()


def check_script_on_another_file():
    assert run_script(OTHER) == OTHER_TOC


# From here on every sample task is the same: run the checks, say what happened, write report and verdict.
def run_checks():
    results = []
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                results.append((name, ""))
            except Exception as error:
                results.append((name, f"{type(error).__name__}: {error}"))
            print(f"{'FAILED' if results[-1][1] else 'PASSED'} {name} {results[-1][1]}".rstrip())
    return results


def write_verdict(results):
    logs = Path(os.environ.get("TASK_ROOT", "") + "/logs/verifier")
    logs.mkdir(parents=True, exist_ok=True)
    failed = sum(bool(message) for _, message in results)
    passed = len(results) - failed
    tests = [
        {"name": name, "status": "failed" if message else "passed", "duration": 0, "message": message}
        for name, message in results
    ]
    summary = {"tests": len(results), "passed": passed, "failed": failed}
    report = {"results": {"tool": {"name": "check.py"}, "summary": summary, "tests": tests}}
    (logs / "ctrf.json").write_text(json.dumps(report, indent=1))
    print(f"==== {f'{failed} failed, ' if failed else ''}{passed} passed ====")
    reward = passed / len(results) if PARTIAL else float(not failed)
    (logs / "reward.txt").write_text(f"{reward:g}\n")


write_verdict(run_checks())
