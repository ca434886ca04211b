import io
from types import SimpleNamespace

from hermes_benchmarks.progress import LiveProgress, PlainProgress, Tally, duration, make_progress, outcome
from hermes_benchmarks_support import record


def spec(name):
    return SimpleNamespace(name=name + "__1", task=name, attempt=1)


def play(progress):
    progress.started(spec("alpha"))
    progress.finished(spec("alpha"), record("alpha", cost=0.5), None)
    progress.started(spec("beta"))
    progress.finished(spec("beta"), record("beta", verdict="sandbox_error", message="gone"), 4.0)
    progress.paused(30, "the provider keeps failing")
    progress.started(spec("beta"))
    progress.finished(spec("beta"), record("beta", verdict="failed", try_=2), None)


def test_plain_lines_say_what_a_person_wants_to_know():
    out = io.StringIO()
    with PlainProgress(Tally(3), out, every=2) as progress:
        play(progress)
    lines = out.getvalue().splitlines()
    assert lines[0] == "✓ alpha__1: passed 1 (3 turns, 1.5 s)"
    assert lines[1] == "! beta__1: sandbox_error (3 turns, 1.5 s, RateLimited: gone, again in 4 s)"
    assert lines[2] == "paused for 30 s: the provider keeps failing"
    assert lines[3].startswith("✗ beta__1: failed 0")
    assert lines[4].startswith("2/3 graded · pass rate 50.0% [")
    assert "errors: sandbox_error: RateLimited x1" in lines[4]
    assert "$0.50" in lines[4]
    assert "about 2 s left" in lines[4]


def test_the_live_display_draws(capsys):
    progress = LiveProgress(Tally(3))
    with progress:
        play(progress)
    shown = capsys.readouterr().out
    assert "✓ alpha__1: passed" in shown


def test_live_only_on_a_terminal(capsys):
    assert isinstance(make_progress("auto", Tally(1)), PlainProgress)
    assert isinstance(make_progress("live", Tally(1)), LiveProgress)
    with make_progress("none", Tally(3)) as silent:
        play(silent)
    assert capsys.readouterr().out == ""


def test_what_others_say_stays_on_its_line_and_moves_no_cursor():
    said = outcome(record(verdict="provider_error", message="400\n\x1b[2J\u009b1A gone", cause="x\r"), None)
    assert said == "! alpha__1: provider_error (3 turns, 1.5 s, x : 400 \ufffd[2J\ufffd1A gone)"


def test_durations():
    assert [duration(s) for s in (0.4, 59, 61, 7260)] == ["0 s", "59 s", "1 min 1 s", "2 h 1 min"]
