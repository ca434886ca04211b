"""The part of bash that `test.sh` scripts are written in: a script as a tree of commands."""

import re
from dataclasses import dataclass, replace
from typing import TypeAlias


class Unreadable(Exception):
    """A script uses what is not known here; nothing can be said about it."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection: its operator with the descriptor, its target, and the lines of a here-document."""

    operator: str
    target: str
    body: str = ""

    @property
    def takes_output(self) -> bool:
        """Whether what the command prints goes elsewhere."""
        return self.operator in (">", ">>", ">|", "1>", "1>>", "&>", "&>>") or (
            self.operator in (">&", "1>&") and not self.target.isdecimal()
        )


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words as they are written, quotes and all."""

    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Commands in a row, and whether they run in a shell of their own. A `(…)` or `{…}` may be redirected."""

    steps: tuple["Node", ...]
    subshell: bool = False
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands of a pipeline."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A pipeline after `!`."""

    node: "Node"


@dataclass(frozen=True, slots=True)
class Chain:
    """Two commands joined by `&&` or `||`."""

    left: "Node"
    operator: str
    right: "Node"


@dataclass(frozen=True, slots=True)
class Background:
    """A command that is not waited for."""

    node: "Node"


@dataclass(frozen=True, slots=True)
class If:
    """A condition, and what follows from it."""

    condition: "Node"
    then: "Node"
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Loop:
    """What may run any number of times."""

    body: "Node"


@dataclass(frozen=True, slots=True)
class Case:
    """A word, and what follows where it matches one of several patterns."""

    word: str
    branches: tuple[tuple[tuple[str, ...], "Node"], ...]


@dataclass(frozen=True, slots=True)
class Function:
    """The definition of a function."""

    name: str
    body: "Node"


Node: TypeAlias = Simple | Block | Pipe | Not | Chain | Background | If | Loop | Case | Function

_OPERATOR = re.compile(
    r"\n|;;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||\(|\)|[0-9]*(?:<<<|<<-|<<|<&|<>|<|>>|>&|>\||>)"
)
_ARITHMETIC = re.compile(r"\(\((?!\().*?\)\)(?=\s|[;&|)]|$)")
_REDIRECT = re.compile(r"[0-9]*[<>].*|&>>?")
_NAME = re.compile(r"[\w.-]+")
_MAX = 200_000


def parse(script: str) -> Block:
    """A script as a tree.

    Raises:
        Unreadable: It is no bash, or more of it than is known here.
    """
    if len(script) > _MAX:
        raise Unreadable("too long")
    try:
        parser = _Parser(_tokens(script))
        tree = parser.block()
    except RecursionError:
        raise Unreadable("too deep") from None
    if parser.peek is not None:
        raise Unreadable(f"unexpected {parser.peek.text!r}")
    return tree


def closing(text: str, start: int) -> int:
    """Where the `$(…)`, `${…}`, backticks or quotes end that begin at `start`: the index after them."""
    opened = text[start]
    if opened == "'":
        end = text.find("'", start + 1)
    elif opened == "`":
        end = text.find("`", start + 1)
    else:
        stop = {'"': '"', "(": ")", "{": "}"}[opened if opened == '"' else text[start + 1]]
        end = _matching(text, start + (1 if opened == '"' else 2), stop)
    if end < 0:
        raise Unreadable("an open quote")
    return end + 1


def _matching(text: str, at: int, stop: str) -> int:
    while at < len(text):
        char = text[at]
        if char == stop:
            return at
        if char == "\\":
            at += 2
        elif (
            char == "`"
            or (char == "$" and text[at + 1 : at + 2] in ("(", "{"))
            or (stop != '"' and char in "'\"")
        ):
            at = closing(text, at)
        elif stop == ")" and char == "(":
            at = _matching(text, at + 1, ")") + 1
            if not at:
                return -1
        else:
            at += 1
    return -1


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    operator: bool
    body: str = ""


def _tokens(script: str) -> list[_Token]:
    found: list[_Token] = []
    pending: list[tuple[int, str, bool]] = []
    at = 0
    while at < len(script):
        char = script[at]
        if char in " \t\r":
            at += 1
        elif script.startswith("\\\n", at):
            at += 2
        elif char == "#":
            at = (script.find("\n", at) + 1 or len(script) + 1) - 1
        elif script.startswith("((", at) and (sum_ := _ARITHMETIC.match(script, at)):
            found.append(_Token(sum_[0], operator=False))
            at = sum_.end()
        elif operator := _OPERATOR.match(script, at):
            found.append(_Token(operator[0], operator=True))
            at = operator.end()
            if operator[0] == "\n" and pending:
                at = _here_documents(script, at, found, pending)
        else:
            end = _word(script, at)
            before = found[-1] if found else None
            if before and before.operator and before.text.lstrip("0123456789") in ("<<", "<<-"):
                pending.append((len(found), script[at:end], before.text.endswith("-")))
            found.append(_Token(script[at:end], operator=False))
            at = end
    return found


def _word(script: str, at: int) -> int:
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 2
        elif char in "'\"`" or (char == "$" and script[at + 1 : at + 2] in ("(", "{")):
            at = closing(script, at)
        elif char in " \t\r\n;&|<>()":
            break
        else:
            at += 1
    return at


def _here_documents(script: str, at: int, found: list[_Token], pending: list[tuple[int, str, bool]]) -> int:
    for index, mark, dashed in pending:
        delimiter = re.sub(r"[\\'\"]", "", mark)
        lines: list[str] = []
        while at < len(script):
            line, _, _ = script[at:].partition("\n")
            at += len(line) + 1
            if (line.lstrip("\t") if dashed else line) == delimiter:
                break
            lines.append(line)
        found[index] = replace(found[index], body="\n".join(lines))
    pending.clear()
    return at


_ENDS = ("then", "else", "elif", "fi", "do", "done", "esac", "}")


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def peek(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def at_end(self) -> bool:
        return self.peek is None

    def sees(self, *texts: str) -> bool:
        return (token := self.peek) is not None and token.text in texts

    def take(self, *texts: str) -> _Token:
        token = self.peek
        if token is None or (texts and token.text not in texts):
            raise Unreadable(f"expected {texts}, found {token and token.text!r}")
        self.at += 1
        return token

    def skip(self, *texts: str) -> None:
        while self.sees(*texts):
            self.at += 1

    def block(self) -> Block:
        steps: list[Node] = []
        self.skip("\n", ";")
        while not self.at_end() and not self.sees(*_ENDS, ")", ";;", ";&", ";;&"):
            node = self.chain()
            if self.sees("&"):
                node = Background(node)
                self.take()
            elif not self.at_end() and not self.sees("\n", ";", ")", ";;", ";&", ";;&"):
                raise Unreadable("something after a command")
            steps.append(node)
            self.skip("\n", ";")
        return Block(tuple(steps))

    def chain(self) -> Node:
        node = self.pipe()
        while self.sees("&&", "||"):
            operator = self.take().text
            self.skip("\n")
            node = Chain(node, operator, self.pipe())
        return node

    def pipe(self) -> Node:
        if self.sees("!"):
            self.take()
            return Not(self.pipe())
        if self.sees("time"):
            self.take()
        parts = [self.command()]
        while self.sees("|", "|&"):
            self.take()
            self.skip("\n")
            parts.append(self.command())
        return parts[0] if len(parts) == 1 else Pipe(tuple(parts))

    def command(self) -> Node:
        if self.sees("if"):
            self.take()
            return self.closed(self.branch())
        if self.sees("while", "until", "for", "select"):
            return self.closed(self.loop())
        if self.sees("case"):
            return self.closed(self.case())
        if self.sees("{", "("):
            return self.group()
        if self.sees("function"):
            self.take()
            return self.function(self.take().text)
        following = self.tokens[self.at + 1 : self.at + 3]
        if [token.text for token in following] == ["(", ")"] and _NAME.fullmatch(self.tokens[self.at].text):
            return self.function(self.take().text)
        return self.simple()

    def closed(self, node: Node) -> Node:
        redirects = self.redirects()
        return Block((node,), redirects=redirects) if redirects else node

    def branch(self) -> If:
        condition = self.block()
        self.take("then")
        then = self.block()
        if self.sees("elif"):
            self.take()
            return If(condition, then, Block((self.branch(),)))
        otherwise = Block(())
        if self.sees("else"):
            self.take()
            otherwise = self.block()
        self.take("fi")
        return If(condition, then, otherwise)

    def loop(self) -> Loop:
        kind = self.take().text
        if kind in ("while", "until"):
            head: Node = self.block()
            head = Not(head) if kind == "until" else head
        else:
            head = Simple((f"{self.take().text}=$(each)",))
            while not self.sees("do"):
                self.take()
        self.take("do")
        body = self.block()
        self.take("done")
        return Loop(If(head, body, Block(())))

    def case(self) -> Case:
        self.take("case")
        word = self.take().text
        self.skip("\n")
        self.take("in")
        branches: list[tuple[tuple[str, ...], Node]] = []
        self.skip("\n", ";")
        while not self.sees("esac"):
            patterns: list[str] = []
            while not self.sees(")"):
                patterns.append(self.take().text)
            self.take(")")
            branches.append((tuple(each for each in patterns if each not in ("|", "(")), self.block()))
            if self.sees(";&", ";;&"):
                raise Unreadable("a case that goes on")
            self.skip(";;", "\n")
        self.take("esac")
        return Case(word, tuple(branches))

    def group(self) -> Block:
        subshell = self.take().text == "("
        inner = self.block()
        self.take(")" if subshell else "}")
        return Block(inner.steps, subshell, self.redirects())

    def function(self, name: str) -> Function:
        if self.sees("("):
            self.take("(")
            self.take(")")
        self.skip("\n")
        return Function(name, self.command())

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while (token := self.peek) is not None and token.operator and _REDIRECT.fullmatch(token.text):
            found.append(self.redirect())
        return tuple(found)

    def redirect(self) -> Redirect:
        operator = self.take().text
        if self.sees("("):
            raise Unreadable("a process substitution")
        target = self.take()
        if target.operator:
            raise Unreadable(f"a redirection to {target.text!r}")
        return Redirect(operator, target.text, target.body)

    def simple(self) -> Simple:
        words: list[str] = []
        redirects: list[Redirect] = []
        while (token := self.peek) is not None:
            if not token.operator:
                words.append(self.take().text)
            elif token.text == "(" and words and words[-1].endswith("="):
                words[-1] += self.array()
            elif _REDIRECT.fullmatch(token.text):
                redirects.append(self.redirect())
            else:
                break
        if not words and not redirects:
            raise Unreadable(f"unexpected {token.text if token else 'end'!r}")
        if words and words[0] == "[[":
            self.conditional(words)
        return Simple(tuple(words), tuple(redirects))

    def array(self) -> str:
        self.take("(")
        text = "("
        while not self.sees(")"):
            text += f" {self.take().text}"
        self.take(")")
        return text + " )"

    def conditional(self, words: list[str]) -> None:
        """The rest of a `[[ … ]]`, in which `&&`, `<` and parentheses are no operators of the shell's."""
        while words[-1] != "]]":
            words.append(self.take().text)
