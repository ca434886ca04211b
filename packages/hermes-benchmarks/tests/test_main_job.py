"""The main job as a person runs it: the command, on the packaged sample, in local sandboxes."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jsonschema
import pytest
from hermes_benchmarks.cli.app import run_cli
from hermes_benchmarks.datasets.sample_set import sample_path
from hermes_benchmarks.schemas import published
from hermes_benchmarks_command import CODE, PATIENCE, WITHOUT, cold, environment, start, tb2
from hermes_benchmarks_server import Model, serve

SHORT = "broken-links,log-report,rotate-logs"


def results(run):
    return {p.parent.name: json.loads(p.read_text()) for p in run.glob("trials/*/result.json")}


def lines(run):
    return [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]


def test_bare_evaluate_runs_the_sample_and_says_how_to_go_on(tmp_path):
    code, out, err = cold(tmp_path, "evaluate")
    assert (code, err) == (0, "")
    assert "pass@1" in out
    assert "The real thing: tb2 evaluate --dataset" in out
    (run,) = (tmp_path / "runs").iterdir()
    found = results(run)
    assert len(found) >= 10
    failed = {record["task"] for record in found.values() if record["verdict"] == "failed"}
    assert failed == {"rotate-logs", "orders-report"}
    assert found["orders-report__1"]["reward"] > 0
    assert {record["agent"] for record in found.values()} == {"scripted"}
    assert all(record["turns"] >= 3 for record in found.values())
    for record in found.values():
        jsonschema.validate(record, published("result.schema.json"))
    jsonschema.validate(json.loads((run / "config.json").read_text()), published("config.schema.json"))
    for line in lines(run):
        jsonschema.validate(line, published("line.schema.json"))
    trajectory = json.loads((run / "trials/log-report__1/trajectory.json").read_text())
    assert trajectory["schema_version"].startswith("ATIF-v1.")
    assert [step["step_id"] for step in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
    assert "git-recover__1" in (run / "report.html").read_text()
    metrics = json.loads((run / "metrics.json").read_text())["results"]["all"]
    assert metrics["eval/total_tasks"] == len(found)
    assert len((run / "samples.jsonl").read_text().splitlines()) == len(found)


def test_tasks_without_a_solution_are_left_out_by_the_oracle_and_not_vouched_for(tmp_path):
    for name in ("log-report", "rotate-logs"):
        shutil.copytree(sample_path() / name, tmp_path / "tasks" / name)
    (tmp_path / "tasks/rotate-logs/solution/solve.sh").unlink()
    code, out, err = tb2(
        tmp_path, "validate", "--dataset", "tasks", "--backend", "local", "--allow-list", "valid.txt"
    )
    assert (code, err) == (1, "")
    assert re.search(r"rotate-logs +unknown .*no solution/solve.sh for the oracle", out)
    assert (tmp_path / "valid.txt").read_text() == "log-report\n"


@pytest.mark.parametrize(("tasks", "number"), [(SHORT, 3), pytest.param("*", 12, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_oracle_solves_everything_and_idling_nothing(tmp_path, agent, reward, tasks, number):
    code, _, err = tb2(tmp_path, "evaluate", "--agent", agent, "--tasks", tasks, "--name", "run")
    assert (code, err) == (0, "")
    rewards = {name: record["reward"] for name, record in results(tmp_path / "runs/run").items()}
    assert len(rewards) == number
    assert set(rewards.values()) == {reward}, rewards


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished_and_resume_does_the_rest(tmp_path, stop):
    run, held, go_on = tmp_path / "runs/run", threading.Event(), threading.Event()

    def hold(_):
        """Keep the second trial waiting for its model, however long this process takes to interrupt it."""
        if results(run):
            held.set()
            go_on.wait(PATIENCE)

    with serve(Model(fail=hold)) as model:
        options = (
            "--name",
            "run",
            "-n",
            "1",
            "--tasks",
            SHORT,
            "--model",
            "m",
            "--openai.base_url",
            model.url,
        )
        command = start(tmp_path, "evaluate", *options, OPENAI_API_KEY=model.key)
        assert held.wait(PATIENCE)
        command.send_signal(stop)
        out, err = command.communicate()
        go_on.set()
        assert command.returncode == 130, err
        assert "go on with: tb2 resume runs/run" in out
        before = {name: record for name, record in results(run).items() if record["graded"]}
        assert len(before) == 1
        code, _, err = tb2(tmp_path, "resume", "runs/run", OPENAI_API_KEY=model.key)
    assert (code, err) == (0, "")
    after = results(run)
    assert len(after) == 3
    assert all(record["graded"] for record in after.values())
    assert {name: after[name] for name in before} == before
    graded = [(line["task"], line["attempt"]) for line in lines(run) if line["graded"]]
    assert len(graded) == len(set(graded)) == len(after)


def test_attempts_can_be_raised_later_and_other_conditions_are_refused(tmp_path):
    assert tb2(tmp_path, "evaluate", "--name", "run", "--tasks", SHORT)[0] == 0
    run = tmp_path / "runs/run"
    before = results(run)
    code, out, _ = tb2(tmp_path, "resume", "runs/run", "--attempts", "2")
    assert code == 0
    assert "pass@2" in out
    after = results(run)
    assert (len(before), len(after)) == (3, 6)
    assert {name: after[name] for name in before} == before
    code, _, err = tb2(tmp_path, "resume", "runs/run", "--timeout-multiplier", "2")
    assert code == 2
    assert "own.timeout_multiplier: 1.0, now 2.0" in err
    assert results(run) == after


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--agent", "oracle"], 'agent: "nop", now "oracle"'),
        (["--agent", "hermes", "--model", "x"], 'model: absent, now "x"'),
        (["--agent", "hermse"], 'agent: "nop", now "hermse"'),
        (["--tasks", "log-report"], "tasks.tidy-inbox: "),
        (["--backend", "docker"], 'backend: "local", now "docker"'),
        (["--dataset", "tasks"], "tasks.tidy-inbox: "),
    ],
)
def test_flags_that_would_make_another_run_are_refused_with_the_difference_named(here, flags, said):
    assert here("evaluate", "--agent", "nop", "--name", "run", "--tasks", "tidy-inbox")[0] == 0
    shutil.copytree(sample_path() / "tidy-inbox", "tasks/tidy-inbox")
    Path("tasks/tidy-inbox/instruction.md").write_text("Something else.")
    code, out, err = here("resume", "runs/run", *flags)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "was run under other conditions" in err
    assert said in err


def test_shards_merge_into_the_whole(tmp_path):
    for part in (1, 2):
        argv = ("evaluate", "--agent", "nop", "--tasks", SHORT, "--shard", f"{part}/2", "--name", f"s{part}")
        assert tb2(tmp_path, *argv)[0] == 0
    assert len(results(tmp_path / "runs/s1")) + len(results(tmp_path / "runs/s2")) == 3
    code, out, _ = tb2(tmp_path, "merge", "runs/s1", "runs/s2", "-o", "runs/whole")
    assert code == 0
    assert "0 of 3 planned" in out
    code, out, _ = tb2(tmp_path, "resume", "runs/whole", "--attempts", "2", "--tasks", "nonsense")
    assert code == 2  # what is run is not for resume to say
    code, out, _ = tb2(tmp_path, "resume", "runs/whole", "--attempts", "2")
    assert code == 0
    assert len(results(tmp_path / "runs/whole")) == 6
    assert tb2(tmp_path, "evaluate", "--agent", "nop", "--tasks", SHORT, "--name", "one")[0] == 0
    code, out, _ = tb2(tmp_path, "compare", "runs/one", "runs/whole")
    assert code == 0
    assert "the difference is within the noise" in out


def test_score_reads_the_verdicts_again(tmp_path):
    assert tb2(tmp_path, "evaluate", "--name", "run", "--tasks", SHORT)[0] == 0
    run = tmp_path / "runs/run"
    before = results(run)
    code, out, err = tb2(tmp_path, "score", "runs/run")
    assert code == 0, err
    assert "0 verdicts changed" in out
    assert results(run) == before
    reward = run / "trials/rotate-logs__1/verifier/reward.txt"
    reward.write_text("1\n")  # the report beside it still has failed tests
    code, out, _ = tb2(tmp_path, "score", "runs/run")
    assert "rotate-logs__1: failed" in out
    assert "tampered 0" in out
    assert results(run)["rotate-logs__1"]["verdict"] == "tampered"


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """`tb2` within this process, in an empty folder and without keys."""
    monkeypatch.chdir(tmp_path)
    for name in WITHOUT:
        monkeypatch.delenv(name, raising=False)

    def run(*argv):
        code = run_cli("tb2", "hermes_benchmarks.terminal_bench:TerminalBench2", list(argv))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_a_run_of_another_benchmark_is_named(here, capsys):
    assert here("evaluate", "--name", "run", "--tasks", "tidy-inbox", "--agent", "nop")[0] == 0
    for verb in ("resume", "score"):
        assert run_cli("tblite", "hermes_benchmarks.terminal_bench:TBLite", [verb, "runs/run"]) == 2
        assert "runs/run is a run of tb2, not of tblite" in capsys.readouterr().err


@pytest.mark.parametrize("cause", ["tests_edited", "not_regular", "wipe_failed"])
def test_score_lets_stand_what_was_seen_in_the_sandbox(here, tmp_path, cause):
    assert here("evaluate", "--name", "run", "--tasks", "tidy-inbox", "--progress", "none")[0] == 0
    path = tmp_path / "runs/run/trials/tidy-inbox__1/result.json"
    record = json.loads(path.read_text())
    assert record["verdict"] == "passed"  # as the files say that lie there
    seen = {"verdict": "tampered", "reward": 0.0, "cause": cause, "info": {"snapshot": {"reference": "kept"}}}
    path.write_text(json.dumps({**record, **seen}))
    code, out, _ = here("score", "runs/run")
    assert (code, "0 verdicts changed" in out) == (0, True)
    assert json.loads(path.read_text())["verdict"] == "tampered"


def test_ls_dry_run_and_print_config(here):
    code, out, _ = here("ls", "--json")
    tasks = json.loads(out)["tasks"]
    assert code == 0
    assert len(tasks) >= 10
    assert all(task["category"] and task["checksum"] and task["limits"]["agent_timeout"] for task in tasks)
    code, out, _ = here("evaluate", "--dry-run", "--attempts", "3", "--tasks", "git-*")
    assert code == 0
    assert "the run costs nothing" in out
    code, out, _ = here("evaluate", "--print-config", "--openai.api_key", "sk-secret", "--config", "tb2")
    assert code == 0
    assert "max_agent_turns: 60" in out
    assert "secret" not in out
    assert not Path("runs").exists()


@pytest.mark.parametrize("argv", [["ls", "--json"], ["evaluate", "--dry-run"], ["evaluate"], ["validate"]])
def test_what_is_passed_over_in_a_dataset_is_said_once(here, argv):
    for name in ("tidy-inbox", "log-report", "git-merge"):
        shutil.copytree(sample_path() / name, f"tasks/{name}")
    settings = Path("tasks/log-report/task.toml")
    settings.write_text(f"mistery = 1\n{settings.read_text()}")
    Path("tasks/git-merge/task.toml").unlink()
    Path("tasks/notes").mkdir()
    agent = [] if argv[0] in ("ls", "validate") else ["--agent", "nop"]
    code, _, err = here(*argv, "--dataset", "tasks", "--backend", "local", *agent)
    assert code == 0
    stray, unknown = err.splitlines()
    assert stray == "tb2: warning: git-merge is no task: it has no task.toml"
    assert unknown.startswith("tb2: warning: log-report: ")
    assert "mistery" in unknown


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["evaluate", "--dataset", "nowhere"], "nowhere"),
        (["evaluate", "--tasks", "git-recovr"], "git-recover"),
        (["evaluate", "--agent", "hermes"], "--openai.model_name"),
        (["evaluate", "--agent", "hermes", "--model", "m"], "--openai.base_url"),
        (["evaluate", "--agent", "hermse"], "'hermes'"),
        (["evaluate", "--model", "m", "--openai.base_url", "http://127.0.0.1:9/v1"], "http://127.0.0.1:9/v1"),
        (["evaluate", "--backend", "dokcer"], "docker"),
        (["evaluate", "--env.max_agent_trns", "5"], "env.max_agent_turns"),
        (["evaluate", "--category", "gti"], "git"),
        (["evaluate", "--config", "tb3"], "tb2"),
        (["evaluate", "--name", "../run"], "run.name"),
        (["evaluate", "--name", "a/b"], "without a slash"),
        (["evaluate", "--name", ".."], "run.name"),
        (["evaluate", "--verifier", "fresh"], "--backend docker"),
        (["evaluate", "--keep-state"], "--keep-state needs snapshots"),
        (["evaluate", "--timeout-multiplier", "inf"], "env.timeout_multiplier"),
        (["evaluate", "--run.agent_options", '{"latency": "long"}'], "latency"),
        (["validate", "--attempts", "3"], "--repeats"),
        (["validate", "--run.attempts", "3"], "--repeats"),
        (["validate", "--repeats", "0"], "--repeats"),
        (["resume", "nowhere"], "not a run folder"),
        (["report", "nowhere"], "not a run folder"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(here, argv, said):
    code, out, err = here(*argv)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert not Path("runs").exists()


AGENT = """
from hermes_benchmarks.agents import RunAgent
from hermes_envs import AgentResult
def make(config):
    async def agent(messages, session):
        await session.sandbox.exec(config.run.agent_options["command"])
        return AgentResult(messages=list(messages))
    return RunAgent(lambda task: agent, model="theirs")
"""


def test_an_agent_of_another_distribution(here, monkeypatch):
    Path("their_agent.py").write_text(AGENT)
    Path("theirs-1.dist-info").mkdir()
    points = "[hermes_benchmarks.agents]\ntheirs = their_agent:make\nbroken = no_such_module:make\n"
    Path("theirs-1.dist-info/entry_points.txt").write_text(points)
    Path("theirs-1.dist-info/METADATA").write_text("Name: theirs\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    options = (
        "--name",
        "run",
        "--tasks",
        "broken-links",
        "--run.agent_options",
        '{"command": "touch acted"}',
    )
    code, _, err = here("evaluate", "--agent", "theirs", *options)
    assert (code, err) == (0, "")
    (record,) = results(Path("runs/run")).values()
    assert (record["agent"], record["model"], record["verdict"]) == ("theirs", "theirs", "failed")
    code, _, err = here("evaluate", "--agent", "broken")
    assert (code, err.count("\n")) == (2, 1)
    assert "'broken' (no_such_module:make) cannot be loaded" in err


@pytest.mark.slow
def test_figures_go_to_wandb(tmp_path):
    argv = ("evaluate", "--agent", "nop", "--tasks", "broken-links", "--name", "run", "--env.use_wandb")
    code, out, _ = tb2(tmp_path, *argv, WANDB_MODE="offline", WANDB_DIR=str(tmp_path), WANDB_SILENT="true")
    assert code == 0
    assert "wandb: " in out
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_without_wandb_the_results_are_in_the_folder(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    argv = ("evaluate", "--agent", "nop", "--tasks", "broken-links", "--name", "run", "--env.use_wandb")
    code, out, err = here(*argv)
    assert (code, err) == (0, "")
    assert "wandb is not installed" in out
    assert len(results(Path("runs/run"))) == 1


def test_a_wrong_key_in_a_yaml_file_and_a_malformed_task_name_their_files(here):
    Path("mine.yaml").write_text("env:\n  max_agent_turnz: 3\n")
    code, _, err = here("evaluate", "--config", "mine.yaml")
    assert code == 2
    assert "mine.yaml" in err
    assert "max_agent_turns" in err
    task = Path("tasks/one")
    (task / "tests").mkdir(parents=True)
    (task / "environment").mkdir()
    (task / "instruction.md").write_text("Do it.")
    (task / "tests/test.sh").write_text("true")
    (task / "environment/Dockerfile").write_text("FROM scratch")
    (task / "task.toml").write_text('[agent]\ntimeout_sec = "soon"\n')
    code, _, err = here("evaluate", "--dataset", "tasks", "--agent", "nop")
    assert code == 2
    assert "task.toml: agent.timeout_sec" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("agent", "size"), [("scripted", 12_000), ("scripted", 20_000), ("nop", 20_000)])
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path, agent, size):
    """It happens in the first trial, in a later one, and when all are graded and the report is written."""
    arguments = ("evaluate", "--agent", agent, "--tasks", SHORT, "--name", "run")
    code, out, err = tb2(tmp_path, *arguments, file_size=size)
    assert code == 3, err
    assert err.startswith("tb2: cannot ")
    assert err.count("\n") == 1
    assert "tb2 resume runs/run" in out
    before = {
        name: one
        for name, one in results(tmp_path / "runs/run").items()
        if one["verdict"] in ("passed", "failed")
    }
    code, _, err = tb2(tmp_path, "resume", "runs/run")
    assert (code, err) == (0, "")
    after = results(tmp_path / "runs/run")
    assert len(after) == 3
    assert before.items() <= after.items()
    assert not list((tmp_path / "runs").rglob("*.partial"))


@pytest.mark.parametrize("shell", ["PYTHONIOENCODING=ascii {}", "{} >&-", "{} >&- 2>&-"])
def test_a_stream_that_cannot_show_the_output_stops_nothing(tmp_path, shell):
    line = shell.format(f"{sys.executable} -c '{CODE}' evaluate --agent nop --tasks broken-links --name run")
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, env=environment(), capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(results(tmp_path / "runs/run")) == 1
