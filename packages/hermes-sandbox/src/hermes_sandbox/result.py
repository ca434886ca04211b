"""What a command left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal["exit", "signal", "timeout", "oom", "cancelled", "lost"]
"""Why a command ended: by itself, by a signal, by its timeout, by the out-of-memory killer, by a cancelled
await, or unknown because the sandbox was lost."""

StreamName = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The outcome of one command.

    Attributes:
        exit_code: The code it exited with, 128+n when signal n killed it, else None (timeout, lost).
        reason: Why it ended.
        stdout: The bytes kept: all of them, or head and tail when there were more than `output_limit`.
        stderr: The same for the second stream; empty where both are merged.
        stdout_total: How many bytes it wrote to stdout.
        stderr_total: How many bytes it wrote to stderr.
        duration: Seconds from the request to the result.
        stdout_head: How many bytes of `stdout` come before the gap; all of them without a gap.
        stderr_head: The same for `stderr`.
        leftovers: Whether a background child still held its output open when the command ended.
        cwd: The working folder afterwards, known for shell commands.
        restarted: Whether the shell was replaced by a fresh one with the same folder and exported variables.
    """

    exit_code: int | None
    reason: Reason
    stdout: bytes
    stderr: bytes
    stdout_total: int
    stderr_total: int
    duration: float
    stdout_head: int = -1
    stderr_head: int = -1
    leftovers: bool = False
    cwd: str | None = None
    restarted: bool = False

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.reason == "exit" and self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        """Whether its timeout ended it."""
        return self.reason == "timeout"

    @property
    def truncated(self) -> bool:
        """Whether bytes are missing from `stdout` or `stderr`."""
        return self.stdout_total > len(self.stdout) or self.stderr_total > len(self.stderr)

    @property
    def output(self) -> str:
        """Both streams as text, stdout first; a gap is marked where bytes were dropped."""
        out = _text(self.stdout, self.stdout_total, self.stdout_head)
        err = _text(self.stderr, self.stderr_total, self.stderr_head)
        if out and err and not out.endswith("\n"):
            out += "\n"
        return out + err


def _text(kept: bytes, total: int, head: int) -> str:
    if total <= len(kept):
        return kept.decode(errors="replace")
    cut = head if head >= 0 else len(kept)
    gap = f"\n[... {total - len(kept)} bytes omitted ...]\n"
    return kept[:cut].decode(errors="replace") + gap + kept[cut:].decode(errors="replace")
