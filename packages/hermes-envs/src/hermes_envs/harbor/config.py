"""The settings of a Harbor task, from every spelling of `task.toml` met in the wild.

Terminal-Bench 2 writes `version = "1.0"` with `memory = "2G"`; Harbor since writes `schema_version` up to
"1.4" with `memory_mb`, `network_mode` and users. All are read into one `TaskConfig`. A key that this module
does not know is reported, never fatal: newer files stay readable.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from hermes_envs.harbor.errors import TaskError, UnsupportedTask
from hermes_envs.harbor.table import Table

DEFAULT_BUILD_SECONDS = 600.0

_NETWORKS: Mapping[str, Literal["open", "none", "allowlist"]] = {
    "public": "open",
    "no-network": "none",
    "allowlist": "allowlist",
}
_KNOWN = (
    *(
        "version",
        "schema_version",
        "source",
        "task",
        "metadata",
        "agent",
        "verifier",
        "environment",
        "solution",
    ),
    *(
        "steps",
        "artifacts",
        "timeout_sec",
        "build_timeout_sec",
        "docker_image",
        "cpus",
        "memory_mb",
        "memory",
    ),
    *(
        "storage_mb",
        "storage",
        "gpus",
        "gpu_types",
        "allow_internet",
        "network_mode",
        "allowed_hosts",
        "workdir",
    ),
    *("env", "user", "healthcheck", "environment_mode"),
)


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """A command that says when the environment is ready. Times in seconds."""

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What `task.toml` says. Times in seconds, sizes in MiB; None means that the file is silent.

    Attributes:
        version: The schema version as written.
        metadata: The author's `[metadata]`, as it is.
        category: `metadata.category`, or "".
        difficulty: `metadata.difficulty`, or "".
        tags: `metadata.tags`.
        agent_timeout: What the agent may take.
        verifier_timeout: What the tests may take.
        build_timeout: What building or pulling the image may take.
        docker_image: A ready image; without one `environment/Dockerfile` is built.
        cpus: Number of CPUs, possibly fractional.
        memory_mb: Memory.
        storage_mb: Disk.
        gpus: Number of GPUs.
        network: What the environment may reach.
        allowed_hosts: The hosts of an allowlist.
        workdir: Where commands run, in place of the image's own.
        env: Environment of the agent's commands; `${NAME}` and `${NAME:-default}` come from the host.
        agent_user: Who runs the agent's commands, in place of the image's own user.
        verifier_user: Who runs the tests, likewise.
        verifier_env: Environment of the tests.
        solution_env: Environment of `solution/solve.sh`.
        healthcheck: A command to wait for before the agent starts.
        local: Whether the task runs without a container (`metadata.local`): all its paths follow `TASK_ROOT`.
    """

    version: str = "1.0"
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    category: str = ""
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    agent_timeout: float | None = None
    verifier_timeout: float | None = None
    build_timeout: float = DEFAULT_BUILD_SECONDS
    docker_image: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int = 0
    network: Literal["open", "none", "allowlist"] = "open"
    allowed_hosts: tuple[str, ...] = ()
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    agent_user: str | None = None
    verifier_user: str | None = None
    verifier_env: Mapping[str, str] = field(default_factory=dict[str, str])
    solution_env: Mapping[str, str] = field(default_factory=dict[str, str])
    healthcheck: Healthcheck | None = None
    local: bool = False


def read_config(path: Path) -> tuple[TaskConfig, tuple[str, ...]]:
    """Read a `task.toml`.

    Returns:
        The settings, and one sentence for each thing that was passed over.

    Raises:
        TaskError: The file is missing, is no TOML, or holds a value of the wrong kind.
        UnsupportedTask: The task has several steps, is for Windows, or wants a verifier machine of its own.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskError("there is no such file; a task folder needs one", path=path) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # of a number of 5,000 digits, or of a thousand brackets, too
        raise TaskError(f"not valid TOML: {error}", path=path) from None
    root = Table(values, path)
    config = parse_config(root)
    return config, tuple(_explain(name) for name in root.unknown())


def parse_config(root: Table) -> TaskConfig:
    """The settings in a `task.toml`'s top table."""
    _refuse_unsupported(root)
    metadata = root.free("metadata")
    environment, agent, verifier = root.table("environment"), root.table("agent"), root.table("verifier")
    network, hosts = _network(environment)
    for phase in (agent, verifier):
        if phase.raw("network_mode") not in (None, environment.raw("network_mode")):
            message = "a network policy for one phase is not supported: set [environment] network_mode"
            raise UnsupportedTask(message, path=root.path, key=phase.key("network_mode"))
        phase.raw("allowed_hosts")
    build_timeout = environment.number("build_timeout_sec")
    return TaskConfig(
        version=str(root.raw("schema_version", "version") or "1.0"),
        metadata=metadata,
        category=_word(metadata, "category"),
        difficulty=_word(metadata, "difficulty"),
        tags=_words(metadata, "tags"),
        agent_timeout=agent.number("timeout_sec"),
        verifier_timeout=verifier.number("timeout_sec"),
        build_timeout=DEFAULT_BUILD_SECONDS if build_timeout is None else build_timeout,
        docker_image=environment.text("docker_image") or None,
        cpus=environment.amount("cpus"),
        memory_mb=environment.size_mb("memory_mb", "memory"),
        storage_mb=environment.size_mb("storage_mb", "storage"),
        gpus=int(environment.number("gpus") or 0),
        network=network,
        allowed_hosts=hosts,
        workdir=_workdir(environment),
        env=environment.strings("env"),
        agent_user=agent.user("user"),
        verifier_user=verifier.user("user"),
        verifier_env=verifier.strings("env"),
        solution_env=root.table("solution").strings("env"),
        healthcheck=_healthcheck(environment),
        local=metadata.get("local") is True,
    )


def _refuse_unsupported(root: Table) -> None:
    """Say no to what would otherwise run as something else than its author meant."""
    root.raw("source", "artifacts")
    root.free("task")
    environment, verifier = root.table("environment"), root.table("verifier")
    environment.raw("gpu_types", "skills_dir")
    refused = {
        "steps": (root.raw("steps"), "multi-step tasks are not supported yet: skip this task"),
        "environment.os": (
            str(environment.raw("os") or "linux").lower() != "linux",
            "only Linux tasks are supported",
        ),
        "environment.tpu": (environment.raw("tpu"), "TPUs are not supported"),
        "environment.mcp_servers": (
            environment.raw("mcp_servers"),
            "MCP servers of a task are not supported",
        ),
        "verifier.environment": (
            verifier.raw("environment") or verifier.raw("environment_mode") == "separate",
            "a separate verifier environment is not supported",
        ),
        "verifier.collect": (verifier.raw("collect"), "collecting from compose services is not supported"),
    }
    for key, (present, message) in refused.items():
        if present:
            raise UnsupportedTask(message, path=root.path, key=key)


def _network(environment: Table) -> tuple[Literal["open", "none", "allowlist"], tuple[str, ...]]:
    hosts = environment.texts("allowed_hosts")
    mode = environment.text("network_mode")
    internet = environment.flag("allow_internet")
    if mode is None:
        return ("none" if internet is False else "open"), ()
    if mode not in _NETWORKS:
        raise environment.error("network_mode", f"expected one of {', '.join(_NETWORKS)}, found {mode!r}")
    return _NETWORKS[mode], hosts


def _workdir(environment: Table) -> str | None:
    folder = environment.text("workdir")
    if folder is not None and (not folder.startswith("/") or "\0" in folder):
        raise environment.error("workdir", f"expected an absolute path, found {folder!r}")
    return folder


def _healthcheck(environment: Table) -> Healthcheck | None:
    if environment.raw("healthcheck") is None:
        return None
    table = environment.table("healthcheck")
    command = table.text("command")
    if not command:
        raise table.error("command", "a health check needs a command")
    table.raw("start_interval_sec")
    given = {
        "interval": table.number("interval_sec"),
        "timeout": table.number("timeout_sec"),
        "start_period": table.number("start_period_sec"),
    }
    retries = table.number("retries")
    times = {name: value for name, value in given.items() if value is not None}
    return Healthcheck(command, **times, retries=3 if retries is None else int(retries))


def _word(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) and value.isprintable() else ""


def _words(metadata: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = metadata.get(key)
    return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()


def _explain(name: str) -> str:
    near = difflib.get_close_matches(name.rpartition(".")[2], _KNOWN, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown key {name} is ignored{hint}"
