"""Every way through a `test.sh`: what has run, and which reward is written, where the script ends.

The script is not run. Its commands are followed with what is known of them: a call of pytest can end well, end badly
or not start; a program that is not known can end in any way; an installation succeeds. What is then true of every way
that ends with a reward is certain.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath
from typing import TypeAlias

from hermes_envs.harbor.expansion import NUMBER, UNKNOWN, Lookup, changed_names, expand, tested
from hermes_envs.harbor.pytest_call import PytestCall
from hermes_envs.harbor.report import parse_summary
from hermes_envs.harbor.shell import (
    Background,
    Block,
    Case,
    Chain,
    Function,
    If,
    Loop,
    Node,
    Not,
    Pipe,
    Redirect,
    Simple,
    Unreadable,
)

ANY = float("inf")
"""A reward that a program computes."""
PASSED, FAILED, NOT_STARTED = 0, 1, 127
"""How a call of pytest can end."""
_MAX_WAYS = 3000
_MAX_DEPTH = 40

_INSTALLERS = re.compile(
    r"apt(?:-get|-key)?|apk|dnf|yum|curl|wget|pip[\d.]*|uv|npm|conda|git|gpg|update-\w+|tar|unzip"
)
_SETTLED = frozenset(
    ("echo", "printf", "mkdir", "rm", "sleep", "date", "true", ":", "shopt", "umask", "ulimit", "touch")
)
_READERS = frozenset(
    ("cat", "ls", "chmod", "chown", "mkdir", "[", "[[", "test", "grep", "touch", "head", "tail", "wc")
)
_DECLARES = frozenset(("export", "local", "declare", "readonly", "typeset"))
_SETS = frozenset(("read", "mapfile", "readarray", "getopts", "unset", "let"))
_MISSING = frozenset(("rm", "unlink"))
_FILES = frozenset(
    ("cp", "mv", "ln", "diff", "cmp", "sed", "cd", "find", "install", "rsync", "cat", "source", ".")
)
_ASSIGNS = re.compile(r"(\w+)(\+?=|\[[^]]*\]=)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trace:
    """Something that a command leaves behind of its tests.

    Attributes:
        key: Which command of the script.
        call: What is known of it, where it is pytest.
        status: How that ended.
        report: It wrote the CTRF report.
        prints: The host saw its summary; None where that is not known.
    """

    key: int
    call: PytestCall | None = None
    status: int = PASSED
    report: bool = False
    prints: bool | None = False


@dataclass(frozen=True, slots=True)
class State:
    """Where one way has come to.

    Attributes:
        variables: What is known of the shell's variables.
        status: `$?`; None where only a run can tell.
        first: The status of a pipeline's first command.
        reward: What the verdict file holds; None where there is none.
        traces: What the tests have left, in order.
        cwd: The working folder.
        options: `errexit`, `pipefail`, and `hidden` where the script has sent its own output elsewhere.
        ended: By which word the way is at its end: exit, return, break, continue.
    """

    variables: tuple[tuple[str, str], ...] = ()
    status: int | None = 0
    first: int | None = 0
    reward: float | None = None
    traces: tuple[Trace, ...] = ()
    cwd: str = UNKNOWN
    options: frozenset[str] = frozenset()
    ended: str = ""

    def value(self, name: str) -> str | None:
        """What a variable holds, where that is known."""
        return next((value for key, value in self.variables if key == name), None)

    def assign(self, name: str, value: str) -> "State":
        """The state in which a variable holds something."""
        others = [(key, held) for key, held in self.variables if key != name]
        return replace(self, variables=tuple(sorted([*others, (name, value)])))


Ways: TypeAlias = list[State]
Step: TypeAlias = Callable[[State], Ways]


@dataclass
class Walker:
    """Follows a script.

    Attributes:
        pytest: Tells what is known of a command as a call of pytest.
        judge: Tells what a program of the task's own certainly leaves: a report, a summary. None: it is no such program.
        writers: Files of the task's other than `test.sh` speak of the reward.
        outside: Variables that may be set from outside.
    """

    pytest: Callable[[Sequence[str], str], PytestCall | None]
    judge: Callable[[str], tuple[bool, bool] | None]
    writers: bool
    outside: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.functions: dict[str, Node] = {}
        self.keys: dict[int, int] = {}
        self.depth = 0

    def walk(self, script: Block, options: Iterable[str] = ()) -> Ways:
        """The states in which a script can end.

        Raises:
            Unreadable: It does what is not known here.
        """
        start = State(variables=(("TASK_ROOT", ""),), options=frozenset(options))
        return self.run(script, start)

    def run(self, node: Node, state: State, *, checked: bool = False, seen: bool = True) -> Ways:
        """The states after a node. *checked*: its failure does not end the script. *seen*: the host sees its output."""
        if state.ended:
            return [state]
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Unreadable("too deep")
        try:
            return self._run(node, state, checked, seen)
        finally:
            self.depth -= 1

    def _run(self, node: Node, state: State, checked: bool, seen: bool) -> Ways:
        seen = seen and "hidden" not in state.options
        again = partial(self.run, seen=seen)
        match node:
            case Simple():
                return self._checked(self._simple(node, state, checked, seen), checked)
            case Block():
                return self._block(node, state, checked, seen)
            case Not():
                return [replace(s, status=_inverted(s.status)) for s in again(node.node, state, checked=True)]
            case Chain():
                ways = again(node.left, state, checked=True)
                on = partial(again, node.right, checked=checked)
                return _each(
                    ways, lambda s: _fork(s, *((on, _stay) if node.operator == "&&" else (_stay, on)))
                )
            case If():
                ways = again(node.condition, state, checked=True)
                then = partial(again, node.then, checked=checked)
                otherwise = (
                    partial(again, node.otherwise, checked=checked) if node.otherwise.steps else _harmless
                )
                return _each(ways, lambda s: _fork(s, then, otherwise))
            case Pipe():
                return self._checked(self._pipe(node, state, seen), checked)
            case Loop():
                return self._loop(node, state, checked, seen)
            case Case():
                return self._case(node, state, checked, seen)
            case Background():
                text = repr(node.node)
                if any(word in text for word in ("pytest", "reward", "ctrf", *self.functions)):
                    raise Unreadable("tests in the background")
                return [replace(state, status=0)]
            case Function():
                self.functions[node.name] = node.body
                return [replace(state, status=0)]

    def _block(self, node: Block, state: State, checked: bool, seen: bool) -> Ways:
        seen = seen and not any(redirect.takes_output for redirect in node.redirects)
        if any("reward" in redirect.target for redirect in node.redirects):
            raise Unreadable("a block that writes the reward")
        ways = [state]
        for step in node.steps:
            ways = _each(ways, partial(self.run, step, checked=checked, seen=seen))
        if not node.subshell:
            return ways
        outside = [
            replace(s, variables=state.variables, cwd=state.cwd, options=state.options, ended="")
            for s in ways
        ]
        return self._checked(outside, checked)

    def _loop(self, node: Loop, state: State, checked: bool, seen: bool) -> Ways:
        found, ways = [state], [state]
        for again in (False, True):
            ways = [
                _after_turn(before, after, again)
                for before in ways
                for after in self.run(node.body, before, checked=checked, seen=seen)
            ]
            found = _distinct([*found, *ways])
        return found

    def _case(self, node: Case, state: State, checked: bool, seen: bool) -> Ways:
        word = expand(node.word, self._lookup(state))
        found: Ways = []
        for patterns, body in node.branches:
            known = [expand(each, self._lookup(state)) for each in patterns]
            certain = UNKNOWN not in word + "".join(known)
            matches = any(fnmatchcase(word, each) for each in known)
            if matches or not certain:
                found += self.run(body, state, checked=checked, seen=seen)
            if (matches and certain) or "*" in patterns:
                return found
        return [*found, replace(state, status=0)]

    def _pipe(self, node: Pipe, state: State, seen: bool) -> Ways:
        first, *others = node.parts
        copies = [_copied_to(part) for part in others]
        passes_on = None not in copies
        if passes_on and isinstance(first, Simple):  # what `tee` writes too is as if written on the way
            copied = tuple(Redirect("2>", target) for each in copies for target in each or ())
            first = replace(first, redirects=(*first.redirects, *copied))
        ways = self.run(first, state, checked=True, seen=seen and passes_on)
        ways = [replace(s, first=s.status) for s in ways]
        for part in () if passes_on else others:
            ways = _each(
                ways,
                lambda s, part=part: self.run(
                    part, replace(s, ended=""), checked=True, seen=seen and part is others[-1]
                ),
            )
        installs = isinstance(first, Simple) and bool(first.words) and _INSTALLERS.fullmatch(first.words[0])
        return _distinct([self._after_pipe(s, state, passes_on, bool(installs)) for s in ways])

    @staticmethod
    def _after_pipe(after: State, before: State, passes_on: bool, installs: bool) -> State:
        status = 0 if passes_on or installs else after.status
        if "pipefail" in before.options:
            status = after.first if passes_on or installs else None
        outside = replace(before, reward=after.reward, traces=after.traces)
        return replace(outside, first=after.first, status=status)

    def _checked(self, ways: Ways, checked: bool) -> Ways:
        """What `set -e` makes of a command that failed."""
        found: Ways = []
        for state in ways:
            fails = "errexit" in state.options and not checked and not state.ended and state.status != 0
            if fails:
                found.append(replace(state, status=1, ended="exit"))
            if not fails or state.status is None:
                found.append(replace(state, status=0) if fails else state)
        return found

    def _simple(self, node: Simple, state: State, checked: bool, seen: bool) -> Ways:
        words = list(node.words)
        values: list[tuple[str, str]] = []
        assigned = 0
        for word in words:
            if not (found := _ASSIGNS.fullmatch(word)):
                break
            assigned += 1
            value = expand(found[3], self._lookup(state)) if found[2] == "=" else UNKNOWN
            values.append((found[1], value))
        if assigned == len(words):
            for variable, value in values:
                state = state.assign(variable, value)
            if any("reward" in expand(each.target, self._lookup(state)).lower() for each in node.redirects):
                state = replace(state, reward=None)
            runs = any(re.search(r"\$\((?!\()|`", word) for word in words)
            return [replace(state, status=None if runs else 0)]
        expanded = [expand(word, self._lookup(state)) for word in words[assigned:]]
        return self._command(node, expanded, words[assigned:], state, checked, seen)

    def _command(
        self, node: Simple, words: list[str], raw: Sequence[str], state: State, checked: bool, seen: bool
    ) -> Ways:
        name = PurePosixPath(words[0]).name or words[0]
        if (after := self._builtin(name, words, raw, state)) is not None:
            return [after]
        if name == "exec":
            if len(words) == 1:
                hidden = {"hidden"} if _hides(node) else set[str]()
                return [replace(state, options=state.options | hidden, status=0)]
            ways = self._command(node, words[1:], raw[1:], state, checked, seen)
            return [replace(s, ended=s.ended or "exit") for s in ways]
        if name in self.functions:
            ways = self.run(self.functions[name], state, checked=checked, seen=seen and not _hides(node))
            return [replace(s, ended="" if s.ended == "return" else s.ended) for s in ways]
        if call := self.pytest(words, state.cwd):
            return self._tests(node, call, words, state, seen)
        return [self._other(node, words, name, state, seen)]

    def _builtin(self, name: str, words: list[str], raw: Sequence[str], state: State) -> State | None:
        """The state after a command of the shell's own; None for another command."""
        if name in ("exit", "return", "break", "continue"):
            status = int(words[1]) if len(words) > 1 and words[1].isdecimal() else state.status
            return replace(state, status=status, ended=name)
        if name == "set":
            return _set(state, words[1:])
        if name in _DECLARES:
            for found in filter(None, map(_ASSIGNS.fullmatch, raw[1:])):
                state = state.assign(found[1], expand(found[3], self._lookup(state)))
            return replace(state, status=0)
        if name in _SETS or (name == "printf" and "-v" in words):
            return _forgets(state, filter(str.isidentifier, words[1:]))
        if name == "cd":
            known = len(words) == 2 and not words[1].startswith("-")
            cwd = str(PurePosixPath(state.cwd, words[1])) if known else UNKNOWN
            return replace(state, status=0, cwd=cwd)
        if words[0].startswith("((") and (changed := changed_names(words[0])):
            return _forgets(state, changed)
        if name in ("[", "[[", "test") or words[0].startswith("(("):
            truth = tested(words, self._lookup(state))
            return replace(state, status=None if truth is None else int(not truth))
        if name in ("eval", "trap") or (name in ("source", ".") and words[-1].startswith("/tests")):
            text = " ".join(words) + "".join(repr(self.functions[w]) for w in words if w in self.functions)
            if name != "trap" or any(word in text for word in ("reward", "pytest", "exit", "ctrf")):
                raise Unreadable(name)
            return replace(state, status=0)
        return None

    def _lookup(self, state: State) -> Lookup:
        """Tells what variables hold."""
        statuses = {"?": state.status, "PIPESTATUS": state.first, "PIPESTATUS[0]": state.first}

        def held(name: str) -> str | None:
            if name in statuses:
                return UNKNOWN if statuses[name] is None else str(statuses[name])
            value = state.value(name)
            return UNKNOWN if value is None and name in self.outside else value

        return held

    def _tests(self, node: Simple, call: PytestCall, words: Sequence[str], state: State, seen: bool) -> Ways:
        prints = call.prints if seen and not _hides(node) else False
        reward = self._after_program(node, words, state)
        traces = (
            Trace(self._key(node), call, PASSED, call.report, prints),
            Trace(self._key(node), call, FAILED, call.report, prints),
            Trace(self._key(node), call, NOT_STARTED),
        )
        return [
            replace(state, status=each.status, reward=reward, traces=(*state.traces, each)) for each in traces
        ]

    def _other(self, node: Simple, words: list[str], name: str, state: State, seen: bool) -> State:
        targets = [(each, expand(each.target, self._lookup(state))) for each in node.redirects]
        written = next(
            (path for each, path in targets if _writes(each) and "reward" in (path + each.target).lower()),
            None,
        )
        text = " ".join(words[1:])
        prints = name in ("echo", "printf") and seen and not _hides(node)
        traces = state.traces
        if prints and parse_summary(text.replace(UNKNOWN, "1").encode().replace(b"\\n", b"\n")):
            traces = (*traces, Trace(self._key(node), prints=True))
        reports = any(_writes(each) and path.endswith("/logs/verifier/ctrf.json") for each, path in targets)
        if reports and name in ("echo", "printf", "cat"):
            traces = (*traces, Trace(self._key(node), report=True))
        judged = next((found for word in words if (found := self.judge(word)) is not None), None)
        if judged and any(judged):
            shows = judged[1] and seen and not _hides(node)
            traces = (*traces, Trace(self._key(node), report=judged[0], prints=shows))
        settled = name in _SETTLED or bool(_INSTALLERS.fullmatch(name)) or name in ("source", ".")
        state = replace(state, status=0 if settled else None, traces=traces)
        if written is not None:
            return replace(
                state, reward=ANY if written.endswith(".json") else _written(node, name, words[1:])
            )
        if name in _MISSING and "reward" in text:
            return replace(state, reward=None)
        return replace(state, reward=self._after_program(node, words, state))

    def _after_program(self, node: Simple, words: Sequence[str], state: State) -> float | None:
        """The reward after a program that may have written one."""
        name = PurePosixPath(words[0]).name
        bodies = "".join(each.body for each in node.redirects)
        speaks = "reward" in " ".join((*words, *node.words, bodies)) and name not in _READERS | _SETTLED
        in_tests = any("/tests" in word for word in words) or state.cwd.startswith("/tests")
        runs = self.writers and in_tests and name not in _READERS | _FILES | _SETTLED
        return ANY if speaks or runs else state.reward

    def _key(self, node: Simple) -> int:
        return self.keys.setdefault(id(node), len(self.keys))


def _forgets(state: State, names: Iterable[str]) -> State:
    """The state in which variables may hold anything."""
    for name in names:
        state = state.assign(name, UNKNOWN)
    return replace(state, status=None)


def _after_turn(before: State, after: State, again: bool) -> State:
    """The state after a turn of a loop. A variable that the second turn changes may hold anything after more of them."""
    if after.ended not in ("", "break", "continue"):
        return after
    changed = [name for name, value in after.variables if before.value(name) != value]
    return replace(_forgets(after, changed if again else ()), ended="")


def _each(ways: Ways, step: Step) -> Ways:
    return _distinct([after for state in ways for after in step(state)])


def _distinct(ways: Ways) -> Ways:
    found = list(dict.fromkeys(ways))
    if len(found) > _MAX_WAYS:
        raise Unreadable("too many ways")
    return found


def _stay(state: State) -> Ways:
    return [state]


def _harmless(state: State) -> Ways:
    """After an `if` without `else` whose condition was false."""
    return [replace(state, status=0)]


def _fork(state: State, well: Step, badly: Step) -> Ways:
    """What follows from a status that decides."""
    if state.ended:
        return [state]
    found: Ways = []
    if state.status in (0, None):
        found += well(replace(state, status=0))
    if state.status != 0:
        found += badly(replace(state, status=state.status or 1))
    return found


def _inverted(status: int | None) -> int | None:
    return None if status is None else int(not status)


def _set(state: State, words: Sequence[str]) -> State:
    options = set(state.options)
    for index, word in enumerate(words):
        change = options.add if word.startswith("-") else options.discard
        if re.fullmatch(r"[-+][a-zA-Z]*e[a-zA-Z]*", word):
            change("errexit")
        if re.fullmatch(r"[-+][a-zA-Z]*o", word) and words[index + 1 : index + 2]:
            change(words[index + 1])
    return replace(state, options=frozenset(options), status=0)


def _hides(node: Simple) -> bool:
    return any(each.takes_output for each in node.redirects)


def _writes(redirect: Redirect) -> bool:
    return ">" in redirect.operator and not redirect.target.isdecimal()


def _written(node: Simple, name: str, words: Sequence[str]) -> float | None:
    """What a command writes into a file to which its output goes."""
    if any(each.operator.endswith(">>") for each in node.redirects):
        return ANY
    if name in (":", "true", "touch"):
        return None
    if name in ("echo", "printf"):
        return _number(words)
    body = next((each.body for each in node.redirects if each.body), "")
    return float(body) if name == "cat" and not words and NUMBER.fullmatch(body) else ANY


def _number(words: Sequence[str]) -> float:
    """The number that an `echo` or a `printf` writes."""
    text = [word for word in words if word not in ("-n", "-e", "%s", "%s\\n", "%d\\n", "%d")]
    cleaned = "".join(text).replace("\\n", "").removesuffix("n") if len(text) == 1 else ""
    return float(cleaned) if NUMBER.fullmatch(cleaned) else ANY


def _copied_to(part: Node) -> list[str] | None:
    """The files that a `tee` writes besides passing everything on; None for another program."""
    if not isinstance(part, Simple) or not part.words or part.words[0] != "tee" or part.redirects:
        return None
    return [word for word in part.words[1:] if not word.startswith("-")]
