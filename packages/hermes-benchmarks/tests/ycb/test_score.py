from hermes_benchmarks.ycb.score import composite, normalised_funds, score
from hypothesis import given
from hypothesis import strategies as st


def final(**changes: object) -> dict[str, object]:
    before = {
        "funds_cents": 25_000_000,
        "sim_time": "2025-01-01 09:00:00.000000",
        "horizon_reached": False,
        "bankrupt": False,
        "last_terminal_event": "horizon_end",
    }
    end = {"funds_cents": 25_000_000, "horizon_reached": True, "bankrupt": False, "tasks": {}, "commands": 3}
    return {**end, "before": before, **changes}


def test_doing_nothing_is_worth_nothing_though_the_published_formula_pays_for_it() -> None:
    found = score(final(funds_cents=-491_336, horizon_reached=False, bankrupt=True))
    assert found.composite == 0
    assert round(found.reference_composite, 4) == 0.5751
    assert found.incomplete
    assert not found.survived


def test_the_published_landmarks_of_the_formula() -> None:
    assert round(normalised_funds(25_000_000), 3) == 0.150
    assert round(normalised_funds(250_000_000), 3) == 0.520
    assert normalised_funds(2_500_000_000) == 1
    assert round(composite(survived=True, funds_cents=1_945_074_900), 4) == 0.9731


def test_a_company_kept_running_after_bankruptcy_keeps_nothing() -> None:
    assert score(final(funds_cents=90_000_000, bankrupt=True)).composite == 0


def test_a_run_that_reached_the_horizon_by_itself_is_complete_and_scores_as_published() -> None:
    before = {**final()["before"], "horizon_reached": True, "funds_cents": 80_000_000}  # type: ignore[dict-item]
    found = score(final(funds_cents=80_000_000, before=before))
    assert not found.incomplete
    assert found.composite == found.reference_composite == composite(survived=True, funds_cents=80_000_000)


@given(st.booleans(), st.integers(-(10**12), 10**15))
def test_the_composite_stays_in_range_and_grows_with_funds(survived: bool, funds: int) -> None:
    value = composite(survived=survived, funds_cents=funds)
    assert 0 <= value <= 1
    assert composite(survived=survived, funds_cents=funds + 1) >= value
