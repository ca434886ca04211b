"""Configuration of an environment: Atropos' own fields and what agentic rollouts need besides."""

import json
from typing import Annotated, Any, Literal

from hermes_parsers import list_parsers
from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from hermes_envs.toolset import tool_options

from .library import BaseEnvConfig, EvalHandlingEnum
from .resources import DEFAULT_TOKENIZER

Backend = Literal["local", "docker", "modal", "daytona", "ssh", "singularity"]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
OutputFormat = Literal["trajectories", "groups", "sharegpt", "openai", "atif"]


def _list_from_text(value: Any) -> Any:
    """Lists may be given as JSON or with commas."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("["):
        return json.loads(text)
    return [part.strip() for part in text.split(",") if part.strip()]


def _dict_from_text(value: Any) -> Any:
    """Dicts may be given as JSON."""
    return json.loads(value) if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_list_from_text)]
"""A list of names; on the command line `a,b` or JSON."""
Options = Annotated[dict[str, Any], BeforeValidator(_dict_from_text)]
"""A dict; on the command line JSON."""
Variables = Annotated[dict[str, str], BeforeValidator(_dict_from_text)]
"""Environment variables; on the command line JSON."""


class HermesAgentEnvConfig(BaseEnvConfig):
    """What a user sets under `env:` in YAML, or as `--env.NAME` on the command line. An unknown name is an error."""

    model_config = ConfigDict(extra="forbid")

    enabled_toolsets: Names | None = Field(
        default=None, description="Toolsets the agent gets; unset is every one that works"
    )
    disabled_toolsets: Names | None = Field(default=None, description="Toolsets to leave out")
    distribution: str | None = Field(
        default=None, description="Toolset distribution to draw from, once per group, less disabled_toolsets"
    )
    tool_options: Options = Field(
        default_factory=dict,
        description='Settings of toolsets: {"web": {"provider": "searxng", …}, "browser": {…}}',
    )
    max_agent_turns: int = Field(default=30, ge=1, description="Model calls of one rollout")
    agent_temperature: float = Field(default=1.0, ge=0, description="Sampling temperature")
    system_prompt: str | None = Field(default=None, description="System message of every rollout")

    terminal_backend: Backend = Field(default="local", description="Where sandboxes run")
    terminal_timeout: float = Field(default=120, gt=0, description="Seconds of one terminal command")
    terminal_lifetime: float = Field(
        default=3600, gt=0, description="Seconds after which a sandbox is removed, used or not"
    )
    terminal_image: str | None = Field(default=None, description="Image of the sandboxes")
    terminal_workdir: str | None = Field(default=None, description="Working directory in the sandbox")
    terminal_env: Variables = Field(default_factory=dict, description="Environment variables in the sandbox")
    terminal_cpus: float | None = Field(default=None, gt=0, description="CPU limit of a sandbox")
    terminal_memory_mb: int | None = Field(default=None, gt=0, description="Memory limit of a sandbox")
    terminal_network: Literal["open", "none"] | None = Field(default=None, description="Network of a sandbox")
    terminal_strict: bool = Field(default=True, description="Refuse limits that the backend cannot enforce")
    backend_options: Options = Field(default_factory=dict, description="Options of the sandbox backend")
    max_sandboxes: int = Field(default=64, ge=1, description="Sandboxes alive at once")

    dataset_name: str | None = Field(default=None, description="Dataset to load")
    dataset_split: str = Field(default="train", description="Split of the dataset")
    prompt_field: str = Field(default="prompt", description="Column that holds the prompt")

    tool_pool_size: int = Field(default=128, ge=1, description="Threads for blocking tools")
    tool_call_parser: str = Field(
        default="hermes",
        description='Tool-call format of the policy; "auto" goes by its name, an error where that tells none',
    )
    extra_body: Options | None = Field(default=None, description="Further fields of every model request")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling")

    rollout_timeout: float | None = Field(
        default=None,
        gt=0,
        description="Seconds for the agent of one rollout; at most, and unless set, a little less than "
        "terminal_lifetime",
    )
    reward_timeout: float = Field(default=600, gt=0, description="Seconds for the reward function")
    token_budget: int | None = Field(default=None, gt=0, description="Tokens read and sampled by one rollout")
    cost_budget: float | None = Field(default=None, gt=0, description="Dollars for one rollout")
    context_length: int | None = Field(
        default=None, gt=0, description="Tokens of prompt and reply that the policy takes"
    )
    max_rollout_attempts: int = Field(
        default=3, ge=1, description="Runs of a rollout that infrastructure keeps failing"
    )
    seed: int | None = Field(default=None, description="Seed of tool draws and of sampling")

    history: Literal["append", "template"] = Field(
        default="append", description="Keep what was sampled in context, or re-render it by the chat template"
    )
    rows: Literal["rollout", "segments"] = Field(
        default="rollout", description="One training row a rollout, or one per segment with advantages"
    )
    token_route: Literal["auto", "/generate", "/inference/v1/generate"] = Field(
        default="auto", description="Token route of a vllm server; auto tries both"
    )
    allow_placeholder: bool = Field(
        default=False, description="Let serve run without token ids (nothing can be trained)"
    )

    process_format: OutputFormat = Field(
        default="trajectories", description="Lines that process writes; also --format"
    )
    overwrite: bool = Field(
        default=False, description="Start the output file of process anew instead of resuming it"
    )

    # Differing defaults and bounds of Atropos' own fields.
    group_size: int = Field(default=4, ge=1, description="Rollouts of one task that are scored together")
    tokenizer_name: str = Field(
        default=str(DEFAULT_TOKENIZER), description="Tokenizer: a folder or a Hugging Face name"
    )
    thinking_mode: bool = Field(default=False, description="Ask servers of server_type openai to reason")
    reasoning_effort: ReasoningEffort | None = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=None, description="Likewise, how hard"
    )
    max_reasoning_tokens: int | None = Field(
        default=None,
        ge=1024,
        le=32000,
        description="Likewise, tokens to reason with, where no effort is set; api.openai.com takes efforts only",
    )
    custom_thinking_prompt: str | None = Field(
        default=None, description="Text before the system message, for models that it makes think"
    )
    use_wandb: bool = Field(default=False, description="Log to Weights & Biases")
    worker_timeout: float = Field(
        default=-1, description="Seconds for a whole group, -1 for none; see rollout_timeout"
    )
    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="While evaluating, start no groups, fewer (LIMIT_TRAIN) or as many",
    )
    include_messages: bool = Field(default=True, description="Send the conversations to the trainer too")

    @field_validator("tool_options")
    @classmethod
    def _known_options(cls, settings: dict[str, Any]) -> dict[str, Any]:
        tool_options(settings)
        return settings

    @field_validator("tool_call_parser")
    @classmethod
    def _known_parser(cls, name: str) -> str:
        if name != "auto" and name not in list_parsers():
            raise ValueError(f"unknown tool_call_parser {name!r}: one of auto, {', '.join(list_parsers())}")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> "HermesAgentEnvConfig":
        if self.distribution is not None and self.enabled_toolsets is not None:
            raise ValueError(
                "distribution and enabled_toolsets exclude each other: set one of them, and the other to none"
            )
        if self.max_num_workers == 0:
            raise ValueError("max_num_workers 0 would run nothing: -1 goes by max_num_workers_per_node")
        if self.history == "template" and self.rows == "rollout":
            raise ValueError('history "template" splits rollouts into segments: it needs rows "segments"')
        return self
