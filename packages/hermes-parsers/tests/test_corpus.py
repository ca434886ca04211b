"""The corpus of handed and own cases: the right answer, the same in every chunking."""

import pytest
from hermes_parsers import get_parser, list_parsers
from hermes_parsers.testing import Case, check_parser, load_cases
from hermes_parsers.testing.check import mismatch, same
from hermes_parsers.testing.streams import check_stream, chunkings

CASES = load_cases()


def test_every_format_has_cases():
    assert {case.format for case in CASES} == set(list_parsers())
    assert len({case.id for case in CASES}) == len(CASES) >= 186


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case):
    parser = get_parser(case.format, case.tools, **case.options)
    assert mismatch(case, parser.parse(case.text)) is None
    if len(case.text) < 1 << 14:
        for pieces in chunkings(case.text, case.chunks):
            assert check_stream(parser, case.text, pieces) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", list_parsers())
def test_check_parser_finds_nothing(name):
    report = check_parser(name)
    assert report.ok, str(report)


def test_deviations_from_the_handed_answers_are_explained():
    changed = [case for case in CASES if case.policy]
    assert {case.id for case in changed if not case.id.startswith("own")} == {
        "deepseek_v3-012",
        "deepseek_v3_1-013",
    }
    assert all(case.disputed for case in changed if not case.id.startswith("own"))


def test_comparison_tells_true_from_one():
    assert same({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not same({"a": True}, {"a": 1})
    assert not same({"a": 1}, {"a": 1, "b": 2})
