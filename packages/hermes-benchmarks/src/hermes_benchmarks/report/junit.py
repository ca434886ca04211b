"""The report as JUnit XML, for continuous integration: a failed task is a failure, an ungraded one an error."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from hermes_benchmarks.record import TrialRecord
from hermes_benchmarks.report.data import RunData
from hermes_benchmarks.verdict import Verdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(run: RunData) -> bytes:
    """The report as bytes of XML."""
    failed = sum(record.graded and record.verdict is not Verdict.PASSED for record in run.records)
    errors = sum(not record.graded for record in run.records)
    skipped = [(task.name, task.reason) for task in run.plan.skipped]
    skipped += [(f"{task}__{attempt}", "not run") for task, attempt in run.missing]
    counts = {
        "tests": str(len(run.records) + len(skipped)),
        "failures": str(failed),
        "errors": str(errors),
        "skipped": str(len(skipped)),
        "time": f"{run.summary.seconds:.3f}",
    }
    root = Element("testsuites")
    named = {"name": clean(run.plan.benchmark), "timestamp": run.plan.created}
    suite = SubElement(root, "testsuite", {**named, **counts})
    for record in run.records:
        _case(suite, run.plan.benchmark, record)
    for name, reason in skipped:
        case = SubElement(suite, "testcase", classname=clean(run.plan.benchmark), name=clean(name), time="0")
        SubElement(case, "skipped", message=clean(reason))
    return tostring(root, encoding="utf-8", xml_declaration=True)


def _case(suite: Element, benchmark: str, record: TrialRecord) -> None:
    group = ".".join(filter(None, (benchmark, record.category)))
    case = SubElement(
        suite, "testcase", classname=clean(group), name=clean(record.name), time=f"{record.seconds:.3f}"
    )
    if record.verdict is Verdict.PASSED:
        return
    kind = "failure" if record.graded else "error"
    found = SubElement(case, kind, type=str(record.verdict), message=clean(record.note))
    failed = [
        f"{test.name}: {test.status} {test.message}".strip()
        for test in record.tests
        if test.status != "passed"
    ]
    found.text = clean("\n".join(failed))


def clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
