import pytest
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.merge import merge
from hermes_benchmarks.plan import Identity
from hermes_benchmarks.report import read_run
from hermes_benchmarks.report.write import report_json
from hermes_benchmarks_support import make_plan, make_run, record

TASKS = [f"t{i}" for i in range(7)]


def outcome(name, attempt):
    return "passed" if (int(name[1:]) + attempt) % 3 else "failed"


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_shards_put_together_are_the_whole_run(tmp_path, parts):
    whole = make_plan(TASKS, attempts=2)
    everything = make_run(tmp_path / "whole", [record(t, n, outcome(t, n)) for t, n in whole.trials()], whole)
    shards = []
    for part in range(1, parts + 1):
        plan = make_plan(TASKS, attempts=2, shard=f"{part}/{parts}")
        results = [record(t, n, outcome(t, n)) for t, n in plan.trials()]
        shards.append(make_run(tmp_path / f"shard{part}", results, plan).path)
    merged = merge(shards, tmp_path / "merged")
    expected = report_json(read_run(everything.path)) | {"run": "merged"}
    assert report_json(read_run(merged.path)) == expected
    assert (merged.path / "trials.jsonl").read_bytes() == (everything.path / "trials.jsonl").read_bytes()


def test_a_graded_result_wins_over_an_error(tmp_path):
    a = make_run(tmp_path / "a", [record("alpha", verdict="sandbox_error")], make_plan(["alpha"]))
    b = make_run(tmp_path / "b", [record("alpha")], make_plan(["alpha"]))
    assert [r.verdict for r in merge([a.path, b.path], tmp_path / "c").latest()] == ["passed"]


def test_runs_of_other_conditions_are_refused_and_the_difference_named(tmp_path):
    a = make_run(tmp_path / "a", [], make_plan(identity=Identity.of({"model": "one"})))
    b = make_run(tmp_path / "b", [], make_plan(identity=Identity.of({"model": "two"})))
    with pytest.raises(UsageError, match='model: "one", now "two"'):
        merge([a.path, b.path], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_two_grades_for_one_attempt_are_refused(tmp_path):
    a = make_run(tmp_path / "a", [record("alpha")], make_plan(["alpha"]))
    b = make_run(tmp_path / "b", [record("alpha", verdict="failed")], make_plan(["alpha"]))
    with pytest.raises(UsageError, match="graded in two"):
        merge([a.path, b.path], tmp_path / "c")
