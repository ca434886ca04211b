import json
import xml.etree.ElementTree as ElementTree

import pytest
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.plan import SkippedTask
from hermes_benchmarks.record import TestDetail
from hermes_benchmarks.report import read_run, write_report
from hermes_benchmarks_support import make_plan, make_run, record

HOSTILE = (
    "</script><script>boom()</script><img src=x onerror=boom()> | `x` [a](javascript:b)\x00\x1b[31m\ud800"
)


@pytest.fixture
def run(tmp_path):
    tasks = [("alpha", "git"), ("beta", "files"), ("gamma", "files"), ("delta", "files")]
    plan = make_plan(tasks, skipped=[SkippedTask(name="qemu", reason="needs KVM")])
    records = [
        record("alpha", category="git"),
        record("beta", verdict="failed", tests=[TestDetail(name="t", status="failed", message="1 != 2")]),
        record("gamma", verdict="provider_error", message="no answer"),
    ]
    return read_run(make_run(tmp_path / "run", records, plan).path)


def test_junit_tells_failures_from_errors(run):
    (path,) = write_report(run, ["junit"])
    suite = ElementTree.parse(path).getroot()[0]
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
    }
    cases = {case.get("name"): case for case in suite}
    assert cases["alpha__1"].get("classname") == "tb2.git"
    assert list(cases["alpha__1"]) == []
    assert "1 != 2" in cases["beta__1"].find("failure").text
    assert cases["gamma__1"].find("error").get("message") == "no answer"
    assert cases["qemu"].find("skipped").get("message") == "needs KVM"
    assert cases["delta__1"].find("skipped").get("message") == "not run"


def test_json_and_markdown_hold_both_denominators(run):
    for path in write_report(run, ["json", "md"]):
        text = path.read_text()
        if path.suffix == ".json":
            summary = json.loads(text)["summary"]
            assert (summary["passed"], summary["graded"], summary["planned"]) == (1, 2, 4)
            assert summary["headline"] is None
        else:
            assert "| graded trials passed | 1 of 2 |" in text
            assert "| with errors as failures | 1 of 4 (25.0%) |" in text
            assert "only 50% of the trials are graded" in text


def test_hostile_text_stays_text(tmp_path):
    text = HOSTILE.encode("utf-8", "replace").decode()
    bad = record(
        "alpha", verdict="failed", message=text, tests=[TestDetail(name=text, status="failed", message=text)]
    )
    trajectory = {"steps": [{"step_id": 1, "source": "agent", "message": text, "reasoning_content": text}]}
    folder = make_run(tmp_path / "run", [bad], make_plan([("alpha", text)], model=text), trajectory)
    html, junit, markdown = (
        p.read_text() for p in write_report(read_run(folder.path), ["html", "junit", "md"])
    )
    assert html.count("<script") == 3
    assert html.count("</script>") == 3
    assert "<img" not in html
    ElementTree.fromstring(junit.encode())
    assert "<script" not in markdown
    assert "[a](javascript" not in markdown


def test_an_unknown_format_is_named(run):
    with pytest.raises(UsageError, match="'pdf'"):
        write_report(run, ["pdf"])
