from hermes_benchmarks.compare import compare, comparison_lines
from hermes_benchmarks.report import read_run
from hermes_benchmarks_support import make_plan, make_run, record


def runs(tmp_path, a, b, plan_b=None):
    tasks = sorted({r.task for r in (*a, *b)})
    first = make_run(tmp_path / "a", a, make_plan(tasks))
    second = make_run(tmp_path / "b", b, plan_b or make_plan(tasks))
    return compare(read_run(first.path), read_run(second.path))


def test_flips_and_the_difference(tmp_path):
    names = [f"t{i:02d}" for i in range(30)]
    a = [record(n, verdict="failed" if i < 12 else "passed") for i, n in enumerate(names)]
    b = [record(n, verdict="failed" if i == 29 else "passed") for i, n in enumerate(names)]
    found = runs(tmp_path, a, b)
    assert (len(found.gained), [f.task for f in found.lost]) == (12, ["t29"])
    assert round(found.difference.mean, 3) == round(11 / 30, 3)
    assert found.difference.low > 0
    assert found.p_value < 0.01
    assert found.verdict() == "B is better"


def test_the_same_run_differs_in_nothing(tmp_path):
    a = [record("alpha"), record("beta", verdict="failed")]
    found = runs(tmp_path, a, a)
    assert (found.difference.mean, found.difference.low, found.difference.high, found.p_value) == (0, 0, 0, 1)
    assert found.verdict() == "the difference is within the noise"


def test_a_few_tasks_that_all_got_better_prove_nothing(tmp_path):
    found = runs(tmp_path, [record("alpha", verdict="failed")], [record("alpha")])
    assert (found.difference.mean, found.p_value) == (1.0, 1.0)
    assert found.verdict() == "the difference is within the noise"
    names = [f"t{i}" for i in range(8)]
    found = runs(tmp_path / "more", [record(n, verdict="failed") for n in names], [record(n) for n in names])
    assert found.verdict() == "B is better"


def test_only_what_both_graded_is_compared(tmp_path):
    a = [record("alpha"), record("beta"), record("gamma", verdict="sandbox_error")]
    b = [record("alpha", verdict="failed"), record("beta", verdict="provider_error"), record("gamma")]
    found = runs(tmp_path, a, b)
    assert (found.tasks, found.only_a, found.only_b) == (1, ["beta"], ["gamma"])
    assert (found.before, found.after) == (1.0, 0.0)


def test_tasks_whose_files_changed_are_named(tmp_path):
    plan = make_plan(["alpha"])
    changed = plan.model_copy(update={"tasks": [plan.tasks[0].model_copy(update={"checksum": "other"})]})
    found = runs(tmp_path, [record("alpha")], [record("alpha")], changed)
    assert found.changed_tasks == ["alpha"]


def test_a_benchmark_whose_measure_is_the_mean_reward_is_compared_by_it(tmp_path):
    plan = make_plan(["alpha"]).model_copy(update={"measure": "mean reward"})
    run_a, run_b = (
        read_run(make_run(tmp_path / name, [record("alpha", verdict="failed", reward=value)], plan).path)
        for name, value in (("a", 0.25), ("b", 0.75))
    )
    found = compare(run_a, run_b)
    assert (found.before, found.after, found.difference.mean) == (0.25, 0.75, 0.5)
    assert "75.0%" in list(comparison_lines(run_a, run_b, found))[1]
