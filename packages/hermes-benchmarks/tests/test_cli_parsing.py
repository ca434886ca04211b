import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hermes_benchmarks.cli.app import VERBS, run_cli
from hermes_benchmarks.cli.options import DOTTED, How, What, Who, dotted
from hermes_benchmarks.cli.program import Program, split_dotted
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.lookup import load_object
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("line", "rest", "keys"),
    [
        ("--env.task_filter a,b -k 2", ["-k", "2"], {"env.task_filter": "a,b"}),
        ("--env.task-filter=a", [], {"env.task_filter": "a"}),
        ("--run.retry_wait -1 x", ["x"], {"run.retry_wait": "-1"}),
        ("--env.use_wandb --dry-run", ["--dry-run"], {"env.use_wandb": "true"}),
        ("--openai.api_key=", [], {"openai.api_key": ""}),
        ("--other.key 1", ["--other.key", "1"], {}),
        ("-- --env.a 1", ["--", "--env.a", "1"], {}),
        ("--run.agent_options.latency 20", [], {"run.agent_options.latency": "20"}),
    ],
)
def test_dotted_keys_are_taken_out(line, rest, keys):
    assert split_dotted(line.split()) == (rest, keys)


@given(st.lists(st.text(max_size=12), max_size=8))
def test_nothing_of_a_command_line_is_lost(argv):
    rest, keys = split_dotted(argv)
    if not keys:
        assert rest == argv


def test_every_flag_stands_for_a_key_of_the_terminal_bench_configuration():
    from hermes_benchmarks.terminal_bench import TerminalBenchConfig
    from hermes_envs.config import dotted_keys

    assert set(DOTTED.values()) <= set(dotted_keys(TerminalBenchConfig))
    assert dotted(What(tasks="a"), Who(model="m"), How(attempts=2)) == {
        "env.task_filter": "a",
        "openai.model_name": "m",
        "run.attempts": "2",
    }


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_every_parameter_described(verb, capsys):
    assert run_cli("tb2", "hermes_benchmarks.terminal_bench:TerminalBench2", [verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: tb2 " + verb in shown


def test_the_version_is_that_of_the_package(capsys):
    assert run_cli("ycb", "none", ["--version"]) == 0
    assert capsys.readouterr().out == f"hermes-benchmarks {version('hermes-benchmarks')}\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from hermes_benchmarks.cli.app import run_cli; run_cli('tb2', 'none', ['--help']);"
        "print(sorted({'pydantic', 'openai', 'aiohttp', 'jinja2', 'hermes_envs', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "evaluate" in done.stdout


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["evalute"], "evaluate"),
        (["evaluate", "--agnet", "x"], "--agent"),
        (["evaluate", "--attempts", "many"], "--attempts"),
        (["resume"], "RUN"),
        (["merge", "a"], "--output"),
        (["evaluate", "--shard", "3/2"], "run.shard"),
        (["evaluate", "--shard", "0/2"], "run.shard"),
        (["evaluate", "--shard", "x"], "such as 1/3"),
        (["evaluate", "--agent", "nop", "--output", "/proc/none"], "/proc/none"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(argv, said, capsys):
    assert run_cli("tb2", "hermes_benchmarks.terminal_bench:TerminalBench2", argv) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("tb2: ")
    assert shown.count("\n") == 1
    assert said in shown


def test_the_command_that_goes_on_can_be_pasted():
    assert Program("tb2", "none").resume(Path("my runs/a")) == "tb2 resume 'my runs/a'"


def test_a_key_never_leaves_the_configuration():
    config = EvaluationConfig.model_validate({"openai": {"api_key": "sk-secret"}})
    assert "secret" not in str(config.to_dict())
    assert "secret" not in repr(config)


def test_objects_are_found_by_name():
    assert load_object("hermes_benchmarks.verdict:Verdict.PASSED") == "passed"


SEED = """
env:
  enabled_toolsets: ["terminal", "file"]
  max_agent_turns: 60
  max_token_length: 32000
  agent_temperature: 0.8
  terminal_backend: "modal"
  terminal_timeout: 300
  dataset_name: "NousResearch/terminal-bench-2"
  tokenizer_name: "NousResearch/Hermes-3-Llama-3.1-8B"
  test_timeout: 600
  task_timeout: 1800
  tool_pool_size: 128
  eval_handling: STOP_TRAIN
  steps_per_eval: 1
  total_steps: 1
  use_wandb: true
  wandb_name: "my-benchmark"

openai:
  base_url: "https://openrouter.ai/api/v1"
  model_name: "anthropic/claude-sonnet-4.6"
  server_type: "openai"
  health_check: false
"""


def test_yaml_written_for_the_reference_loads_unchanged(tmp_path, capsys):
    path = tmp_path / "default.yaml"
    path.write_text(SEED)
    argv = ["evaluate", "--config", str(path), "--openai.model_name", "another", "--print-config"]
    assert run_cli("tb2", "hermes_benchmarks.terminal_bench:TerminalBench2", argv) == 0
    shown = capsys.readouterr().out
    for line in ("terminal_backend: modal", "model_name: another", "wandb_name: my-benchmark"):
        assert line in shown


@pytest.mark.parametrize(
    "name", ["tb2", "tb2-docker-vllm", "tb2-modal", "tblite", "tblite-docker-vllm", "tblite-modal"]
)
def test_shipped_configurations_load(name, capsys):
    cls = "TBLite" if name.startswith("tblite") else "TerminalBench2"
    argv = ["evaluate", "--config", name, "--print-config"]
    assert run_cli(name, f"hermes_benchmarks.terminal_bench:{cls}", argv) == 0
    assert "max_token_length: 32000" in capsys.readouterr().out
