"""What a shell makes of words and tests, as far as that is known before it runs."""

import re
from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias

from hermes_envs.harbor.shell import Unreadable, closing

UNKNOWN = "\0"
"""Stands in a word for what only a run can tell."""
TEST_SH = "/tests/test.sh"
Lookup: TypeAlias = Callable[[str], str | None]
"""Tells what a variable holds; `UNKNOWN` where only a run can tell, None where the script has not set it."""

NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)\s*")
NAME = re.compile(r"[A-Za-z_]\w*")
_CHANGES = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%|&^]?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)")
_COMPARES = {
    **dict.fromkeys(("-eq", "=="), eq),
    **dict.fromkeys(("-ne", "!="), ne),
    **dict.fromkeys(("-gt", ">"), gt),
    **dict.fromkeys(("-ge", ">="), ge),
    **dict.fromkeys(("-lt", "<"), lt),
    **dict.fromkeys(("-le", "<="), le),
}
_COMPARISON = re.compile(r"\s*(\S+?)\s*(==|!=|<=|>=|<|>)\s*(\S+?)\s*")
_SUM = re.compile(r"\s*(\d+)\s*(\+|-|\*|\||\|\||&&)\s*(\d+)\s*")
_VARIABLE = re.compile(r"\$(\w+|\?)")
_DEFAULT = re.compile(r"(\w+):?[-=](.*)", re.DOTALL)


def expand(word: str, lookup: Lookup) -> str:
    """A word as a command gets it, with `UNKNOWN` for each part that only a run can tell."""
    found: list[str] = []
    at, quoted = 0, False
    while at < len(word):
        char = word[at]
        end = at + 1
        if char == '"':
            quoted = not quoted
        elif char == "'" and not quoted:
            end = closing(word, at)
            found.append(word[at + 1 : end - 1])
        elif char == "\\":
            end = at + 2
            escaped = word[at + 1 : end]
            found.append(escaped if escaped in '\\"$`' or not quoted else char + escaped)
        elif char == "`":
            end = closing(word, at)
            found.append(_substituted(expand(word[at + 1 : end - 1], lookup)))
        elif char == "$":
            value, end = _dollar(word, at, lookup)
            found.append(value)
        else:
            found.append(char)
        at = end
    return "".join(found)


def changed_names(expression: str) -> list[str]:
    """The variables to which an arithmetic expression gives other values."""
    return ["".join(either) for either in _CHANGES.findall(expression)]


def tested(words: Sequence[str], lookup: Lookup) -> bool | None:
    """What `[ … ]`, `[[ … ]]`, `test …` or `(( … ))` comes to; None where only a run can tell."""
    if words[0].startswith("(("):
        found = _COMPARISON.fullmatch(NAME.sub(lambda name: lookup(name[0]) or UNKNOWN, words[0][2:-2]))
        return _compared(*found.groups()) if found else None
    return _condition(list(words[1:]) if words[0] == "test" else list(words[1:-1]))


def _dollar(word: str, at: int, lookup: Lookup) -> tuple[str, int]:
    if word.startswith("$(", at):
        end = closing(word, at)
        inner = word[at + 2 : end - 1]
        if inner.startswith("(") and inner.endswith(")"):
            return _sum(expand(inner[1:-1], lookup), lookup), end
        return _substituted(expand(inner, lookup)), end
    if word.startswith("${", at):
        end = closing(word, at)
        return _variable(word[at + 2 : end - 1], lookup), end
    if found := _VARIABLE.match(word, at):
        return _variable(found[1], lookup), found.end()
    if at + 1 == len(word) or word[at + 1] in " \"'":
        return "$", at + 1
    return UNKNOWN, at + 2


def _variable(name: str, lookup: Lookup) -> str:
    if name in ("0", "BASH_SOURCE", "BASH_SOURCE[0]"):
        return TEST_SH
    if found := _DEFAULT.fullmatch(name):
        held = lookup(found[1])
        return held or expand(found[2], lookup)
    held = lookup(name)
    return UNKNOWN if held is None else held


def _substituted(command: str) -> str:
    """What a command substitution gives: only that of the script's own folder is known."""
    if re.search(rf"\bdirname (?:-- )?{re.escape(TEST_SH)}", command) and ".." not in command:
        return "/tests"
    moved = re.fullmatch(r"cd (/tests\S*) (?:&&|;) pwd(?: -P)?", command)
    return moved[1] if moved else UNKNOWN


def _sum(text: str, lookup: Lookup) -> str:
    """What an arithmetic expansion gives."""
    if changed_names(text):
        raise Unreadable("a variable that changes in an expression")
    text = NAME.sub(lambda name: lookup(name[0]) or UNKNOWN, text)
    if found := re.fullmatch(r"\s*!\s*(\d+)\s*", text):
        return str(int(not int(found[1])))
    if found := _SUM.fullmatch(text):
        left, right = int(found[1]), int(found[3])
        of = {"+": left + right, "-": left - right, "*": left * right, "|": left | right}
        either = bool(left or right) if found[2] == "||" else bool(left and right)
        return str(of.get(found[2], int(either)))
    return text.strip() if NUMBER.fullmatch(text) else UNKNOWN


def _condition(words: list[str]) -> bool | None:
    for decides, joins in ((True, ("||", "-o")), (False, ("&&", "-a"))):
        if (at := next((i for i, each in enumerate(words) if each in joins), None)) is not None:
            sides = _condition(words[:at]), _condition(words[at + 1 :])
            return decides if decides in sides else None if None in sides else not decides
    if words[:1] == ["!"]:
        inner = _condition(words[1:])
        return None if inner is None else not inner
    if len(words) == 3:
        return _compared(*words)
    if len(words) == 2 and words[0] in ("-z", "-n") and UNKNOWN not in words[1]:
        return bool(words[1]) == (words[0] == "-n")
    return None


def _compared(left: str, operator: str, right: str) -> bool | None:
    if UNKNOWN in left + right:
        return None
    if left.lstrip("-").isdecimal() and right.lstrip("-").isdecimal() and operator in _COMPARES:
        return _COMPARES[operator](int(left), int(right))
    if operator in ("=", "==", "!="):
        return (left == right) == (operator != "!=")
    return None
