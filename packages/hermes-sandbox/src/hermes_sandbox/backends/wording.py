"""Services that have one class for many errors: their words tell what it was."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_sandbox.errors import SandboxError, SandboxStartError

Words = Sequence[tuple[tuple[str, ...], type[SandboxError], str]]
"""What an error may say, what it is then, and the remedy; the first that fits counts."""


def by_its_words(words: Words, failed: str, error: Exception) -> SandboxError:
    """The error of this package for one of a service's.

    Args:
        words: What the service says.
        failed: What it cannot do, for the message.
        error: The service's.
    """
    said = str(error).lower()
    for each, kind, remedy in words:
        if any(word in said for word in each):
            return kind(f"{failed}: {error}; {remedy}")
    return SandboxStartError(f"{failed}: {error}")
