"""What is known of a call of pytest from its command line and from the tests that it names."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath

from hermes_envs.harbor.expansion import NAME, UNKNOWN

_PYTEST = re.compile(r"(?:.*/)?(?:pytest|py\.test)(?:@\S+)?")
_NOT_RUN = frozenset(
    ("install", "add", "sync", "remove", "uninstall", "download", "which", "type", "command", "hash", "echo")
) | frozenset(("printf", "import", "pkill", "pgrep", "grep", "rm", "cat", "ls"))
_TAKE_PACKAGE = frozenset(("-w", "--with", "--from", "-p", "--python", "--group", "--extra", "-C"))
_DRY = frozenset(("--co", "--collect-only", "--version", "-V", "--help", "-h", "--fixtures", "--markers"))
_SELECTS = frozenset(
    (
        *(
            "-k",
            "-m",
            "--deselect",
            "--ignore",
            "--ignore-glob",
            "--lf",
            "--last-failed",
            "--sw",
            "--stepwise",
        ),
        *("--stepwise-skip", "--sw-skip"),
    )
)
_NEUTRAL = frozenset(
    (
        *("--ctrf", "--tb", "--color", "--maxfail", "--exitfirst", "--verbose", "--capture", "--durations"),
        *("--durations-min", "--junitxml", "--junit-xml", "--no-header", "--no-summary", "--showlocals"),
        *("--disable-warnings", "--disable-pytest-warnings", "--import-mode", "--rootdir", "--basetemp"),
        *("--cache-clear", "--full-trace", "--strict", "--strict-markers", "--strict-config", "--noconftest"),
        *("--timeout", "--timeout-method", "--dist", "--numprocesses", "-n", "-W", "--pythonwarnings"),
        *("--show-capture", "--log-level", "--log-cli-level", "--log-file", "--ff", "--failed-first", "--nf"),
        *("--cov", "--cov-report", "--json-report", "--json-report-file", "--html", "--asyncio-mode"),
    )
)
_VALUED = frozenset(
    (
        *("-k", "-m", "-p", "-c", "-o", "-n", "-W", "--ctrf", "--tb", "--color", "--maxfail", "--capture"),
        *("--durations", "--durations-min", "--junitxml", "--junit-xml", "--import-mode", "--rootdir"),
        *("--basetemp", "--timeout", "--timeout-method", "--dist", "--numprocesses", "--pythonwarnings"),
        *("--show-capture", "--log-level", "--log-cli-level", "--log-file", "--cov-report", "--asyncio-mode"),
        *("--json-report-file", "--html", "--deselect", "--ignore", "--ignore-glob", "--override-ini"),
        *("--confcutdir", "--verbosity", "--config-file"),
    )
)
_SHORT = re.compile(r"-[vqslx]+")
_SKIPS = frozenset(
    ("skip", "skipif", "skipIf", "skipUnless", "skipTest", "SkipTest", "importorskip", "xfail")
)
_HOOKS = re.compile(r"\bdef pytest_|pytest_plugins|collect_ignore|exitstatus|setattr\(pytest")
_PROGRAMS = frozenset(
    (".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".go", ".rs", ".lua", ".awk")
)
_INHERITED = frozenset(
    ("HOME", "PATH", "PWD", "OLDPWD", "USER", "SHELL", "HOSTNAME", "LANG", "TERM", "RANDOM")
)
_CONFIGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_RERUNS = re.compile(r"--reruns|--retries|--force-flaky|rerunfailures|pytest-retry|\bflaky\b")
_OF_SUMMARY = re.compile(r"PYTEST_(?:ADDOPTS|PLUGINS)|pytest-(?:sugar|rich|pretty|spec|tap|testdox)")


@dataclass(frozen=True, slots=True)
class PytestCall:
    """A call of pytest.

    Attributes:
        report: It writes the CTRF report of the verdict.
        prints: It ends with a summary; None where that is not known.
        whole: Every test of what it names runs.
        some: At least one of them can only pass or fail.
        names: Test functions that it cannot but run.
        honest: It ends with 0 only where no test failed.
    """

    report: bool
    prints: bool | None
    whole: bool = False
    some: bool = False
    names: frozenset[str] = frozenset()
    honest: bool = True


class TestsFolder:
    """A task's `tests/`, and what else decides how pytest runs there."""

    __test__ = False

    def __init__(self, path: Path) -> None:
        self.path = path
        beside = (path.parent / "task.toml", path.parent / "environment" / "Dockerfile")
        around = "\n".join(file.read_text("utf-8", "replace") for file in beside if file.is_file())
        self.settings = around + (path / "test.sh").read_text("utf-8", "replace")
        self.outside = frozenset(NAME.findall(around)) | _INHERITED

    @cached_property
    def sources(self) -> dict[str, str]:
        """The Python files by their names in the folder."""
        return {
            file.relative_to(self.path).as_posix(): file.read_text("utf-8", "replace")
            for file in sorted(self.path.rglob("*.py"))
        }

    @cached_property
    def other_sources(self) -> tuple[str, ...]:
        """The programs that are not Python's, `test.sh` aside."""
        files = (file for file in sorted(self.path.rglob("*")) if file.suffix in _PROGRAMS and file.is_file())
        return tuple(file.read_text("utf-8", "replace") for file in files if file != self.path / "test.sh")

    @cached_property
    def hooked(self) -> bool:
        """Whether pytest is taught other manners here, by hooks or plugins of the tests' own."""
        return any(_HOOKS.search(text) for text in self.sources.values())

    @cached_property
    def hopeful(self) -> bool:
        """Whether a test that failed may be run again."""
        return bool(_RERUNS.search(self.settings)) or any(map(_RERUNS.search, self.sources.values()))

    @cached_property
    def configured(self) -> bool:
        """Whether options can come from elsewhere than the command line."""
        found = any(file.name in _CONFIGS for file in self.path.rglob("*"))
        return found or bool(_OF_SUMMARY.search(self.settings))

    def skips(self, name: str | None = None) -> bool:
        """Whether a file, or any file, may leave tests out while it runs; for a file, apart from its tests."""
        return any(
            _may_skip(node)
            for file, text in self.sources.items()
            if name in (None, file)
            for node in _rest(text)
        )


def call_of(words: Sequence[str], cwd: str, folder: TestsFolder) -> PytestCall | None:
    """What is known of a command whose words are expanded, or None where it runs no tests with pytest."""
    at = _start(words)
    if at is None:
        return None
    report, quiet, selects, strange = False, 0, False, False
    paths: list[str] = []
    rest = iter(words[at + 1 :])
    for word in rest:
        name, joined, value = word.partition("=")
        if not word.startswith("-"):
            paths.append(word)
            continue
        if name in _DRY:
            return None
        if not joined and name in _VALUED:
            value = next(rest, "")
        report = report or (name == "--ctrf" and str(PurePosixPath(cwd, value)) == "/logs/verifier/ctrf.json")
        selects = selects or name in _SELECTS
        if _SHORT.fullmatch(name):
            quiet += name.count("q") - name.count("v")
        elif name in ("--quiet", "--verbose"):
            quiet += 1 if name == "--quiet" else -1
        elif name == "-p":
            strange = strange or value not in ("no:cacheprovider", "no:warnings", "no:randomly")
        elif name not in _NEUTRAL | _SELECTS and not name.startswith(("-r", "-n", "-W")):
            strange = True
    honest = not (folder.hooked or folder.hopeful)
    files = [_inside(path, cwd, folder) for path in paths]
    settled = bool(files) and None not in files and not (strange or folder.configured or folder.hooked)
    if not settled:
        return PytestCall(report, None if quiet < 2 or strange else False, honest=honest)
    whole = not selects and not any("::" in path for path in paths)
    names = _names(files, folder) if whole else frozenset[str]()
    return PytestCall(report, quiet < 2, whole, whole and _runs_some(files, folder), names, honest)


def _start(words: Sequence[str]) -> int | None:
    """Where the name of the program stands, in all that may come before it: `uvx -w x`, `python -m`, `timeout 9`."""
    for index, word in enumerate(words):
        if word in _NOT_RUN:
            return None
        if _PYTEST.fullmatch(word) and (not index or words[index - 1] not in _TAKE_PACKAGE):
            return index
    return None


def _inside(path: str, cwd: str, folder: TestsFolder) -> str | None:
    """The name in the tests folder of what a command names; "." is the folder; None where it is not inside."""
    whole = PurePosixPath(cwd, path.partition("::")[0])
    if UNKNOWN in str(whole) or ".." in whole.parts or not whole.is_relative_to("/tests"):
        return None
    while any(char in str(whole) for char in "*?[{"):
        whole = whole.parent
    if not whole.is_relative_to("/tests"):
        return None
    name = whole.relative_to("/tests").as_posix()
    return name if (folder.path / name).exists() else None


def _names(files: Sequence[str | None], folder: TestsFolder) -> frozenset[str]:
    found: set[str] = set()
    for file in files:
        found |= {node.name for node in _functions(folder.sources.get(file or "", "")) if _is_plain(node)}
    return frozenset(found)


def _runs_some(files: Sequence[str | None], folder: TestsFolder) -> bool:
    for file in files:
        text = folder.sources.get(file or "")
        if text is None:  # a folder: whatever runs there
            if not folder.skips() and not any(map(_may_skip, chain(*map(_tests, folder.sources.values())))):
                return True
        elif folder.skips(file) or folder.skips("conftest.py"):
            continue
        elif any(not _may_skip(test) and not _may_be_empty(test, text) for test in _tests(text)):
            return True
    return False


@lru_cache(maxsize=32)
def module_body(source: str) -> list[ast.stmt]:
    """The statements of a Python module; none where it is no Python."""
    try:
        with warnings.catch_warnings():  # of a task's odd escapes, which are no business of this process
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions at the top of a module that pytest takes for tests by their names."""
    body = module_body(source)
    hidden = {
        name.id
        for node in body
        if isinstance(node, ast.Delete)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    if "__test__" in source or "allow_module_level" in source:
        return
    for node in body:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function and node.name.startswith("test") and node.name not in hidden:
            yield node


def _is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it stays what it looks like: marks change nothing, another decorator may make a fixture of it."""
    return all(ast.unparse(decorator).startswith("pytest.mark.") for decorator in node.decorator_list)


def _tests(source: str) -> Iterator[ast.stmt]:
    """The tests of a module: plain functions, and classes of tests."""
    yield from (node for node in _functions(source) if _is_plain(node))
    yield from (node for node in module_body(source) if _is_test_class(node))


def _is_test_class(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ClassDef) or not node.name.startswith("Test") or node.decorator_list:
        return False
    methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return "__init__" not in methods and any(method.startswith("test") for method in methods)


def _rest(source: str) -> Iterator[ast.stmt]:
    """What is no test in a module: imports, helpers, fixtures."""
    tests = set(_tests(source))
    yield from (node for node in module_body(source) if node not in tests)


def _may_skip(node: ast.AST) -> bool:
    names = (
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
    )
    return any(name in _SKIPS or name == "pytestmark" for name in names)


def _may_be_empty(node: ast.stmt, source: str) -> bool:
    """Whether it may run for no parameters at all, which is a skipped test."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(
            "parametrize" in ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)
        )
    lists = {
        target.id: each.value
        for each in module_body(source)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and "parametrize" in ast.unparse(call.func):
            values = call.args[1] if len(call.args) > 1 else None
            values = lists.get(values.id) if isinstance(values, ast.Name) else values
            if not (isinstance(values, ast.List | ast.Tuple) and values.elts) and not _is_range(values):
                return True
    return False


def _is_range(node: ast.expr | None) -> bool:
    """Whether it is a range, or a list of one, between numbers: nobody writes an empty one."""
    text = ast.unparse(node) if node else ""
    return bool(re.fullmatch(r"(?:list\()?range\([\d, ]+\)\)?|\[.* for \w+ in range\([\d, ]+\)\]", text))
