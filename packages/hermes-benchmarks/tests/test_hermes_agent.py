"""`--agent hermes` against a server on this machine."""

import json
import math

from hermes_benchmarks_command import tb2
from hermes_benchmarks_server import Model, serve

KEY = "k-e-y"


def results(run):
    return {p.parent.name: json.loads(p.read_text()) for p in run.glob("trials/*/result.json")}


def arguments(model, key=KEY, *more):
    """`evaluate` with a model."""
    return (
        *("evaluate", "--name", "run", "--model", "a/model", "--openai.base_url", model.url),
        *("--openai.api_key", key, "--run.retry_wait", "0.1", *more),
    )


def test_a_model_is_asked_and_paid_for(tmp_path):
    with serve(Model()) as model:
        price = (
            "--openai.price.prompt",
            "1",
            "--openai.price.completion",
            "10",
            "--openai.price.cached",
            "0.5",
        )
        code, out, err = tb2(tmp_path, *arguments(model, KEY, "--tasks", "git-recover,log-report", *price))
    assert (code, err) == (0, "")
    found = results(tmp_path / "runs/run")
    assert {record["verdict"] for record in found.values()} == {"passed"}
    asked = model.requests[0]
    assert asked["temperature"] == 0.8
    assert asked["max_tokens"] == 32_000
    assert {tool["function"]["name"] for tool in asked["tools"]} >= {
        "terminal",
        "read_file",
        "write_file",
        "patch",
    }
    turns = sum(record["turns"] for record in found.values())
    assert turns == len(model.requests)
    record = next(iter(found.values()))
    one_turn = (400 * 1 + 600 * 0.5 + 50 * 10) / 1e6
    assert math.isclose(record["usage"]["cost_usd"], one_turn * record["turns"])
    assert record["model"] == "a/model"
    kept = [p.read_text() for p in (tmp_path / "runs/run").rglob("*.json*")]
    assert not any("k-e-y" in text for text in kept)
    assert f"${one_turn * turns:.2f}" in out


def test_the_environment_may_name_the_model_and_the_run_keeps_its_name(tmp_path):
    few = ("--agent", "hermes", "--name", "run", "--tasks", "log-report")
    with serve(Model()) as model:
        where = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY}
        assert tb2(tmp_path, "evaluate", *few, **where, OPENAI_MODEL="a/model")[0] == 0
        code, _, err = tb2(tmp_path, "resume", "runs/run", **where, OPENAI_MODEL="another")
        assert (code, err) == (0, "")
        out = tb2(tmp_path, "evaluate", "--dry-run", "--tasks", "log-report", OPENAI_MODEL="a/model")[1]
    assert {asked["model"] for asked in model.requests} == {"a/model"}
    assert json.loads((tmp_path / "runs/run/config.json").read_text())["model"] == "a/model"
    assert "agent scripted" in out  # a name alone asks for no model


def test_a_wrong_key_is_one_sentence_before_anything_starts(tmp_path):
    with serve(Model()) as model:
        code, out, err = tb2(tmp_path, *arguments(model, "wrong"))
    assert (code, out) == (2, "")
    assert "refuses the key (HTTP 401)" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_key_refused_in_the_middle_stops_the_run_and_loses_nothing(tmp_path):
    model = Model(fail=lambda n: 401 if n > 6 else None)
    with serve(model):
        few = "log-report,git-recover,tidy-inbox"
        code, out, err = tb2(tmp_path, *arguments(model, KEY, "-n", "1", "--tasks", few))
        assert code == 2
        assert "go on with: tb2 resume runs/run" in err
        assert "Traceback" not in out + err
        before = {n: r for n, r in results(tmp_path / "runs/run").items() if r["graded"]}
        assert before
        model.fail = lambda n: None
        code, out, err = tb2(tmp_path, "resume", "runs/run", "--openai.api_key", KEY)
    assert (code, err) == (0, "")
    after = results(tmp_path / "runs/run")
    assert {name: after[name] for name in before} == before
    assert all(record["graded"] for record in after.values())


def test_a_failing_request_costs_no_trial(tmp_path):
    model = Model(fail=lambda n: 500 if n in (2, 3, 9) else None)
    with serve(model):
        code, _, err = tb2(tmp_path, *arguments(model, KEY, "--tasks", "git-recover,log-report"))
    assert (code, err) == (0, "")
    assert {record["verdict"] for record in results(tmp_path / "runs/run").values()} == {"passed"}


def test_money_runs_out(tmp_path):
    price = ("--openai.price.prompt", "1000", "--openai.price.completion", "1000")
    with serve(Model()) as model:
        code, out, _ = tb2(tmp_path, *arguments(model, KEY, *price, "-n", "1", "--max-cost", "5"))
        assert code == 3
        assert "stopped: the run has spent $" in out
        capped = arguments(model, KEY, *price, "--max-trial-cost", "1.5", "--tasks", "git-recover")
        capped = ["capped" if part == "run" else part for part in capped]
        code, out, _ = tb2(tmp_path, *capped)
    assert code == 0
    (record,) = results(tmp_path / "runs/capped").values()
    assert (record["verdict"], record["stop_reason"], record["turns"]) == ("agent_budget", "budget", 2)
