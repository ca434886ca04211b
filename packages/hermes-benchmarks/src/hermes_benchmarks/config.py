"""What an evaluation can be told: defaults, overridden by YAML, overridden by the command line.

Three namespaces: `env` (the benchmark and its sandboxes; the names are those of Atropos environments,
so that their YAML files load unchanged), `openai` (the model) and `run` (this run).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def split_names(value: object) -> object:
    """`a, b` as a list of names; lists and None pass."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


LONGEST_NAME = 200
"""Characters of a run's name: it becomes part of file names and labels."""
SECRET_OPTIONS = frozenset({"api_key", "token", "token_secret", "password"})
"""Options of sandbox backends that are written nowhere. A resumed run takes them from the environment again."""
Names = Annotated[list[str], BeforeValidator(split_names)]
"""A list, or a string of names with commas between."""


def check_shard(text: str) -> str:
    """Refuse what is no `i/n` with i from 1 to n."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError(f"expected i/n with i from 1 to n, such as 1/3, found {text!r}")
    return f"{int(part)}/{int(parts)}"


def check_name(text: str) -> str:
    """Refuse what is not the name of one folder."""
    if text in ("", ".", "..") or "/" in text or not text.isprintable() or len(text) > LONGEST_NAME:
        raise ValueError(f"expected the name of one folder, printable and without a slash, found {text!r}")
    return text


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a sandbox backend that may be written down."""
    return {name: value for name, value in options.items() if name not in SECRET_OPTIONS}


RunName = Annotated[str, AfterValidator(check_name)]
"""The name of a run's folder."""
Shard = Annotated[str, AfterValidator(check_shard)]
"""A part of a run, as `i/n`."""


class ConfigModel(BaseModel):
    """A namespace of options; an unknown key is an error, and so is a number that JSON cannot hold."""

    model_config = ConfigDict(
        extra="forbid", use_attribute_docstrings=True, validate_default=True, allow_inf_nan=False
    )


class AtroposFields(ConfigModel):
    """Fields of Atropos environments that an evaluation has no use for: accepted, so that their YAML loads."""

    batch_size: Any = None
    custom_thinking_prompt: Any = None
    ensure_scores_are_not_same: Any = None
    eval_handling: Any = None
    eval_limit_ratio: Any = None
    group_size: Any = None
    include_messages: Any = None
    inference_weight: Any = None
    max_batches_offpolicy: Any = None
    max_eval_workers: Any = None
    max_num_workers: Any = None
    max_num_workers_per_node: Any = None
    max_reasoning_tokens: Any = None
    min_batch_allocation: Any = None
    min_items_sent_before_logging: Any = None
    num_rollouts_per_group_for_logging: Any = None
    num_rollouts_to_keep: Any = None
    reasoning_effort: Any = None
    rollout_server_url: Any = None
    steps_per_eval: Any = None
    thinking_mode: Any = None
    tokenizer_name: Any = None
    tool_call_parser: Any = None
    tool_pool_size: Any = None
    total_steps: Any = None
    worker_timeout: Any = None
    data_path_to_save_groups: Any = None


class EnvConfig(AtroposFields):
    """The options every benchmark has."""

    enabled_toolsets: Names | None = None
    """Toolsets that the agent may use."""
    disabled_toolsets: Names | None = None
    """Toolsets to leave out."""
    max_agent_turns: int = Field(default=30, ge=1)
    """Model calls before the agent is stopped."""
    max_token_length: int | None = Field(default=None, ge=1)
    """Tokens the model may sample in one reply."""
    agent_temperature: float | None = 1.0
    """Sampling temperature; null leaves it to the server."""
    extra_body: dict[str, Any] | None = None
    """More fields for the model's request, such as OpenRouter's provider preferences."""
    system_prompt: str | None = None
    """System message for the agent."""
    terminal_backend: str | None = None
    """Where tasks run: local, docker, modal, daytona, ssh, singularity."""
    terminal_timeout: float = Field(default=120.0, gt=0)
    """Seconds for one command of the agent."""
    terminal_lifetime: float | None = Field(default=None, gt=0)
    """Seconds after which a sandbox is deleted whatever happens."""
    backend_options: dict[str, Any] = {}
    """Options of the sandbox backend."""
    task_filter: Names | None = None
    """Tasks to run, by name or glob."""
    skip_tasks: Names = []
    """Tasks to leave out, by name or glob."""
    data_dir_to_save_evals: Path | None = None
    """Where else `metrics.json` and `samples.jsonl` go; they are always in the run folder."""
    use_wandb: bool = False
    """Log the final figures to Weights & Biases."""
    wandb_name: str | None = None
    """Name of the wandb run."""


class PriceConfig(ConfigModel):
    """US dollars per million tokens, for servers that do not report a cost."""

    prompt: float = Field(ge=0)
    """For tokens read."""
    completion: float = Field(ge=0)
    """For tokens sampled."""
    cached: float | None = Field(default=None, ge=0)
    """For tokens read from the provider's cache; as `prompt` when null."""


class ModelConfig(ConfigModel):
    """The model and its OpenAI-compatible endpoint."""

    model_name: str | None = None
    """The model, by the name that its server knows; OPENAI_MODEL by default, for agent hermes."""
    base_url: str | None = None
    """The endpoint, ending in /v1; OPENAI_BASE_URL or OpenRouter where there is a key for one of them."""
    api_key: SecretStr | None = None
    """The key; OPENAI_API_KEY or OPENROUTER_API_KEY by default. Never written anywhere."""
    timeout: float = Field(default=1200.0, gt=0)
    """Seconds for one request."""
    parser: str | None = None
    """Tool-call format of the model, for a server that returns raw text; null where the server parses."""
    price: PriceConfig | None = None
    """What tokens cost, such as {"prompt": 1.25, "completion": 10}; a cost that the server reports comes first."""
    num_max_requests_at_once: int = Field(default=512, ge=1)
    """Requests in flight at once."""
    server_type: Any = None
    health_check: Any = None
    num_requests_for_eval: Any = None
    rolling_buffer_length: Any = None
    n_kwarg_is_ignored: Any = None
    weight: Any = None


class RunConfig(ConfigModel):
    """This run."""

    agent: str | None = None
    """Who acts: scripted, hermes, oracle, nop, or an agent from an entry point."""
    agent_options: dict[str, Any] = {}
    """Options of the agent, such as {"latency": 20} for scripted."""
    attempts: int = Field(default=1, ge=1)
    """Independent attempts at each task."""
    concurrency: int = Field(default=4, ge=1)
    """Trials at once."""
    sandbox_starts: int = Field(default=8, ge=1)
    """Sandboxes being created at once, image builds included."""
    output: Path = Path("runs")
    """The folder in which the run's own folder is made."""
    name: RunName | None = None
    """The name of the run's folder; from benchmark, agent, model and time by default."""
    shard: Shard | None = None
    """i/n: run the i-th of n parts; `merge` puts them together."""
    retries: int = Field(default=2, ge=0)
    """How often an ungraded trial is tried again."""
    retry_wait: float = Field(default=5.0, ge=0)
    """Seconds before the first retry; each later one waits three times longer."""
    outage_patience: float = Field(default=3600.0, ge=0)
    """Seconds a run waits for a provider that is down before it stops."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars after which no more trials start."""
    max_trial_cost: float | None = Field(default=None, gt=0)
    """US dollars after which an agent is stopped."""
    max_trial_tokens: int | None = Field(default=None, gt=0)
    """Tokens after which an agent is stopped."""
    progress: Literal["auto", "live", "plain", "none"] = "auto"
    """How progress is shown: a live display, or plain lines."""


class EvaluationConfig(ConfigModel):
    """Everything an evaluation can be told."""

    env: EnvConfig = EnvConfig()
    openai: ModelConfig = ModelConfig()
    run: RunConfig = RunConfig()

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, without keys."""
        data = self.model_dump(mode="json", exclude={"openai": {"api_key"}}, exclude_defaults=False)
        data["env"]["backend_options"] = without_secrets(data["env"]["backend_options"])
        return data
