"""Logging with the rollout's id. This package logs through `logging` and configures nothing."""

from __future__ import annotations

import logging
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_current: ContextVar[str] = ContextVar("hermes_rollout", default="")


class RolloutLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs for one rollout: the id leads the message and is the record's attribute `rollout`."""

    def __init__(self, rollout_id: str) -> None:
        super().__init__(logging.getLogger("hermes_envs.rollout"), {"rollout": rollout_id})
        self.rollout_id = rollout_id

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Put the id before the message."""
        kwargs["extra"] = {"rollout": self.rollout_id, **kwargs.get("extra", {})}
        return f"[{self.rollout_id}] {msg}", kwargs


class RolloutFilter(logging.Filter):
    """Gives every record the attribute `rollout`: the id of the rollout it was logged in, also by other libraries.

    Add it to a handler whose format says `%(rollout)s`.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Set the attribute; nothing is filtered out."""
        if not hasattr(record, "rollout"):
            record.rollout = _current.get()
        return True


def current_rollout() -> str:
    """The id of the rollout that the running code belongs to, empty outside of one."""
    return _current.get()


@contextmanager
def in_rollout(rollout_id: str) -> Generator[None, None, None]:
    """Mark the block as belonging to a rollout."""
    token = _current.set(rollout_id)
    try:
        yield
    finally:
        _current.reset(token)
