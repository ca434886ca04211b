"""Environments for Atropos: rollouts of the core engine, served to a trainer, written as data, or evaluated.

Needs the extra `atropos`; importing it loads atroposlib and transformers, which takes seconds.
"""

from .base_env import HermesAgentBaseEnv
from .cli import ServerConfig
from .config import HermesAgentEnvConfig
from .library import APIServerConfig, EvalHandlingEnum
from .resources import DEFAULT_TOKENIZER

__all__ = [
    "DEFAULT_TOKENIZER",
    "APIServerConfig",
    "EvalHandlingEnum",
    "HermesAgentBaseEnv",
    "HermesAgentEnvConfig",
    "ServerConfig",
]
