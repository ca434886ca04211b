"""What the context tells of a finished command."""

from __future__ import annotations

from typing import Any

from hermes_sandbox import ExecResult

TIMEOUT_EXIT_CODE = 124
"""The exit code that `timeout(1)` gives for a command that ran too long."""
KILLED_EXIT_CODE = 137
"""128 + SIGKILL."""

_CODES = {"timeout": TIMEOUT_EXIT_CODE, "oom": KILLED_EXIT_CODE}


def command_result(result: ExecResult, timeout: float | None) -> dict[str, Any]:
    """The result as a dict: output, exit_code (always a number), error, reason, duration, truncated."""
    code = result.exit_code if result.exit_code is not None else _CODES.get(result.reason, -1)
    return {
        "output": result.output,
        "exit_code": code,
        "error": _error(result.reason, timeout),
        "reason": result.reason,
        "duration": result.duration,
        "truncated": result.truncated,
    }


def _error(reason: str, timeout: float | None) -> str | None:
    if reason in ("exit", "signal"):
        return None
    if reason == "timeout":
        return (
            f"the command ran longer than {timeout:g} s and was killed"
            if timeout
            else "the command timed out"
        )
    return f"the command did not end by itself: {reason}"
