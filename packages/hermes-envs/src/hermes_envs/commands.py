"""The commands of the environments, which say what to install where the extra `atropos` is missing."""

import logging
import os
import sys
from importlib import import_module


def terminal_test() -> None:
    """The command `terminal-test`."""
    _run("terminal-test", "terminal_test")


def swe_env() -> None:
    """The command `swe-env`."""
    _run("swe-env", "swe")


def web_research() -> None:
    """The command `web-research`."""
    _run("web-research", "web_research")


def harbor_env() -> None:
    """The command `harbor-env`."""
    _run("harbor-env", "harbor")


def _run(command: str, module: str) -> None:
    logging.getLogger("transformers").addFilter(_is_news)
    try:
        environment = import_module(f"hermes_envs.atropos.environments.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hermes_envs"):
            raise
        sys.stderr.write(
            f"{command}: needs {error.name}, which comes with an extra: pip install 'hermes-envs[atropos]', "
            f"or in this repository: uv run --package hermes-envs --extra atropos {command}\n"
        )
        sys.exit(2)
    try:
        environment.main()
    except BrokenPipeError:  # who read our output has gone, as in `terminal-test --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether transformers tells more than that there is no PyTorch, which is not missed here."""
    return "PyTorch was not found" not in record.getMessage()
