"""Judge of the task broken-links."""

import json
import os
from pathlib import Path

PARTIAL = False
REPAIRED = {
    "site/docs/upgrade.md": "site/docs/guide/upgrade.md",
    "site/latest/logo.svg": "site/assets/img/logo.svg",
    "site/latest/about.html": "site/old pages/about us.html",
    "site/docs/style.css": "site/assets/style.css",
}
UNTOUCHED = {
    "site/docs/api/install.md": "../guide/install.md",
    "site/latest/start.html": "../index.html",
    "site/docs/guide/removed.md": "removed.md",
    "site/docs/loop-a": "loop-b",
    "site/docs/loop-b": "loop-a",
    "site/guide": "docs/guide",
    "site/latest/manual": "../docs/manual",
    "site/assets/img/old logo.png": "logo.png",
    "site/assets/mark.svg": "../latest/logo.svg",
}
FILES = ["docs/guide/install.md", "docs/guide/upgrade.md", "docs/api/index.html", "assets/img/logo.svg"]
FILES += ["assets/style.css", "old pages/about us.html", "docs/index.html"]


def check_repaired_links_are_relative_and_lead_there():
    for link, target in REPAIRED.items():
        assert os.path.islink(link), f"{link} is no link"
        assert not os.path.isabs(os.readlink(link)), f"{link} is absolute"
        assert os.path.realpath(link) == os.path.realpath(target), f"{link} leads elsewhere"


def check_other_links_are_as_they_were():
    for link, target in UNTOUCHED.items():
        assert os.path.islink(link) and os.readlink(link) == target, f"{link} was changed"


def check_files_are_as_they_were():
    found = {str(path.relative_to("site")) for path in Path("site").rglob("*") if path.is_file() and not path.is_symlink()}
    assert found == set(FILES), found ^ set(FILES)
    for name in FILES:
        assert Path("site", name).read_text() == f"content of {name}\n", name


def check_list_of_broken_links():
    broken = ["site/assets/img/old logo.png", "site/docs/guide/removed.md", "site/docs/loop-a", "site/docs/loop-b"]
    broken += ["site/latest/manual", "site/latest/start.html"]
    assert Path("broken.txt").read_text().splitlines() == broken


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
