"""Running the corpus on a parser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from hermes_parsers.format import Format, Options
from hermes_parsers.json_text import decode
from hermes_parsers.parser import Parser
from hermes_parsers.registry import get_parser, schemas_of
from hermes_parsers.testing.cases import ANYTHING, Case, load_cases
from hermes_parsers.testing.streams import ParserLike, check_stream, chunkings
from hermes_parsers.types import ParseResult

Maker = Callable[..., ParserLike]
"""Makes a parser from `tools` and the further options of `get_parser`."""

_NOISE = 0.005
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong.

    Attributes:
        case: Id of the case.
        check: `result`, `chunking` or `linear`.
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
    """

    cases: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def ok(self) -> bool:
        """Nothing went wrong."""
        return not self.failures

    def __str__(self) -> str:
        lines = [f"{failure.case}: {failure.check}: {failure.message}" for failure in self.failures]
        return "\n".join([f"{self.cases} cases, {len(lines)} failures", *lines])


def check_parser(
    parser: str | Format | Maker,
    cases: Iterable[Case] | str | None = None,
    *,
    streams: bool = True,
    linear: bool = True,
    slowest_ratio: float = 3.0,
) -> Report:
    """Run cases on a parser: the right result, the same in every chunking, in linear time.

    Args:
        parser: Name of a registered parser, a `Format`, or a function from `tools` and options to a parser.
        cases: The cases, or the name of a format of the corpus; by default the corpus of the parser's name.
        streams: Also read every text in pieces.
        linear: Also time the cases that have a repeating part at twice the length.
        slowest_ratio: How much longer twice the text may take.

    Returns:
        A report; `report.ok` tells whether all went well, `print(report)` shows what did not.
    """
    make = _maker(parser)
    if cases is None:
        cases = parser if isinstance(parser, str) else parser.name if isinstance(parser, Format) else None
    chosen = load_cases(cases) if cases is None or isinstance(cases, str) else list(cases)
    report = Report(len(chosen))
    for case in chosen:
        for check, message in _problems(case, make(case.tools, **case.options), streams=streams):
            report.failures.append(Failure(case.id, check, message, case.disputed))
        if linear and case.grows > 1:
            ratio = growth(make(case.tools, **case.options), case)
            if ratio > slowest_ratio:
                message = f"twice the text takes {ratio:.1f} times as long"
                report.failures.append(Failure(case.id, "linear", message, case.disputed))
    return report


def _maker(parser: str | Format | Maker) -> Maker:
    if isinstance(parser, str):
        return partial(get_parser, parser)
    if isinstance(parser, Format):
        return partial(_make, parser)
    return parser


def _make(format: Format, tools: list[dict[str, Any]] | None, **options: Any) -> Parser:
    return Parser(format, Options(schemas_of(tools), **options))


def _problems(case: Case, parser: ParserLike, *, streams: bool) -> Iterable[tuple[str, str]]:
    wrong = mismatch(case, parser.parse(case.text))
    if wrong:
        yield "result", wrong
    if streams:
        for pieces in chunkings(case.text, case.chunks):
            wrong = check_stream(parser, case.text, pieces)
            if wrong:
                yield "chunking", f"in {len(pieces)} pieces of {len(pieces[0])}: {wrong}"
                return


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
    """How much longer the case takes at twice the length; the best of a few tries, since clocks are noisy."""
    text, double = case.text, case.doubled().text
    best = float("inf")
    for _ in range(_TRIES):
        short, long = _seconds(parser, text), _seconds(parser, double)
        best = min(best, (long + _NOISE) / (short + _NOISE))
    return best


def _seconds(parser: ParserLike, text: str) -> float:
    begin = time.process_time()
    parser.parse(text)
    return time.process_time() - begin
