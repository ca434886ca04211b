"""Errors of the adapter."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from hermes_envs.outcome import EnvsError, is_failure


class EnvironmentFailed(EnvsError, RuntimeError):
    """A job that cannot go on for a reason outside the program; the message names it."""


@contextmanager
def uncancelled() -> Generator[None, None, None]:
    """Make a cancellation that nobody asked for an error, which is counted and said like any other.

    An environment's own code may let one escape, from a task of its own for example; asyncio would then end ours
    without a word.

    Raises:
        EnvironmentFailed: The block was cancelled, and not by whoever runs it.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if not is_failure(error):
            raise
        raise EnvironmentFailed(
            "the environment's own code raised CancelledError; nobody cancelled it"
        ) from error
