"""Errors of the adapter."""

from hermes_envs.outcome import EnvsError


class EnvironmentFailed(EnvsError, RuntimeError):
    """A job that cannot go on for a reason outside the program; the message names it."""
