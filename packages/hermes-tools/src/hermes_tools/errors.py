"""The errors of this package.

ToolsError
├── ToolError                 a call that failed; its text is written for the model
│   ├── ArgumentsError        the arguments do not fit the tool's schema
│   └── UnknownToolError      no such tool in this session
├── ToolDefinitionError       a tool or registry is declared wrongly
├── UnknownToolsetError       no such toolset, tool or distribution; names the nearest
└── ToolsetUnavailableError   a toolset cannot work here; says what it lacks
"""

import difflib
from collections.abc import Iterable
from typing import Any


class ToolsError(Exception):
    """Root of everything this package raises on its own account."""


class ToolError(ToolsError):
    """A tool call failed in a way the model can react to.

    Raise it from a tool: the message becomes `{"error": message, **details}` for the model.

    Attributes:
        details: Further JSON values that help the model, such as similar file names.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details: dict[str, Any] = details


class ArgumentsError(ToolError):
    """The arguments of a call are no JSON object or do not fit the tool's schema."""


class UnknownToolError(ToolError):
    """The session has no tool of this name."""


class ToolDefinitionError(ToolsError, TypeError):
    """A tool or toolset is declared wrongly: a parameter without annotation, a name taken twice."""


class UnknownToolsetError(ToolsError, KeyError):
    """No toolset, tool or distribution has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class ToolsetUnavailableError(ToolsError):
    """A toolset that was asked for cannot work on this machine."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Sentences that name the closest known name and all others, such as "Did you mean 'x'? Known are: x, y."."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known are: {', '.join(names) or 'none'}."
