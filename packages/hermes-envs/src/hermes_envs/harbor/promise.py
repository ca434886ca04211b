"""What a task's tests certainly leave behind, read from their source: the measure of what an agent may have forged.

Two shapes of `test.sh` promise something. In one, calls of pytest decide: their exit codes are the only thing that the reward,
1 or 0, depends on. In the other the script, or a Python program in `tests/`, writes a report of its own. Every other script is
believed, for what it may do is not known: it may weigh tests, expect some to fail, or end before they begin.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_REWARD = r"[\"']?(?:\$\w+|\$\{[^}]*\})?/logs/verifier/reward\.txt[\"']?"
_STATUS = r"\"?\$(?:\?|\w+|\{(?:\w+|PIPESTATUS\[0\])\})\"?"
_TEST = rf"(?:\[\[? {_STATUS} (?:-eq|==?) [\"']?0[\"']? \]\]?|\(\( {_STATUS} == 0 \)\))"
_ONE, _ZERO = (rf"(?:echo|printf) [\"']?{number}(?:\.0)?(?:\\n)?[\"']? ?> ?{_REWARD}" for number in "10")
_DECISION = re.compile(
    rf"(?:\w+=\$\? )?(?:(?:if {_TEST}(?: && {_TEST})* )?then (?:echo [^>]*? )?{_ONE} else (?:echo [^>]*? )?{_ZERO} fi"
    rf"|{_TEST} && {_ONE} \|\| {_ZERO}|&& {_ONE}(?: \|\| {_ZERO})?)"
)
_CALL = re.compile(
    r"(?:if )?(?:[A-Z_]+=\S+ )*(?:timeout \S+ )?(?:\S*/)?(?:uvx? (?:.* )?|\S*python[\d.]* (?:-\w+ )*-m )?pytest(?P<arguments>(?: .*?)?)"
    rf"(?P<decision> && {_ONE}.*)?"
)
_TEE = re.compile(r"(?: 2>&1)?(?: \| tee (?:-a )?\S+)?$")
_ASIDE = re.compile(r" &?>>? ?\S+(?: 2>&1)?$")
_REDIRECTS = re.compile(r"[|<>&`]|\$\(")
_MEDDLES = re.compile(r"reward|\bexec\b|\btrap\b|\(\) ?\{|\b(?:for|while|until|case)\b|<<")
_UNUSUAL = re.compile(
    r" (?:--co|--collect-only|-p (?!no:(?:cacheprovider|randomly|warnings))\S+|--help|--version|--reruns)\b"
)
_SILENT = re.compile(r" (?:-\w*qq\w*|-q -q|--no-summary)\b")
_SELECTS = re.compile(r" (?:-k|-m|--deselect|--ignore|--ignore-glob|--lf|--ff|--sw|-x|--maxfail)\b|::")
_REPORT = re.compile(r" --ctrf[ =]\S*/logs/verifier/ctrf\.json")
_SKIPS = re.compile(r"\b(?:pytest|unittest|mark)\.skip|\bxfail\b|importorskip|skipTest|SkipTest|pytestmark")
_PARAMETERS = re.compile(r"parametrize\(\s*(?:[\"'][^\"']*[\"']|[(\[][^)\]]*[)\]]),\s*([^,)\n]*)")
_FILLED = re.compile(r"[\[(] *[^\s\])]|[\[(]$|(?:list\()?range\(\d")
_SHARES = re.compile(r"\bpassed\w*\)? / ")
_OTHER_REPORTERS = re.compile(r"pytest-(?:sugar|pretty|rich)")
_CONFIGURE = ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
_WEIGHS = re.compile(
    r"threshold|weight|\b(?:pass|score|ratio|rate|share|percent|fraction|correct|reward|count)\w*[\])]*\s*>=?\s",
    re.IGNORECASE,
)
_INSTALLS = re.compile(
    r"^\s*(?:[A-Z_]+=\S+\s+)*(?:sudo\s+)?(?:apt-get|apt|apk|dnf|yum|curl|wget|pip3?|uvx?|npm)\b", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Promise:
    """What the tests of a task certainly leave, if they run and give a reward. What is not certain is not promised.

    Attributes:
        report: A CTRF report.
        summary: A pytest summary in the output.
        bootstrap: They install something first, which can fail or take time.
        traces: Tests that ran can be told from tests that could not begin.
        early: A reward of 0 may come before there is any trace of tests.
        clean: Where the reward is full no test has failed, in the report or in the summary.
        whole: No test was left out.
        some: At least one test passed.
        names: The test functions that the report names.
        rewards: The only numbers that they write; None where they are computed.
        shares: A reward is the share of tests that passed.
    """

    report: bool = False
    summary: bool = False
    bootstrap: bool = False
    traces: bool = False
    early: bool = False
    clean: bool = False
    whole: bool = False
    some: bool = False
    names: frozenset[str] = frozenset()
    rewards: frozenset[float] | None = None
    shares: bool = False


def promise_of(tests: Path) -> Promise:
    """Read a task's `tests/` folder for what a run of it must leave behind."""
    script = (tests / "test.sh").read_text("utf-8", "replace")
    commands = list(_commands(script))
    bootstrap = _INSTALLS.search("\n".join(commands)) is not None
    sources = {path: path.read_text("utf-8", "replace") for path in sorted(tests.rglob("*.py"))}
    calls = _Calls.of(commands)
    if calls is None:
        early = _may_end_early("\n".join(commands).partition("ctrf.json")[0])
        return replace(_of_own_report(script, sources), bootstrap=bootstrap, early=early)
    usual = not (
        _configured(tests) or _UNUSUAL.search(calls.arguments) or _OTHER_REPORTERS.search("\n".join(commands))
    )
    shown = usual and not calls.aside and not _SILENT.search(calls.arguments)
    promise = Promise(traces=shown)
    if calls.decide and not any(
        _speaks_of_reward(path) for path in tests.rglob("*") if path != tests / "test.sh"
    ):
        promise = _of_calls(calls, sources, usual, shown)
    return replace(promise, bootstrap=bootstrap, early=_may_end_early(calls.before))


def _may_end_early(before: str) -> bool:
    """Whether the commands before the tests may give a reward and end."""
    ends = re.search(r"\bexit\b|\bset -\w*e\w*\b.*(?:\[ |\btest )", before)
    return "reward" in before and ends is not None


def _commands(script: str) -> Iterator[str]:
    """The commands of a script, a line each, with single spaces and without comments."""
    for line in re.split(r"[\n;]", script.replace("\\\n", " ")):
        if (line := " ".join(line.split())) and not line.startswith("#"):
            yield line


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of pytest in a script.

    Attributes:
        arguments: Their arguments.
        reported: The arguments of the last that writes the report.
        before: The commands before the first.
        aside: The output of one, or of all commands, goes elsewhere than to the host.
        decide: Their exit codes are the only thing in the script that the reward depends on.
    """

    arguments: str
    reported: str
    before: str
    aside: bool
    decide: bool

    @classmethod
    def of(cls, commands: list[str]) -> "_Calls | None":
        calls = {n: call for n, line in enumerate(commands) if (call := _CALL.fullmatch(line))}
        if not calls:
            return None
        first, last = min(calls), max(calls)
        seen = [_TEE.sub("", call["arguments"]) for call in calls.values()]
        plain = [_ASIDE.sub("", arguments) for arguments in seen]
        before = " ".join(commands[:first])
        after = " ".join([(calls[last]["decision"] or "").strip(), *commands[last + 1 :]]).strip()
        decision = _DECISION.match(after)
        others = " ".join(line for n, line in enumerate(commands[:last]) if n not in calls)
        others = re.sub(_ZERO, "", others) + after[decision.end() if decision else 0 :]
        return cls(
            arguments=" ".join([*plain, ""]),
            reported=next((f"{each} " for each in reversed(plain) if _REPORT.search(each)), ""),
            before=before,
            aside=plain != seen or re.search(r"\bexec [^;]*>", before) is not None,
            decide=decision is not None
            and not _MEDDLES.search(others)
            and not any(call["decision"] for n, call in calls.items() if n != last)
            and not any(map(_REDIRECTS.search, plain)),
        )


def _configured(tests: Path) -> bool:
    """Whether something configures pytest, which may select tests and change what it prints and how it exits."""
    files = (tests / "test.sh", tests.parent / "environment" / "Dockerfile")
    if any(path.is_file() and b"PYTEST_" in path.read_bytes() for path in files):
        return True
    return any(path.name in _CONFIGURE for path in tests.rglob("*"))


def _speaks_of_reward(path: Path) -> bool:
    return path.is_file() and re.search(rb"reward\.(?:txt|json)", path.read_bytes()) is not None


def _of_calls(calls: _Calls, sources: Mapping[Path, str], usual: bool, shown: bool) -> Promise:
    """What calls of pytest promise that alone decide. *usual*: nothing changes what they do. *shown*: the host sees it."""
    names, tests = (
        frozenset(
            name for path, text in sources.items() if _names_file(where, path) for name in _test_names(text)
        )
        for where in (calls.reported, calls.arguments)
    )
    report = usual and bool(calls.reported)
    whole = usual and not _SELECTS.search(calls.arguments)
    may_skip = any(_SKIPS.search(text) or _may_be_empty(text) for text in sources.values())
    return Promise(
        report=report,
        summary=shown,
        traces=report or shown,
        clean=usual,
        whole=whole,
        some=usual and bool(tests) and not may_skip,
        names=names if whole else frozenset(),
        rewards=frozenset({0.0, 1.0}),
    )


def _names_file(arguments: str, path: Path) -> bool:
    return re.search(rf"[ /]{re.escape(path.name)}[\"']? ", arguments) is not None


def _may_be_empty(source: str) -> bool:
    """Whether a test may run for no parameters at all, which is a skipped test: they are no list and no range of numbers."""
    for values in _PARAMETERS.findall(source):
        constant = re.search(rf"^{re.escape(values)} = (.*)", source, re.MULTILINE)
        if not _FILLED.match(constant[1] if constant else values):
            return True
    return False


def _of_own_report(script: str, sources: Mapping[Path, str]) -> Promise:
    """What is promised by tests that write a report themselves, whatever happens: in the script, or in the program it runs."""
    lines = script.replace("\\\n", " ").splitlines()
    code = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    before_exits = code[: max(code.rfind("exit"), code.rfind("return"), 0)]
    if re.search(r"^[^ ].*ctrf\.json", code, re.MULTILINE) and not re.search(_ONE, before_exits):
        literal = re.search(_ONE, code) and "reward" not in re.sub(f"{_ONE}|{_ZERO}", "", code)
        rewards = frozenset({0.0, 1.0}) if literal else None
        return Promise(report=True, traces=True, clean=not _WEIGHS.search(code), rewards=rewards)
    called = (
        text for path, text in sources.items() if re.search(rf"python\S* .*/{re.escape(path.name)}\b", code)
    )
    return Promise() if "reward" in code else _of_program("\n".join(called))


def _of_program(source: str) -> Promise:
    """What a Python program promises by the statements that run whatever happens."""
    if re.search(r"\bexit\(", source):
        return Promise()
    always = "\n".join(_always(source))
    report = "ctrf.json" in always
    summary = re.search(r"print\(.*={3,}.*passed.*={3,}", always) is not None
    clean = not _WEIGHS.search(source)
    shares = clean and report and summary and _SHARES.search(source) is not None
    return Promise(report, summary, traces=report or summary, clean=clean, shares=shares)


def _always(source: str) -> Iterator[str]:
    """The statements of a module and of its functions that are in no loop and depend on no condition."""
    for body in _bodies(source):
        for node in body:
            if not isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.Match | ast.FunctionDef):
                yield ast.unparse(node)


def _bodies(source: str) -> list[list[ast.stmt]]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes, which are the author's affair
            module = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [module.body, *(node.body for node in module.body if isinstance(node, ast.FunctionDef))]


def _test_names(source: str) -> set[str]:
    """The test functions at the top of a module; decorators other than pytest's marks may make something else of them."""
    body = [node for each in _bodies(source)[:1] for node in each]
    functions = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = (node for each in body for node in ast.walk(each) if isinstance(node, ast.Name))
    others = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    return {
        node.name
        for node in functions
        if node.name.startswith("test_")
        and node.name not in others
        and all(ast.unparse(decorator).startswith("pytest.mark.") for decorator in node.decorator_list)
    }
