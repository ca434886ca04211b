"""The command line of every environment: `serve`, `process`, `evaluate`."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from hermes_sandbox import SandboxError
from hermes_tools import ToolsError
from pydantic import BaseModel, ConfigDict

from hermes_envs.config import ConfigError, check_keys, dotted_keys, load_config, read_yaml

from .errors import EnvironmentFailed, uncancelled
from .library import APIServerConfig
from .redaction import redacted

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv
    from .config import HermesAgentEnvConfig

ModelT = TypeVar("ModelT", bound=BaseModel)

VERBS = {
    "serve": "Serve rollouts to a trainer through Atropos' API (run-api)",
    "process": "Run groups and write scored trajectories to a JSONL file",
    "evaluate": "Evaluate the policy once",
}
_ALIASES = {
    "format": "env.process_format",
    "output": "env.data_path_to_save_groups",
    "backend": "env.terminal_backend",
    "model": "openai.model_name",
}
_SECTIONS = ("env", "openai")


_MENDABLE = (ConfigError, EnvironmentFailed, ToolsError, SandboxError)
"""What the user can mend: the message says how, and a traceback would hide it."""


class ServerConfig(APIServerConfig):
    """A policy's server: Atropos' own fields, with unknown ones refused."""

    model_config = ConfigDict(extra="forbid")

    health_check: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command line."""

    verb: str
    config: str | None = None
    dotted: dict[str, Any] = field(default_factory=dict[str, Any])


def default_server() -> ServerConfig:
    """The server that the usual variables name, else one on this machine."""
    if os.environ.get("OPENAI_BASE_URL"):
        base_url = os.environ["OPENAI_BASE_URL"]
    elif os.environ.get("OPENROUTER_API_KEY"):
        base_url = "https://openrouter.ai/api/v1"
    else:
        base_url = "http://localhost:9001/v1"
    return ServerConfig(base_url=base_url, model_name=os.environ.get("OPENAI_MODEL", "default"))


def main(env_cls: "type[HermesAgentBaseEnv[Any]]", argv: Sequence[str] | None = None) -> NoReturn:
    """Run an environment's program; exits with 0, 2 for what the user can mend, 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help") or "--help" in arguments or "-h" in arguments:
        print(help_text(env_cls, arguments[0] if arguments else ""))
        sys.exit(0 if arguments else 2)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.setLevel(logging.WARNING)  # atroposlib's own loggers are set to DEBUG
    try:
        command = parse(arguments)
        config, servers = configured(env_cls, command)
        _show(env_cls, command, config, servers)
        env = env_cls(config, servers)
        asyncio.run(_until_told(_job(env, command.verb)))
    except (*_MENDABLE, OSError, BaseExceptionGroup) as error:
        _fail(_mendable(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        again = "; run it again with the same file to go on" if arguments[0] == "process" else ""
        print(f"interrupted: sandboxes are gone{again}", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)


def parse(arguments: Sequence[str]) -> Command:
    """Read the verb and the flags: `--key value`, `--key=value`, or `--key` alone for true.

    Raises:
        ConfigError: An unknown verb, or something that is no flag.
    """
    verb, rest = arguments[0], list(arguments[1:])
    if verb not in VERBS:
        raise ConfigError(f"unknown verb {verb!r}: one of {', '.join(VERBS)}")
    config: str | None = None
    dotted: dict[str, Any] = {}
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--"):
            raise ConfigError(f"{flag!r} is no flag: options are written --key value")
        name, equals, value = flag[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        if name == "config":
            config = value
        else:
            dotted[_ALIASES.get(name, name)] = value
    return Command(verb, config, dotted)


def configured(
    env_cls: "type[HermesAgentBaseEnv[Any]]", command: Command
) -> "tuple[HermesAgentEnvConfig, list[APIServerConfig]]":
    """Defaults of `config_init`, overridden by YAML, overridden by the command line.

    Raises:
        ConfigError: An unknown key, with the nearest named, or a value that does not fit.
    """
    env_defaults, server_defaults = env_cls.config_init()
    content = read_yaml(command.config) if command.config else {}
    where = command.config or "the command line"
    for key in [*map(str, content), *command.dotted]:
        section, dot, _ = key.partition(".")
        if section not in _SECTIONS or (key in command.dotted and not dot):
            raise ConfigError(f"unknown key {key!r}: options are env.NAME and openai.NAME (see --help)")
    env_flags = _section(command.dotted, "env")
    env_content: Mapping[str, Any] = content.get("env") or {}
    check_keys(type(env_defaults), env_content, where, "env.")
    given = {**env_defaults.model_dump(exclude_unset=True), **env_content}
    config = _layered(type(env_defaults), given, env_flags, "env")
    return config, _servers(server_defaults, content.get("openai"), _section(command.dotted, "openai"), where)


def help_text(env_cls: "type[HermesAgentBaseEnv[Any]]", verb: str) -> str:
    """Usage, verbs, and every option with its type, default and meaning."""
    program = Path(sys.argv[0]).name
    config, servers = env_cls.config_init()
    lines = [
        f"usage: {program} {verb if verb in VERBS else '{serve,process,evaluate}'} [--config FILE.yaml] [--KEY VALUE ...]",
        "",
    ]
    if env_cls.__doc__:
        lines += [env_cls.__doc__.strip().splitlines()[0], ""]
    lines += [f"  {name:<10}{text}" for name, text in VERBS.items()]
    lines += [
        "",
        "The command line overrides YAML (sections env: and openai:), which overrides the defaults.",
        "",
    ]
    lines += [f"  --{short} is short for --{long}" for short, long in _ALIASES.items()]
    for section, model in (("env", config), ("openai", ServerConfig(**servers[0].model_dump()))):
        lines += ["", f"{section}:"]
        shown = redacted(model)
        for key in dotted_keys(type(model)):
            description = (
                type(model).model_fields[key].description or "" if key in type(model).model_fields else ""
            )
            lines.append(f"  --{section}.{key}  [{shown.get(key)}]  {description}")
    return "\n".join(lines)


def print_metrics(task: str, metrics: Mapping[str, Any], seconds: float) -> None:
    """Print an evaluation's numbers, each mean with its standard error."""
    print(f"{task}: {seconds:.1f} s")
    for name, value in metrics.items():
        if name.endswith("_stderr"):
            continue
        error = metrics.get(f"{name}_stderr")
        shown = f"{value:.4f}" if isinstance(value, float) else str(value)
        print(f"  {name:<28}{shown}{f' ± {error:.4f}' if isinstance(error, float) else ''}")


async def _job(env: "HermesAgentBaseEnv[Any]", verb: str) -> None:
    with uncancelled():
        if verb == "serve":
            await env.env_manager()
        elif verb == "process":
            await env.process_manager()
        else:
            await env.evaluate_manager()


async def _until_told(job: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or until a SIGTERM, which cleans up like Ctrl-C."""
    task = asyncio.ensure_future(job)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _layered(model: type[ModelT], given: Mapping[str, Any], flags: Mapping[str, Any], section: str) -> ModelT:
    try:
        return load_config(model, None, flags, defaults=given)
    except ConfigError as error:
        raise ConfigError(f"{section}: {error}") from error


def _servers(defaults: Any, content: Any, flags: Mapping[str, Any], where: str) -> list[APIServerConfig]:
    """One server, or several: YAML's list replaces the defaults, flags apply to each."""
    known = as_list(defaults)
    sections: list[Mapping[str, Any]] = as_list(content or {})
    bases = known if len(sections) == 1 else known[:1] * len(sections)
    servers: list[APIServerConfig] = []
    for index, base in enumerate(bases):
        section = sections[index] if len(sections) > 1 else sections[0]
        check_keys(ServerConfig, section, where, "openai.")
        given = {**base.model_dump(exclude_unset=True), **section}
        servers.append(_layered(ServerConfig, given, flags, "openai"))
    return servers


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as a list of one."""
    return list(cast("list[Any]", value)) if isinstance(value, list) else [value]


def _section(dotted: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in dotted.items() if key.startswith(f"{name}.")}


def _show(
    env_cls: "type[HermesAgentBaseEnv[Any]]",
    command: Command,
    config: "HermesAgentEnvConfig",
    servers: Sequence[APIServerConfig],
) -> None:
    """Say what runs; secrets are hidden."""
    changed = {key: value for key, value in redacted(config).items() if key in config.model_fields_set}
    print(f"{env_cls.name or env_cls.__name__} {command.verb}")
    for key, value in sorted(changed.items()):
        print(f"  env.{key} = {value}")
    for server in servers:
        print(
            f"  {server.server_type} server {redacted(server.base_url, name='base_url')} model {server.model_name}"
        )
    sys.stdout.flush()


def _mendable(error: BaseException) -> str:
    """The message of what the user can mend, out of the groups that tasks wrap it in; else the error goes on."""
    inner: BaseException = error
    while isinstance(inner, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
    if isinstance(inner, _MENDABLE):
        return str(inner)
    if isinstance(inner, OSError) and inner.filename:
        return f"cannot use {inner.filename}: {inner.strerror}"
    raise error


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
