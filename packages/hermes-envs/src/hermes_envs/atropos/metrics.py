"""What an environment counts while it runs."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_envs.messages import text_of
from hermes_envs.result import ToolCallError
from hermes_envs.rollout import Rollout

_log = logging.getLogger(__name__)
_ERRORS_KEPT = 50
_TEXT = 4000


@dataclass
class Metrics:
    """Counts since the environment started; tool errors and rewards since the last log.

    Attributes:
        outcomes: Rollouts by how they ended.
        stops: Rollouts by why the agent stopped.
        retried: Rollouts that infrastructure made run more than once.
        sent_groups: Groups the trainer got.
        dropped_groups: Groups lost to failures of the infrastructure.
        dropped_in_a_row: How many of them came after the last group that was not.
        dropped_because: Why the last of them was.
        same_score_groups: Groups with nothing to learn from, all rewards being equal.
        too_long_groups: Groups with a sequence longer than the trainer takes.
        unused_segments: Segments beyond the one row a rollout is given.
    """

    outcomes: Counter[str] = field(default_factory=Counter[str])
    stops: Counter[str] = field(default_factory=Counter[str])
    retried: int = 0
    sent_groups: int = 0
    dropped_groups: int = 0
    dropped_in_a_row: int = 0
    dropped_because: str = ""
    same_score_groups: int = 0
    too_long_groups: int = 0
    unused_segments: int = 0
    _rewards: list[float] = field(default_factory=list[float])
    _turns: list[int] = field(default_factory=list[int])
    _tool_errors: list[ToolCallError] = field(default_factory=list[ToolCallError])
    _tool_error_count: int = 0

    def count(self, rollouts: Sequence[Rollout]) -> None:
        """Count finished rollouts."""
        for rollout in rollouts:
            self.outcomes[rollout.outcome.value] += 1
            self.retried += rollout.attempts > 1
            if rollout.reward is not None:
                self._rewards.append(rollout.reward)
            if rollout.result is not None:
                self.stops[rollout.result.stop_reason.value] += 1
                self._turns.append(rollout.result.turns_used)
                self._tool_error_count += len(rollout.result.tool_errors)
                self._tool_errors = (self._tool_errors + rollout.result.tool_errors)[-_ERRORS_KEPT:]

    def drop(self, reason: str) -> None:
        """Count a group that is lost to the infrastructure, and say why."""
        self.dropped_groups += 1
        self.dropped_in_a_row += 1
        self.dropped_because = reason
        _log.warning("a group is dropped: %s", reason)

    def take(self) -> dict[str, Any]:
        """The numbers for a log; what is kept since the last log starts anew."""
        numbers: dict[str, Any] = {
            "train/groups_sent": self.sent_groups,
            "train/groups_dropped": self.dropped_groups,
            "train/groups_same_score": self.same_score_groups,
            "train/groups_too_long": self.too_long_groups,
            "train/rollouts_retried": self.retried,
            "train/segments_unused": self.unused_segments,
            "train/tool_errors_count": self._tool_error_count,
            **{f"train/outcome_{name}": count for name, count in self.outcomes.items()},
            **{f"train/stopped_{name}": count for name, count in self.stops.items()},
        }
        if self._rewards:
            numbers["train/reward"] = sum(self._rewards) / len(self._rewards)
        if self._turns:
            numbers["train/turns"] = sum(self._turns) / len(self._turns)
        self._rewards, self._turns, self._tool_error_count = [], [], 0
        return numbers

    def take_tool_errors(self) -> list[ToolCallError]:
        """The last tool errors since they were taken."""
        errors, self._tool_errors = self._tool_errors, []
        return errors


def readable(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as text for a table: who speaks, thinking, calls with their arguments, results."""
    parts: list[str] = []
    for message in messages:
        role = str(message.get("role", "")).upper()
        if message.get("reasoning_content"):
            parts.append(f"[{role} THINKING]\n{_cut(str(message['reasoning_content']))}")
        if text := text_of(message):
            parts.append(f"[{role}]\n{_cut(text)}")
        for call in message.get("tool_calls") or ():
            parts.append(f"[CALL {call['function']['name']}]\n{_cut(str(call['function']['arguments']))}")
    return "\n\n".join(parts)


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    half = _TEXT // 2
    return f"{text[:half]}\n… {len(text) - _TEXT} characters …\n{text[-half:]}"
