"""Running the corpus on a parser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, signature
from typing import Any, cast

from hermes_parsers.format import Format, Options
from hermes_parsers.json_text import decode
from hermes_parsers.parser import Parser
from hermes_parsers.registry import get_parser, resolve, schemas_of
from hermes_parsers.testing.cases import ANYTHING, Case, load_cases
from hermes_parsers.testing.streams import ParserLike, check_stream, chunkings, result_of
from hermes_parsers.types import ParseResult

Maker = Callable[..., ParserLike]
"""Makes a parser from `tools` and those further options of `get_parser` that it knows."""

_NOISE = 0.005
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong.

    Attributes:
        case: Id of the case.
        check: `result`, `chunking`, `linear`, or `raised` where the parser did.
        message: What was expected and what came.
        disputed: Known parsers disagree on this case.
    """

    case: str
    check: str
    message: str
    disputed: bool = False


@dataclass(slots=True)
class Report:
    """The outcome of a check.

    Attributes:
        cases: How many cases ran.
        failures: What went wrong.
        skipped: How many cases need tools or options that the parser cannot be given.
    """

    cases: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    skipped: int = 0

    @property
    def ok(self) -> bool:
        """Something was checked, and nothing went wrong."""
        return self.cases > 0 and not self.failures

    def __str__(self) -> str:
        lines = [f"{failure.case}: {failure.check}: {failure.message}" for failure in self.failures]
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return "\n".join([f"{self.cases} cases, {len(lines)} failures{skipped}", *lines])


def check_parser(
    parser: str | Format | ParserLike | Maker,
    cases: Iterable[Case] | str | None = None,
    *,
    streams: bool = True,
    linear: bool = True,
    slowest_ratio: float = 3.0,
) -> Report:
    """Run cases on a parser: the right result, the same in every chunking, in linear time.

    Args:
        parser: Name of a registered parser, a `Format`, a parser, or a function that makes one from `tools` and options.
            Where the function does not know an option, and for a parser, which has its tools and options already, the
            cases that need them are skipped. A result may be a plain pair of content and calls: then only these count.
        cases: The cases, or the name of a format of the corpus; by default the corpus of the parser's name.
        streams: Also read every text in pieces.
        linear: Also time the cases that have a repeating part at twice the length.
        slowest_ratio: How much longer twice the text may take.

    Returns:
        A report; `report.ok` tells whether all went well, `print(report)` shows what did not.

    Raises:
        UnknownParserError: `parser` is a name that no parser has.
    """
    make = _maker(parser)
    if cases is None:
        cases = resolve(parser) if isinstance(parser, str) else getattr(parser, "name", None)
    chosen = load_cases(cases) if cases is None or isinstance(cases, str) else list(cases)
    able = [case for case in chosen if _takes(make, case)]
    report = Report(len(able), skipped=len(chosen) - len(able))
    for case in able:
        checks = _problems(make, case, streams=streams, slowest_ratio=slowest_ratio if linear else None)
        try:
            for check, message in checks:
                report.failures.append(Failure(case.id, check, message, case.disputed))
        except Exception as error:  # of anyone's parser: whatever it raises is what was to be found
            report.failures.append(Failure(case.id, "raised", repr(error), case.disputed))
    return report


def _maker(parser: str | Format | ParserLike | Maker) -> Maker:
    if isinstance(parser, str):
        get_parser(parser)
        return partial(get_parser, parser)
    if isinstance(parser, Parser) and type(parser) is Parser:
        parser = parser.format
    if isinstance(parser, Format):
        return partial(_make, parser)
    return parser if callable(parser) else partial(_ready, parser)


def _ready(parser: ParserLike, /) -> ParserLike:
    return parser


def _make(format: Format, tools: list[dict[str, Any]] | None, **options: Any) -> Parser:
    return Parser(format, Options(schemas_of(tools), **options))


def _takes(make: Maker, case: Case) -> bool:
    """Whether the parser can be given what the case needs."""
    known = signature(make).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
        return True
    return all(option in known for option in case.options) and (bool(known) or case.tools is None)


def _parser(make: Maker, case: Case) -> ParserLike:
    return make(case.tools, **case.options) if signature(make).parameters else make()


def _problems(
    make: Maker, case: Case, *, streams: bool, slowest_ratio: float | None
) -> Iterable[tuple[str, str]]:
    parser = _parser(make, case)
    found: Any = parser.parse(case.text)
    pair = not isinstance(found, ParseResult)
    asked = replace(case, ids=None, errors=None, recovered=None, reasoning=ANYTHING) if pair else case
    wrong = mismatch(asked, result_of(found))
    if wrong:
        yield "result", wrong
    for pieces in chunkings(case.text, case.chunks) if streams else ():
        wrong = check_stream(parser, case.text, pieces)
        if wrong:
            yield "chunking", f"in {len(pieces)} pieces of {len(pieces[0])}: {wrong}"
            break
    if slowest_ratio is not None and case.grows > 1:
        ratio = growth(_parser(make, case), case)
        if ratio > slowest_ratio:
            yield "linear", f"twice the text takes {ratio:.1f} times as long"


def mismatch(case: Case, result: ParseResult) -> str | None:
    """How a result differs from what the case expects; None when it does not."""
    if case.only_survive:
        return None
    found = [(call.name, call.args) for call in result.tool_calls]
    if not same(found, list(case.calls)):
        return f"expected the calls {case.calls!r}, found {found!r}"
    pairs: list[tuple[str, Any, Any]] = [
        ("ids", case.ids, tuple(call.id for call in result.tool_calls)),
        ("errors", case.errors, tuple(error.kind for error in result.errors)),
        ("recoveries", case.recovered, tuple(result.recovered)),
    ]
    for what, expected, got in pairs:
        if expected is not None and expected != got:
            return f"expected the {what} {expected!r}, found {got!r}"
    texts = (("content", case.content, result.content), ("reasoning", case.reasoning, result.reasoning))
    for what, text, got in texts:
        if text != ANYTHING and text.strip() != (got or "").strip():
            return f"expected the {what} {text!r}, found {got!r}"
    return None


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: `1` is `1.0`, but `true` is not `1`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and isinstance(right, Mapping):
        try:
            left = decode(left)
        except ValueError:
            return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        one, two = cast("Mapping[str, Any]", left), cast("Mapping[str, Any]", right)
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        ones, twos = cast("Sequence[Any]", left), cast("Sequence[Any]", right)
        return len(ones) == len(twos) and all(map(same, ones, twos))
    return left == right


def growth(parser: ParserLike, case: Case) -> float:
    """How much longer the case takes at twice the length, by the least times of a few tries: clocks only ever add."""
    text, double = case.text, case.doubled().text
    tries = [(_seconds(parser, text), _seconds(parser, double)) for _ in range(_TRIES)]
    short, long = map(min, zip(*tries, strict=True))
    return (long + _NOISE) / (short + _NOISE)


def _seconds(parser: ParserLike, text: str) -> float:
    begin = time.process_time()
    parser.parse(text)
    return time.process_time() - begin
