"""`check_parser` catches what it is there to catch."""

import pytest
from hermes_parsers import ParseResult, UnknownParserError, get_parser
from hermes_parsers.format import Format
from hermes_parsers.testing import Case, check_parser, check_stream, load_cases


class Wrapped:
    """A parser made worse."""

    def __init__(self, inner):
        self.inner = inner

    def parse(self, text):
        return self.inner.parse(text)

    def stream(self):
        return self.inner.stream()


class Forgetful(Wrapped):
    def parse(self, text):
        return ParseResult(self.inner.parse(text).content)


class Hasty(Wrapped):
    """Finds no call that arrives in pieces."""

    def stream(self):
        parent = self

        class Stream:
            def __init__(self):
                self.inner = parent.inner.stream()
                self.pieces = 0

            def feed(self, chunk):
                self.pieces += 1
                return [] if self.pieces > 3 else self.inner.feed(chunk)

            def finish(self):
                return self.inner.finish()

            def result(self):
                return self.inner.result()

        return Stream()


class Superlinear(Wrapped):
    def parse(self, text):
        for _ in range((len(text) // 120_000) ** 2):  # cubic: no noise hides it
            text.upper()
        return self.inner.parse(text)


def maker(kind):
    return lambda tools, **options: kind(get_parser("hermes", tools, **options))


def checks(report):
    return {failure.check for failure in report.failures}


def test_a_good_parser_passes():
    report = check_parser("hermes", [case for case in load_cases("hermes") if not case.grows])
    assert report.ok and report.cases > 10
    assert str(report).startswith(f"{report.cases} cases, 0 failures")


def test_lost_calls_are_found():
    report = check_parser(maker(Forgetful), "hermes", streams=False, linear=False)
    assert "result" in checks(report) and "expected the calls" in str(report)


def test_a_chunking_that_matters_is_found():
    assert "chunking" in checks(check_parser(maker(Hasty), "hermes", linear=False))


def test_more_than_linear_time_is_found():
    big = [case for case in load_cases("hermes") if case.id == "hermes-018"]
    assert checks(check_parser(maker(Superlinear), big, streams=False, slowest_ratio=2.6)) == {"linear"}


def test_a_format_can_be_checked_before_it_is_registered():
    known = get_parser("hermes").format
    format = Format("mine", openers=known.openers, read=known.read, closers=known.closers)
    case = Case("x", "mine", '<tool_call>{"name": "f"}</tool_call>', calls=(("f", {}),), content="")
    assert check_parser(format, [case]).ok


def test_streams_are_checked_alone():
    parser = get_parser("hermes")
    assert check_stream(parser, "a <tool_call", ["a <to", "ol_call"]) is None
    assert "the whole text gives" in (check_stream(Hasty(parser), "abcdef", list("abcdef")) or "")


QUICK = {"streams": False, "linear": False}


def test_what_checks_nothing_is_not_ok():
    assert not check_parser("hermes", []).ok
    with pytest.raises(UnknownParserError):
        check_parser("nope")


def test_an_alias_and_a_parser_bring_their_cases():
    expected = check_parser("llama3_json", **QUICK).cases
    assert expected > 10
    for parser in ("llama4_json", get_parser("llama3_json")):
        report = check_parser(parser, **QUICK)
        assert report.ok and report.cases == expected


def test_cases_that_a_parser_cannot_be_asked_are_skipped():
    everything = check_parser("hermes", **QUICK).cases
    for parser in (lambda tools=None: get_parser("hermes", tools), Wrapped(get_parser("hermes"))):
        report = check_parser(parser, "hermes", **QUICK)
        assert report.ok and 10 < report.cases < everything
        assert report.cases + report.skipped == everything and "skipped" in str(report)


def test_a_parser_that_raises_fails_and_the_other_cases_run():
    class Raising(Wrapped):
        def parse(self, text):
            raise RecursionError("too deep") if "Bod" in text else ValueError("other")

    report = check_parser(maker(Raising), "hermes", **QUICK)
    assert checks(report) == {"raised"} and len(report.failures) == report.cases > 10


def test_a_result_may_be_a_plain_pair():
    class Plain(Wrapped):
        def parse(self, text):
            return tuple(self.inner.parse(text))

        def stream(self):
            inner = self.inner.stream()

            class Stream:
                feed, finish = inner.feed, inner.finish

                def result(self):
                    return tuple(inner.result())

            return Stream()

    small = [case for case in load_cases("hermes") if not case.grows]
    report = check_parser(maker(Plain), small, linear=False)
    assert report.ok and report.cases > 10
