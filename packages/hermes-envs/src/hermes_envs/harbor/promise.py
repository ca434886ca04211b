"""What a task's tests certainly leave behind, read from their source: the measure of what an agent may have forged."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from hermes_envs.harbor.pytest_call import TestsFolder, call_of, module_body
from hermes_envs.harbor.report import parse_summary
from hermes_envs.harbor.shell import Unreadable, parse
from hermes_envs.harbor.walk import ANY, NOT_STARTED, PASSED, State, Trace, Walker

_INSTALLS = re.compile(
    r"^\s*(?:[A-Z_]+=\S+\s+)*(?:sudo\s+)?(?:apt-get|apt|apk|dnf|yum|curl|wget|pip3?|uvx?|npm)\b", re.MULTILINE
)
_WEIGHS = re.compile(
    r"threshold|weight|bonus|optional|allowed_fail|\bjq\b|grep\b[^\n]*(?:pass|fail)"
    r"|(?:pass|score|ratio|rate|share|percent|fraction|correct|reward|total|count|hits|points)\w*"
    r"[\])\"'}]*\s*(?:>=?|-g[et])\s",
    re.IGNORECASE,
)
_SHARE = re.compile(r"\bpassed\w*[\])\"']*\s+/\s", re.IGNORECASE)
_WRITES = re.compile(r"write_text|write_bytes|\bdump\(|['\"][wx]b?['\"]|\.write\(")
_HOLDS = re.compile(r"^(?!.*(?:load|read|open\()).*ctrf\.json", re.DOTALL)
_EXITS = re.compile(r"\b(?:exit|quit|_exit|execv\w*)\(")
_LIMIT = 4 << 20
"""Bytes of a file in `tests/` that are searched."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What the tests of a task certainly leave, if they run and give a reward. A field that is not certain promises nothing.

    Attributes:
        report: A CTRF report.
        summary: A pytest summary in the output.
        bootstrap: They install something first, which can fail or take time.
        names: The test functions that a report of a pass names.
        decided: There is no reward above 0 without them. Otherwise what gives it might do so where tests could not start.
        clean_report: No test of the report has failed where the reward is full.
        clean_summary: No test of the summary has failed there.
        whole: No test was left out.
        some: At least one test passed.
        rewards: The only numbers that they write; None where they are computed.
        shares: A reward is the share of tests that passed.
        early: A reward of 0 may come before there is any trace of tests.
    """

    report: bool = False
    summary: bool = False
    bootstrap: bool = False
    names: frozenset[str] = frozenset()
    decided: bool = False
    clean_report: bool = True
    clean_summary: bool = True
    whole: bool = False
    some: bool = False
    rewards: frozenset[float] | None = None
    shares: bool = False
    early: bool = False

    @property
    def traces(self) -> bool:
        """Whether tests that ran can be told from tests that could not."""
        return self.report or self.summary


def promise_of(tests: Path) -> Promise:
    """Read a task's `tests/` folder for what a run of it must leave behind."""
    script = (tests / "test.sh").read_text("utf-8", "replace")
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    folder = TestsFolder(tests)
    texts = (code, *folder.sources.values(), *folder.other_sources)
    literal = not folder.hooked and not any(map(_WEIGHS.search, texts))
    nothing = Promise(bootstrap=bool(_INSTALLS.search(code)), clean_report=literal, clean_summary=literal)
    speaks = _files_that_speak(tests)
    walker = Walker(
        pytest=lambda words, cwd: call_of(words, cwd, folder),
        judge=lambda word: _judge(word, folder),
        writers=bool(speaks),
        outside=folder.outside,
    )
    try:
        ends = walker.walk(parse(script), _options(script))
    except Unreadable:
        return nothing
    if "reward.json" in code or "reward.json" in speaks:  # which counts before what else is written
        ends = [replace(end, reward=ANY) for end in ends]
    promise = _common(ends, literal)
    formula = any("ctrf" in text and _SHARE.search(text) for text in texts)
    counted = not any("parametrize" in text or "subtest" in text.lower() for text in texts)
    shares = literal and formula and counted and promise.shares
    return replace(promise, bootstrap=nothing.bootstrap, shares=shares)


def _common(ends: Sequence[State], literal: bool) -> Promise:
    """What is true of every way through the script that ends with a reward."""
    rewarded = [end for end in ends if end.reward is not None and end.reward > 0]
    ran = [end for end in rewarded if not _absent(end)]
    if not ran:
        return Promise(clean_report=literal, clean_summary=literal)
    reports = [_last(end, lambda trace: trace.report) for end in ran]
    summaries = [_last(end, lambda trace: trace.prints is not False) for end in ran]
    report = None not in reports
    summary = all(trace is not None and trace.prints for trace in summaries)
    decided = len(ran) == len(rewarded) and (report or summary)
    if any(trace.call for end in ends for trace in end.traces):
        literal = literal and len(rewarded) == len(ends) and not any(end.reward == ANY for end in ends)
    calls = [trace.call for trace in summaries if trace]
    numbers = {end.reward for end in ends if end.reward is not None}
    names = [trace.call.names if trace and trace.call else frozenset[str]() for trace in reports]
    return Promise(
        report=report,
        summary=summary,
        names=names[0].intersection(*names) if _clean(reports) else frozenset(),
        decided=decided,
        clean_report=literal or _clean(reports),
        clean_summary=literal or _clean(summaries),
        whole=summary and all(call is not None and call.whole for call in calls),
        some=summary
        and all(call.some if call else literal for call in calls)
        and (literal or _clean(summaries)),
        rewards=None if ANY in numbers else frozenset(min(max(number, 0.0), 1.0) for number in numbers),
        shares=report and summary and [_key(t) for t in reports] == [_key(t) for t in summaries],
        early=any(
            end.reward == 0 and not any(t.report or t.prints or t.status == NOT_STARTED for t in end.traces)
            for end in ends
        ),
    )


def _last(end: State, of: Callable[[Trace], bool]) -> Trace | None:
    return next((trace for trace in reversed(end.traces) if of(trace)), None)


def _key(trace: Trace | None) -> int | None:
    return trace.key if trace else None


def _absent(end: State) -> bool:
    """Whether pytest was called on this way, and could not be started."""
    calls = [trace.status for trace in end.traces if trace.call]
    return bool(calls) and all(status == NOT_STARTED for status in calls)


def _clean(traces: Sequence[Trace | None]) -> bool:
    """Whether each is of a call of pytest that ended well, and that says so only where no test failed."""
    return all(trace and trace.call and trace.call.honest and trace.status == PASSED for trace in traces)


def _options(script: str) -> set[str]:
    return {"errexit"} if re.match(r"#![^\n]*\s-\w*e", script) else set()


def _files_that_speak(tests: Path) -> str:
    """What the files beside `test.sh` say of the reward: the names of its files, as far as they name them."""
    found: list[str] = []
    for path in sorted(tests.rglob("*")):
        if path.is_file() and path != tests / "test.sh":
            with path.open("rb") as file:
                found += [word.decode() for word in re.findall(rb"reward(?:\.\w+)?", file.read(_LIMIT))]
    return " ".join(found)


def _judge(word: str, folder: TestsFolder) -> tuple[bool, bool] | None:
    """Whether a Python program in the tests folder writes a report and prints a summary whatever happens."""
    source = folder.sources.get(word.removeprefix("/tests/")) if word.startswith("/tests/") else None
    if source is None:
        return None
    body = module_body(source)
    holders = {
        target.id
        for node in chain.from_iterable(map(ast.walk, body))
        if isinstance(node, ast.Assign) and _HOLDS.search(ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    functions = {node.name: node.body for node in body if isinstance(node, ast.FunctionDef)}
    report = prints = False
    for node in _always(body, functions):
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        text = ast.unparse(node)
        report = report or (("ctrf.json" in text or bool(names & holders)) and bool(_WRITES.search(text)))
        prints = prints or _prints_summary(node)
    return report, prints


def _always(body: Sequence[ast.stmt], functions: dict[str, list[ast.stmt]]) -> Iterator[ast.AST]:
    """The parts of a program that run whatever happens, unless it fails."""
    for node in body:
        if isinstance(node, ast.With):
            yield from node.items
            yield from _always(node.body, functions)
        elif isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            yield from _always(node.body, functions)
        elif isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.Match):
            if any(isinstance(each, ast.Return) for each in ast.walk(node)) or _EXITS.search(
                ast.unparse(node)
            ):
                return
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for call in ast.walk(node):
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Name)
                    and call.func.id in functions
                ):
                    inner = dict(functions)
                    yield from _always(inner.pop(call.func.id), inner)
            yield node
            if isinstance(node, ast.Return) or _EXITS.search(ast.unparse(node)):
                return


def _prints_summary(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args):
        return False
    call = node.value
    parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else call.args[:1]
    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts)
    return (
        ast.unparse(call.func) == "print" and not call.keywords and parse_summary(text.encode()) is not None
    )
