"""Judge of the task tidy-inbox: the inbox is made again from its recipe, and sorted independently."""

import hashlib
import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

PARTIAL = False
HERE = Path(__file__).parent


@cache
def expected():
    """Destination -> content, from a fresh copy of the inbox."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", str(HERE / "make_inbox.sh")], cwd=folder, check=True, timeout=60)
        inbox = Path(folder, "inbox")
        files = {os.fsencode(path.relative_to(inbox)): path.read_bytes() for path in inbox.rglob("*") if path.is_file()}
    kept, contents = {}, set()
    for path, content in sorted(files.items()):
        if content in contents:
            continue
        contents.add(content)
        name = path.split(b"/")[-1]
        dot = name.rfind(b".")
        stem, ending = (name, b"") if dot <= 0 else (name[:dot], name[dot:])
        extension = ending[1:].lower() or b"none"
        choices = [name] + [b"%s-%d%s" % (stem, number, ending) for number in range(2, 99)]
        kept[next(c for c in (extension + b"/" + choice for choice in choices) if c not in kept)] = content
    return kept


def found():
    root = Path("sorted")
    files = {os.fsencode(path.relative_to(root)): path for path in root.rglob("*") if not path.is_dir()}
    assert not any(path.is_symlink() for path in files.values()), "links in place of files"
    return {name: path.read_bytes() for name, path in files.items() if name != b"MANIFEST"}


def check_every_file_is_in_its_place():
    assert sorted(found()) == sorted(expected())


def check_contents():
    assert found() == expected()


def check_manifest():
    lines = [hashlib.sha256(content).hexdigest().encode() + b"  " + name for name, content in sorted(expected().items())]
    assert Path("sorted/MANIFEST").read_bytes().splitlines() == lines


def check_inbox_is_gone():
    assert not os.path.lexists("inbox")


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
