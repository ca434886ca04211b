"""The command line: every field, its layers, and what is said of mistakes."""

import json
import logging
import os
import sys
from enum import Enum
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest
from atropos_world import TOKENIZER, run_program
from hermes_envs.atropos import HermesAgentEnvConfig, ServerConfig, cli
from hermes_envs.atropos.environments.harbor import HarborEnv
from hermes_envs.atropos.environments.terminal_test import TerminalTestEnv
from hermes_envs.atropos.redaction import redacted
from hermes_envs.config import ConfigError
from policy_server import PolicyServer, file_writer
from say_env import SayEnv

pytestmark = pytest.mark.atropos

SEED_YAML = """
env:
  enabled_toolsets: ["terminal", "file"]
  max_agent_turns: 60
  max_token_length: 32000
  agent_temperature: 0.8
  terminal_backend: "modal"
  terminal_timeout: 300
  dataset_name: "NousResearch/terminal-bench-2"
  tokenizer_name: "NousResearch/Hermes-3-Llama-3.1-8B"
  use_wandb: true
  wandb_name: "my-benchmark"

openai:
  base_url: "https://openrouter.ai/api/v1"
  model_name: "anthropic/claude-sonnet-4.6"
  server_type: "openai"
  health_check: false
"""


def configured(*arguments: str, env=TerminalTestEnv):
    return cli.configured(env, cli.parse(["process", *arguments]))


def test_the_yaml_of_the_reference_loads_and_the_command_line_wins(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(SEED_YAML)
    config, (server,) = configured(
        "--config", str(path), "--openai.model_name", "anthropic/claude-opus-4.6", "--env.max_agent_turns=7"
    )
    assert config.enabled_toolsets == ["terminal", "file"]
    assert (config.max_agent_turns, config.max_token_length, config.agent_temperature) == (7, 32000, 0.8)
    assert (config.terminal_backend, config.terminal_timeout, config.wandb_name) == (
        "modal",
        300,
        "my-benchmark",
    )
    assert (server.model_name, server.server_type) == ("anthropic/claude-opus-4.6", "openai")
    assert config.group_size == 3  # config_init's, which neither names


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        (["--env.enabled_toolsets", "terminal,file"], "enabled_toolsets", ["terminal", "file"]),
        (["--env.enabled_toolsets", '["web"]'], "enabled_toolsets", ["web"]),
        (
            ["--env.extra_body", '{"provider": {"order": ["a"]}}'],
            "extra_body",
            {"provider": {"order": ["a"]}},
        ),
        (["--env.total_steps", "-1"], "total_steps", -1),
        (["--env.worker_timeout=-1"], "worker_timeout", -1),
        (["--env.use_wandb", "true"], "use_wandb", True),
        (["--env.overwrite"], "overwrite", True),
        (["--env.system_prompt", "none"], "system_prompt", None),
        (["--env.reasoning_effort", "none"], "reasoning_effort", "none"),
        (["--env.eval_handling", "LIMIT_TRAIN"], "eval_handling", None),
        (["--format", "sharegpt"], "process_format", "sharegpt"),
        (["--env.terminal_env", '{"A": "b"}'], "terminal_env", {"A": "b"}),
    ],
)
def test_every_kind_of_field_is_set_from_the_command_line(flags, name, value):
    config, _ = configured(*flags)
    found = getattr(config, name)
    assert found == value or (name == "eval_handling" and found.value == "LIMIT_TRAIN")


PARTICULAR = {
    "tool_call_parser": "mistral",
    "distribution": "development",
    "tool_options": {"web": {"provider": "exa", "allow_hosts": ["a:1"]}},
    "max_reasoning_tokens": 2048,
    "terminal_env": {"A": "b"},
    "top_p": 0.5,
    "eval_limit_ratio": 0.25,
    "rows": "rollout",
    "reasoning_effort": "low",
    "api_key": "k",
}


def other_value(name, annotation, default):
    """A value of a field's type that is not its default."""
    if name in PARTICULAR:
        return PARTICULAR[name]
    union = get_origin(annotation) in (Union, UnionType)
    for kind in get_args(annotation) if union else (annotation,):
        inner = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(inner) is Literal:
            return next(option for option in get_args(inner) if option != default)
        base = get_origin(inner) or inner
        if issubclass(base, Enum):
            return next(member.value for member in base if member is not default)
        found = {
            bool: not default,
            int: 7,
            float: 7.5,
            str: "text",
            list: ["a", "b"],
            dict: {"a": {"b": [1]}},
        }
        if base in found:
            return found[base]
    raise AssertionError(f"{name}: {annotation}")


class BareEnv(SayEnv):
    """Nothing set but what lets every other field be set alone."""

    @classmethod
    def config_init(cls):
        return HermesAgentEnvConfig(rows="segments"), [ServerConfig()]


@pytest.mark.parametrize("model", [HermesAgentEnvConfig, ServerConfig])
def test_every_field_is_set_from_yaml_and_from_the_command_line(model, tmp_path):
    section = "env" if model is HermesAgentEnvConfig else "openai"
    for name, field in model.model_fields.items():
        value = other_value(name, field.annotation, field.default)
        text = json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps({section: {name: value}}))  # JSON is YAML
        for arguments in (
            ["--config", str(path)],
            [f"--{section}.{name}", text],
            [f"--{section}.{name}={text}"],
        ):
            config, (server,) = configured(*arguments, env=BareEnv)
            found = getattr(config if section == "env" else server, name)
            plain = found.value if isinstance(found, Enum) else found
            assert plain == value, (name, arguments)


def test_lists_of_an_environments_own_fields():
    config, _ = configured(
        "--env.task_filter", "fix-git,git-multibranch", "--env.skip_tasks", '["a"]', env=HarborEnv
    )
    assert (config.task_filter, config.skip_tasks) == (["fix-git", "git-multibranch"], ["a"])


def test_several_servers(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(
        "openai:\n  - base_url: http://a/v1\n    server_type: vllm\n  - base_url: http://b/v1\n    server_type: vllm\n"
    )
    _, servers = configured("--config", str(path), "--openai.model_name", "m")
    assert [(s.base_url, s.model_name) for s in servers] == [("http://a/v1", "m"), ("http://b/v1", "m")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--env.max_agent_turn", "3"], "max_agent_turns"),
        (["--openai.modelname", "x"], "model_name"),
        (["--environment.x", "1"], "unknown key"),
        (["--env.terminal_backend", "cloud"], "docker"),
        (["--env.tool_call_parser", "nonsense"], "hermes"),
        (["--env.reasoning_effort", "extreme"], "xhigh"),
        (["--env.max_agent_turns", "many"], "max_agent_turns"),
        (["--env.distribution", "default"], "exclude"),
        (["--env.history", "template"], "segments"),
        (["--config", "no-such.yaml"], "no-such.yaml"),
        (["positional"], "no flag"),
        (["--env", "1"], "unknown key 'env'"),
        (["--env.group_size", "0"], "group_size"),
        (["--env.max_num_workers", "0"], "max_num_workers"),
    ],
)
def test_mistakes_are_named(arguments, says):
    with pytest.raises(ConfigError, match=says):
        configured(*arguments)


def test_an_unknown_yaml_key_is_an_error(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("env:\n  max_agent_turs: 3\n")
    with pytest.raises(ConfigError, match=r"max_agent_turs.*max_agent_turns"):
        configured("--config", str(path))


def test_secrets_are_hidden():
    config = HermesAgentEnvConfig(
        terminal_env={"ANYTHING": "s3cret"},
        backend_options={"api_key": "s3cret", "x": 1},
        tool_options={"web": {"provider": "brave", "keys": {"brave": "s3cret"}}},
    )
    server = ServerConfig(api_key="s3cret", base_url="https://user:s3cret@host/v1")
    shown = repr(redacted(config)) + repr(redacted(server))
    assert "s3cret" not in shown and "ANYTHING" in shown and "'x': 1" in shown and "brave" in shown


def test_secrets_are_hidden_under_every_name_they_go_by():
    secrets = {
        "headers": {"x-api-key": "s3cret", "Authorization": "Bearer s3cret", "Cookie": "s3cret"},
        "provider": {"access_key": "s3cret", "apiKey": "s3cret", "aws_access_key_id": "s3cret"},
        "auth": "s3cret",
        "private_key": ["s3cret"],
        "credentials": {"user": "s3cret", "value": 12345},
        "registry_auth": {"username": "s3cret", "pass": "s3cret"},
        "modal_token_id": "s3cret",
        "url": "https://host/v1?api_key=s3cret&model=shown&token=s3cret#end",
        "several": ["http://s3cret:s3cret@host/", "/path?sig=s3cret"],
    }
    shown = redacted(secrets)
    assert "s3cret" not in repr(shown) and "12345" not in repr(shown)
    assert shown["url"] == "https://host/v1?api_key=***&model=shown&token=***#end"
    harmless = {
        "max_tokens": 5,
        "token_budget": 6,
        "tokenizer_name": "x",
        "author": "y",
        "monkey": "z",
        "password": None,
        "token_route": "auto",
        "question": "a?b=c",
    }
    assert redacted(harmless) == harmless


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(HarborEnv, ["process", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--env.max_agent_turns", "--env.task_filter", "--openai.base_url", "--format"):
        assert option in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("env: 5", "env in .* must be a mapping"),
        ("openai: [m]", "openai in .* must be a mapping"),
        ("5: 6", "unknown key '5'"),
    ],
)
def test_yaml_of_another_shape_is_an_error(text, says, tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        configured("--config", str(path))


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_program_end_to_end_without_a_hub(tmp_path):
    async with PolicyServer(TOKENIZER, file_writer) as server:
        code, out, err = await run_program(
            "hermes_envs.atropos.environments.terminal_test",
            "process",
            *("--openai.base_url", f"{server.url}/v1", "--openai.api_key", "s3cret-key"),
            *("--env.data_path_to_save_groups", str(tmp_path / "out.jsonl"), "--env.group_size", "1"),
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            cwd=tmp_path,
        )
    assert code == 0, err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    assert "s3cret-key" not in out + err


@pytest.fixture
def log_levels():
    """`main` sets the levels of the root logger's handlers, which are pytest's here."""
    levels = [(handler, handler.level) for handler in logging.getLogger().handlers]
    yield
    for handler, level in levels:
        handler.setLevel(level)


@pytest.mark.usefixtures("log_levels")
def test_the_programs_errors_are_one_sentence_and_code_2(tmp_path, capsys):
    blocked = tmp_path / "file" / "out.jsonl"
    blocked.parent.touch()
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (broken / name).write_text("{")
    for arguments, says in (
        (["process", "--env.nonsense", "1"], "nonsense"),
        (["serve", "--openai.server_type", "openai"], "allow_placeholder"),
        (["process", "--output", str(blocked)], f"cannot use {blocked.parent}"),
        (
            ["process", "--output", str(tmp_path / "out.jsonl"), "--env.enabled_toolsets", "termnal"],
            "Did you mean 'terminal'",
        ),
        (["evaluate", "--env.tokenizer_name", str(tmp_path / "none")], f"tokenizer {tmp_path / 'none'}"),
        (["evaluate", "--env.tokenizer_name", str(broken)], f"tokenizer {broken}"),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(TerminalTestEnv, arguments)
        said = capsys.readouterr().err
        assert stopped.value.code == 2 and said.startswith("error: ") and says in said


def test_the_seeds_environment_class_runs_with_only_its_imports_changed(monkeypatch):
    class MyEnvConfig(HermesAgentEnvConfig):
        my_custom_field: str = "default_value"

    class MyEnv(SayEnv):
        name = "my-env"
        env_config_cls = MyEnvConfig

        @classmethod
        def config_init(cls):
            env_config = MyEnvConfig(
                enabled_toolsets=["terminal", "file"],
                terminal_backend="modal",
                max_agent_turns=30,
            )
            from atroposlib.envs.server_handling.server_manager import APIServerConfig

            server_configs = [
                APIServerConfig(
                    base_url="https://openrouter.ai/api/v1",
                    model_name="anthropic/claude-sonnet-4.6",
                    server_type="openai",
                )
            ]
            return env_config, server_configs

    monkeypatch.setattr(sys, "argv", ["my_env.py", "process", "--env.my_custom_field", "mine"])
    config, (server,) = cli.configured(MyEnv, cli.parse(sys.argv[1:]))
    assert config.my_custom_field == "mine"
    assert server.model_name == "anthropic/claude-sonnet-4.6"
