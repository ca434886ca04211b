import pytest
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.plan import make_plan
from hermes_benchmarks.selection import select
from hermes_benchmarks.terminal_bench import TBLite, TerminalBench2, TerminalBenchConfig
from hermes_benchmarks.terminal_bench.config import TBLiteConfig
from hermes_benchmarks.ycb import YcBench, YcBenchConfig
from hermes_benchmarks_support import record

TOML = """
version = "1.0"
[metadata]
category = "{category}"
difficulty = "hard"
[agent]
timeout_sec = 700.0
[verifier]
timeout_sec = 50.0
[environment]
docker_image = "an/image:1"
cpus = 2
memory = "3G"
"""


@pytest.fixture
def tasks(tmp_path):
    """A dataset of three tasks, one of which no Modal sandbox can run."""
    for name, category in (("alpha", "git"), ("beta", "files"), ("qemu-startup", "files")):
        folder = tmp_path / "tasks" / name
        (folder / "tests").mkdir(parents=True)
        (folder / "task.toml").write_text(TOML.format(category=category))
        (folder / "instruction.md").write_text(f"Do {name}.")
        (folder / "tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    return tmp_path / "tasks"


def evaluation(tasks, cls=TerminalBench2, config=TerminalBenchConfig, **env):
    settings = config.model_validate({"env": {"dataset_name": str(tasks), **env}, "run": {"agent": "nop"}})
    return Evaluation(cls(settings), settings)


def test_skipped_tasks_stay_visible(tasks):
    chosen = select(evaluation(tasks, terminal_backend="modal", skip_tasks="beta"))
    assert [task.name for task in chosen.tasks] == ["alpha"]
    assert {task.name: task.reason for task in chosen.skipped} == {
        "beta": "named in skip_tasks",
        "qemu-startup": "does not work on modal: it needs nested virtualisation",
    }


def test_a_task_that_cannot_be_used_can_be_left_out(tasks):
    (tasks / "beta/task.toml").write_text("[agent]\ntimeout_sec = 'soon'\n")
    with pytest.raises(UsageError, match="timeout_sec"):
        select(evaluation(tasks))
    chosen = select(evaluation(tasks, skip_tasks="beta"))
    assert [task.name for task in chosen.tasks] == ["alpha", "qemu-startup"]
    assert [(task.name, task.reason) for task in chosen.skipped] == [("beta", "named in skip_tasks")]


def test_a_task_that_is_not_supported_is_skipped_unless_it_is_asked_for_by_name(tasks):
    (tasks / "beta/task.toml").write_text("[[steps]]\n")
    chosen = select(evaluation(tasks))
    assert [task.name for task in chosen.tasks] == ["alpha", "qemu-startup"]
    ((name, reason),) = [(task.name, task.reason) for task in chosen.skipped]
    assert (name, reason.split(": ")[0]) == ("beta", "steps")
    assert "multi-step" in reason
    assert str(tasks) not in reason
    assert select(evaluation(tasks, task_filter="al*")).skipped == []
    with pytest.raises(UsageError, match=r"all 1 are skipped \(steps: "):
        select(evaluation(tasks, task_filter="b*"))
    with pytest.raises(UsageError, match="multi-step"):
        select(evaluation(tasks, task_filter="alpha,beta"))


def test_tasks_that_this_machines_docker_cannot_run_are_skipped_with_the_reason(tasks, tmp_path, monkeypatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    for name, line in (
        ("alpha", "gpus = 1"),
        ("beta", 'network_mode = "allowlist"\nallowed_hosts = ["pypi.org"]'),
    ):
        (tasks / name / "task.toml").write_text(f'[environment]\ndocker_image = "an/image:1"\n{line}\n')

    def skipped(driver):
        monkeypatch.setattr("hermes_benchmarks.terminal_bench.benchmark.GPU_DRIVERS", [driver])
        return {task.name: task.reason for task in select(evaluation(tasks)).skipped}

    network = {"beta": "Docker cannot restrict its network to some hosts"}
    assert skipped(tmp_path / "no driver") == {
        "alpha": "it needs a GPU, and this machine has no driver for one",
        **network,
    }
    assert skipped(tmp_path) == network
    monkeypatch.setenv("DOCKER_HOST", "tcp://gpu-box:2375")
    assert skipped(tmp_path / "no driver") == network


def test_tasks_with_absolute_paths_do_not_run_on_this_machine(tasks):
    with pytest.raises(UsageError, match=r"all 3 are skipped \(it needs a container"):
        select(evaluation(tasks, terminal_backend="local"))


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ({"task_filter": "*a"}, ["alpha", "beta"]),
        ({"task_filter": ["beta", "alpha"]}, ["alpha", "beta"]),
        ({"category": "files"}, ["beta", "qemu-startup"]),
        ({"category": "files", "skip_tasks": "qemu*"}, ["beta"]),
        ({"difficulty": "hard", "task_filter": "alpha"}, ["alpha"]),
        ({"task_filter": "alpha", "skip_tasks": "beta"}, ["alpha"]),
    ],
)
def test_filters(tasks, env, names):
    assert [task.name for task in select(evaluation(tasks, **env)).tasks] == names


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"task_filter": "alfa"}, "alpha"),
        ({"task_filter": "alf*"}, "there is no task 'alf\\*'"),
        ({"category": "gti"}, "did you mean 'git'"),
        ({"difficulty": "easy"}, "there are: hard"),
        ({"skip_tasks": "alfa"}, "alpha"),
    ],
)
def test_what_matches_nothing_is_named(tasks, env, said):
    with pytest.raises(UsageError, match=said):
        select(evaluation(tasks, **env))


def test_a_rollout_follows_the_task_and_the_settings(tasks):
    found = evaluation(
        tasks, timeout_multiplier=2, disabled_toolsets=["file"], max_agent_turns=5, system_prompt="Hi."
    )
    spec = found.benchmark.rollout(found.task("alpha"))
    assert spec.backend == "docker"
    assert spec.sandbox.image == "an/image:1"
    assert (spec.sandbox.cpus, spec.sandbox.memory_mb) == (2, 3072)
    assert list(spec.tools) == ["terminal"]
    assert [message["content"] for message in spec.messages] == ["Hi.", "Do alpha."]
    assert (spec.limits.deadline, spec.limits.max_turns, spec.limits.max_tokens) == (1400, 5, 32_000)
    assert spec.limits.reward_timeout > 2 * 50
    assert spec.limits.terminal_timeout == 300


def test_limits_of_the_settings_hold_where_a_task_is_silent(tasks):
    (tasks / "beta/task.toml").write_text('[environment]\ndocker_image = "an/image:1"\n')
    found = evaluation(tasks, task_timeout=1000, test_timeout=5000, timeout_multiplier=2)
    said, silent = (found.benchmark.rollout(found.task(name)).limits for name in ("alpha", "beta"))
    assert (said.deadline, silent.deadline) == (1400, 2000)
    assert silent.reward_timeout - said.reward_timeout == 2 * 2 * (5000 - 50)


def test_the_identity_knows_what_decides_results_and_nothing_else(tasks):
    def identity(**env):
        found = evaluation(tasks, **env)
        return make_plan(found, select(found)).identity

    same = identity()
    assert identity(data_dir_to_save_evals="elsewhere", wandb_name="x", terminal_lifetime=9) == same
    for change in (
        {"agent_temperature": 0.1},
        {"max_agent_turns": 7},
        {"timeout_multiplier": 2},
        {"test_timeout": 5},
        {"verifier": "fresh"},
        {"system_prompt": "Other."},
        {"task_filter": "alpha"},
    ):
        assert identity(**change).hash != same.hash, change
    (tasks / "alpha/instruction.md").write_text("Do something else.")
    differences = same.differences(identity())
    assert len(differences) == 1
    assert differences[0].startswith("tasks.alpha: ")


def test_a_local_dataset_is_found_from_anywhere(tasks, monkeypatch):
    monkeypatch.chdir(tasks.parent)
    found = evaluation("tasks")
    monkeypatch.chdir("/")
    assert len(found.tasks) == 3
    assert found.config.env.dataset_name == str(tasks)


def test_verifiers_that_disagree_are_named(tasks):
    info = {"verifier": {"disagreement": "shared: passed (1.0), fresh: failed (0.0)"}}
    said = evaluation(tasks).benchmark.notes([record("alpha", info=info), record("beta")])
    assert said == ["the verifiers disagree on alpha__1: shared: passed (1.0), fresh: failed (0.0)"]


def test_tblite_differs_by_dataset_and_timeout():
    lite = TBLite(TBLiteConfig())
    assert (lite.name, lite.env.task_timeout, lite.env.max_agent_turns) == ("tblite", 1200, 60)
    assert "NousResearch/openthoughts-tblite" in lite.advice()
    assert TerminalBench2(TerminalBenchConfig()).env.task_timeout == 1800


@pytest.mark.parametrize("item", ["log-report", {"task_name": "log-report", "difficulty": "easy"}])
async def test_a_task_can_be_scored_by_a_program(item):
    outcome = await TerminalBench2().rollout_and_score_eval(item)
    assert (outcome["passed"], outcome["reward"], outcome["task_name"]) == (True, 1.0, "log-report")
    assert outcome["trajectory"]["steps"]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("log-reprot", "did you mean 'log-report'"),
        ({"task_name": "git-mrge"}, "'git-merge'"),
        ({}, "no task 'None'"),
    ],
)
async def test_an_item_that_is_no_task_is_refused(item, said):
    with pytest.raises(UsageError, match=said):
        await TerminalBench2().rollout_and_score_eval(item)


def test_every_benchmark_has_defaults():
    assert TBLite().config == TBLiteConfig()
    assert YcBench().config == YcBenchConfig()


def test_no_key_of_a_backend_is_written_down(tasks):
    """And another key makes no other run."""
    given = {"token_id": "ak-1", "token_secret": "as-hidden", "api_key": "dtn-hidden", "region": "eu-west"}
    one = evaluation(tasks, backend_options=given)
    plan = make_plan(one, select(one))
    text = plan.model_dump_json()
    assert "hidden" not in text
    assert text.count("eu-west") == 2
    other = evaluation(tasks, backend_options=given | {"token_secret": "as-new"})
    assert make_plan(other, select(other)).identity == plan.identity
    assert one.config.env.backend_options == given
