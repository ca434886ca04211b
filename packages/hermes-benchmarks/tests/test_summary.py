from hermes_benchmarks.metrics import metrics_of
from hermes_benchmarks.plan import SkippedTask
from hermes_benchmarks.report import read_run
from hermes_benchmarks.summary import summarize
from hermes_benchmarks_support import make_plan, make_run, record


def test_an_infrastructure_error_is_no_failure_and_both_denominators_are_kept():
    records = [record("alpha"), record("beta", verdict="failed"), record("gamma", verdict="sandbox_error")]
    summary = summarize(make_plan(), records)
    assert summary.pass_at_1.mean == 0.5
    assert (summary.passed, summary.graded, summary.planned) == (1, 2, 3)
    assert round(summary.pass_rate_all, 4) == 0.3333
    assert summary.causes == {"RateLimited": 1}


def test_no_headline_below_95_percent_coverage():
    tasks = [f"t{i}" for i in range(20)]
    plan = make_plan(tasks)
    graded = [record(task) for task in tasks[:19]]
    assert summarize(plan, graded).headline is not None
    assert summarize(plan, graded[:18]).headline is None


def test_a_timeout_is_graded_and_a_passing_one_passes():
    records = [record("alpha", verdict="agent_timeout"), record("beta", verdict="agent_timeout", reward=0.5)]
    summary = summarize(make_plan(["alpha", "beta"]), records)
    assert (summary.graded, summary.passed) == (2, 0)
    assert summary.mean_reward.mean == 0.25


def test_pass_at_k_leaves_out_tasks_with_fewer_graded_attempts_and_says_so():
    plan = make_plan(["alpha", "beta"], attempts=2)
    records = [
        record("alpha", 1),
        record("alpha", 2, "failed"),
        record("beta", 1),
        record("beta", 2, "image_error"),
    ]
    summary = summarize(plan, records)
    (at_2,) = summary.pass_at
    assert (at_2.k, at_2.estimate.mean, at_2.estimate.n, at_2.excluded) == (2, 1.0, 1, 1)
    (hat_2,) = summary.pass_hat
    assert hat_2.estimate.mean == 0.0
    assert summary.pass_at_1.mean == 0.75


def test_figures_by_category_and_difficulty():
    plan = make_plan([("alpha", "git"), ("beta", "files")])
    records = [record("alpha", category="git", difficulty="hard"), record("beta", verdict="failed")]
    summary = summarize(plan, records)
    assert [(g.name, g.passed, g.graded) for g in summary.by_category] == [("files", 0, 1), ("git", 1, 1)]
    metrics = metrics_of(records, summary)
    assert metrics["eval/pass_rate_git"] == 1.0
    assert metrics["eval/pass_rate_hard"] == 1.0
    assert metrics["eval/pass_rate"] == 0.5
    assert metrics["eval/total_tasks"] == 2
    assert metrics["eval/passed_tasks"] == 1


def test_what_a_try_used_that_could_not_be_graded_was_used(tmp_path):
    tries = [record(verdict="provider_error", cost=0.5), record(try_=2, cost=0.25)]
    run = read_run(make_run(tmp_path / "run", tries).path)
    assert (run.summary.usage.cost_usd, run.summary.usage.prompt_tokens) == (0.75, 2000)
    assert (run.summary.graded, run.summary.passed) == (1, 1)


def test_costs_and_skipped_tasks():
    plan = make_plan(["alpha"], skipped=[SkippedTask(name="qemu", reason="needs KVM")])
    summary = summarize(plan, [record("alpha", cost=0.25)])
    assert summary.usage.cost_usd == 0.25
    assert summary.usage.prompt_tokens == 1000
    assert summary.skipped == {"needs KVM": ["qemu"]}


def test_a_run_without_any_result_has_figures():
    summary = summarize(make_plan(), [])
    assert (summary.headline, summary.pass_at_1.n, summary.coverage) == (None, 0, 0.0)
    assert summary.to_dict()["planned"] == 3
