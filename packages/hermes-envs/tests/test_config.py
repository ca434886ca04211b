"""Configuration: defaults < YAML < command line."""

from typing import Annotated, Any, Literal

import pytest
from hermes_envs.config import ConfigError, load_config
from pydantic import BaseModel, Field


class Env(BaseModel):
    max_agent_turns: int = 30
    terminal_backend: str = "local"
    enabled_toolsets: list[str] | None = None
    task_filter: Annotated[list[str], Field(max_length=3)] = []
    seeds: list[int] = [1]
    extra_body: dict[str, Any] | None = None
    use_wandb: bool = False
    temperature: float = 1.0
    mixed: list[str] | str | None = None
    network: Literal["open", "none"] | None = None


class OpenAI(BaseModel):
    model_name: str = "m"
    base_url: str | None = None


class Config(BaseModel):
    env: Env = Env()
    openai: OpenAI = OpenAI()
    name: str = "x"


def load(tmp_path, text="", **dotted):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return load_config(Config, path, {key.replace("__", "."): value for key, value in dotted.items()})


def test_each_layer_overrides_the_one_below(tmp_path):
    config = load(
        tmp_path,
        "env:\n  max_agent_turns: 60\n  terminal_backend: docker\nname: y\n",
        env__max_agent_turns="90",
    )
    assert (config.env.max_agent_turns, config.env.terminal_backend, config.env.temperature) == (
        90,
        "docker",
        1.0,
    )
    assert config.name == "y"


def test_defaults_are_the_lowest_layer(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("env:\n  temperature: 0.5\n")
    defaults = Config(env=Env(temperature=0.1, max_agent_turns=5))
    config = load_config(Config, path, {}, defaults=defaults)
    assert (config.env.temperature, config.env.max_agent_turns) == (0.5, 5)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("enabled_toolsets", "terminal,file", ["terminal", "file"]),
        ("enabled_toolsets", "terminal", ["terminal"]),
        ("enabled_toolsets", '["a,b", "c"]', ["a,b", "c"]),
        ("enabled_toolsets", "null", None),
        ("seeds", "[1, 2]", [1, 2]),
        ("seeds", "1, 2", [1, 2]),
        ("seeds", "-1", [-1]),
        ("extra_body", '{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("use_wandb", "true", True),
        ("use_wandb", "no", False),
        ("max_agent_turns", "-1", -1),
        ("temperature", "0.7", 0.7),
        ("mixed", "plain text, with comma", "plain text, with comma"),
        ("mixed", '["x"]', ["x"]),
        ("enabled_toolsets", ["as", "it", "is"], ["as", "it", "is"]),
    ],
)
def test_text_is_read_by_the_fields_type(tmp_path, key, text, value):
    assert getattr(load(tmp_path, **{f"env__{key}": text}).env, key) == value


def test_below_a_dict_field_any_key_goes(tmp_path):
    config = load(
        tmp_path, "env:\n  extra_body: {a: 1}\n", env__extra_body__b__c="2", env__extra_body__d="text"
    )
    assert config.env.extra_body == {"a": 1, "b": {"c": 2}, "d": "text"}


@pytest.mark.parametrize(
    ("text", "dotted", "says"),
    [
        ("env:\n  max_agent_turn: 1\n", {}, "did you mean 'env.max_agent_turns'"),
        ("evn:\n  a: 1\n", {}, "did you mean 'env'"),
        ("", {"env__terminal_backnd": "x"}, "did you mean 'env.terminal_backend'"),
        ("", {"openai__task_filter": "x"}, "did you mean 'env.task_filter'"),
        ("", {"env__temperature__x": "1"}, "env.temperature"),
        ("env:\n  temperature: hot\n", {}, "env.temperature"),
        ("", {"env__seeds": "a,b"}, "env.seeds"),
        ("", {"env__extra_body": "{a}"}, "env.extra_body"),
        ("", {"env__extra_body": "a=b"}, "JSON object"),
        ("- a\n", {}, "mapping"),
        ("a: [\n", {}, "not valid YAML"),
        ("1: 2\n", {}, "unknown key '1'"),
        ("env: {1: 2}\n", {}, "unknown key 'env.1'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, dotted, says):
    with pytest.raises(ConfigError, match=r".") as caught:
        load(tmp_path, text, **dotted)
    assert says in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no-such"):
        load_config(Config, tmp_path / "no-such.yaml")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 100_000, b"a: [\n"])
def test_a_file_that_is_no_yaml_is_named_on_one_line(tmp_path, content):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.yaml is not valid YAML: [^\n]+$"):
        load_config(Config, path)


def test_none_is_a_word_where_a_field_knows_it(tmp_path):
    assert load(tmp_path, env__network="none").env.network == "none"
    assert load(tmp_path, "env:\n  network: none\n").env.network == "none"
    assert load(tmp_path, "env:\n  network: open\n", env__network="null").env.network is None
