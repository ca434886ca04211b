"""Head and tail within a limit, and output by offset."""

import pytest
from hermes_sandbox.output import OutputBuffer, RecentOutput
from hermes_sandbox.result import ExecResult
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Neither an example nor the making of the first ones may have a deadline where the machine may stand still.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
CHUNKS = st.lists(st.binary(max_size=40), max_size=30)


@patient
@given(CHUNKS, st.one_of(st.none(), st.integers(0, 200)))
def test_head_and_tail_are_those_of_the_whole(chunks: list[bytes], limit: int | None) -> None:
    buffer = OutputBuffer(limit)
    for chunk in chunks:
        buffer.add(chunk)
    whole = b"".join(chunks)
    data, head = buffer.kept()
    assert buffer.total == len(whole)
    if limit is None or len(whole) <= limit:
        assert (data, head) == (whole, len(whole))
    else:
        assert len(data) == limit
        assert whole.startswith(data[:head])
        assert whole.endswith(data[head:])
        assert head - (limit - head) in (0, 1)


@patient
@given(CHUNKS, st.integers(0, 1500), st.one_of(st.none(), st.integers(0, 100)))
def test_recent_output_is_a_window_on_the_stream(chunks: list[bytes], offset: int, limit: int | None) -> None:
    recent = RecentOutput(100)
    for chunk in chunks:
        recent.add(chunk)
    whole = b"".join(chunks)
    begin, data = recent.read(offset, limit)
    assert recent.total == len(whole)
    assert begin == min(max(offset, recent.start), len(whole))
    assert data == (whole[begin:] if limit is None else whole[begin : begin + limit])
    assert len(whole) - recent.start >= min(100, len(whole))


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="output_limit"):
        OutputBuffer(-1)


def result(stdout: bytes, total: int, head: int) -> ExecResult:
    return ExecResult(0, "exit", stdout, b"", total, 0, 0.1, stdout_head=head, stderr_head=0)


def test_output_marks_the_gap_where_it_is() -> None:
    assert result(b"abcd", 100, 2).output == "ab\n[... 96 bytes omitted ...]\ncd"
    assert result(b"abcd", 100, 2).truncated
    assert result(b"abcd", 4, 4).output == "abcd"


def test_output_joins_the_streams_on_lines_of_their_own() -> None:
    assert ExecResult(1, "exit", b"out", b"err", 3, 3, 0.1).output == "out\nerr"
    assert ExecResult(1, "exit", b"out\n", b"err", 4, 3, 0.1).output == "out\nerr"
    assert ExecResult(1, "exit", b"", b"\xff", 0, 1, 0.1).output == "\ufffd"


def test_only_an_exit_with_zero_is_ok() -> None:
    assert ExecResult(0, "exit", b"", b"", 0, 0, 0.1).ok
    assert not ExecResult(3, "exit", b"", b"", 0, 0, 0.1).ok
    assert not ExecResult(None, "timeout", b"", b"", 0, 0, 0.1).ok
