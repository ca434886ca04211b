"""From rollouts to groups that a trainer can use: full, aligned, and with something to learn from."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_envs.outcome import Outcome
from hermes_envs.rollout import Rollout

from .library import ScoredDataGroup, ScoredDataItem
from .metrics import Metrics
from .rows import Row, as_group, exact_rows, is_scored, merged, placeholder_row, with_advantages

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

_log = logging.getLogger(__name__)
_LONG = 4096


class Scoring:
    """Decides what of an environment's rollouts is sent.

    Args:
        env: The environment.
        metrics: Counts what is sent and what is not.
    """

    def __init__(self, env: "HermesAgentBaseEnv[Any]", metrics: Metrics) -> None:
        self._env = env
        self._metrics = metrics

    def rows(self, rollout: Rollout) -> list[Row]:
        """The training rows of a scored rollout."""
        env = self._env
        if not env.policy.exact:
            return [placeholder_row(rollout, env.chat_tokenizer)]
        return exact_rows(rollout, env.chat_tokenizer, every_segment=env.config.rows == "segments")

    async def sendable(self, rollouts: Sequence[Rollout]) -> list[ScoredDataGroup]:
        """The groups to train on; none, and counted, where a member has no reward or all rewards are the same."""
        self._metrics.count(rollouts)
        scores = [rollout.reward if is_scored(rollout) else None for rollout in rollouts]
        return await self.grouped(rollouts) if self._teaches(scores, failures_of(rollouts)) else []

    def collected(self, items: Sequence[ScoredDataItem | None]) -> list[ScoredDataGroup]:
        """What `collect_trajectory` gave for each member, by the same rules."""
        scores = [None if item is None else item["scores"] for item in items]
        if not self._teaches(scores, "collect_trajectory gave no item for a member"):
            return []
        return [merged([item for item in items if item is not None], self._generation_params())]

    def _teaches(self, scores: Sequence[float | None], lost_because: str) -> bool:
        """Whether a group is whole and has something to learn from; it is counted where not."""
        if None in scores:
            self._metrics.drop(lost_because)
            return False
        self._metrics.dropped_in_a_row = 0
        if self._env.config.ensure_scores_are_not_same and len(set(scores)) == 1:
            self._metrics.same_score_groups += 1
            return False
        return True

    async def grouped(self, rollouts: Sequence[Rollout]) -> list[ScoredDataGroup]:
        """Scored rollouts as groups, whatever their rewards."""
        config = self._env.config
        rows: list[list[Row]] = []
        for rollout in rollouts:
            rows.append(self.rows(rollout))
            if len(rows[-1][0].tokens) >= _LONG:
                await asyncio.sleep(0)  # other rollouts have a turn between two long ones
        known = sum(len(rollout.result.segments) for rollout in rollouts if rollout.result)
        self._metrics.unused_segments += max(0, known - sum(len(own) for own in rows))
        if config.rows == "segments":
            posts = with_advantages(rows, config.group_size)
        else:
            posts = [[own[0] for own in rows]]
        params = self._generation_params(rollouts[0])
        return [
            as_group(post, generation_params=params, with_messages=config.include_messages) for post in posts
        ]

    def fits(self, group: ScoredDataGroup, longest_allowed: int) -> bool:
        """Whether a trainer takes a group; `longest_allowed` tokens, 0 or less for any number."""
        longest = max(len(tokens) for tokens in group["tokens"])
        if longest_allowed <= 0 or longest <= longest_allowed:
            return True
        self._metrics.too_long_groups += 1
        _log.warning("a group is dropped: %d tokens, the trainer takes %d", longest, longest_allowed)
        return False

    def _generation_params(self, rollout: Rollout | None = None) -> dict[str, Any]:
        config, group = self._env.config, rollout.group if rollout else None
        return {
            "temperature": config.agent_temperature,
            "max_tokens": config.max_token_length,
            "model": self._env.policy.model,
            "toolsets": list(group.toolsets or ()) if group else [],
            "tools": list(rollout.tools) if rollout else [],
            "seed": group.seed if group else None,
        }


def failures_of(rollouts: Sequence[Rollout]) -> str:
    """Why the infrastructure failed."""
    failures = [rollout.failure for rollout in rollouts if rollout.outcome is Outcome.infra_failed]
    return (
        "; ".join(f"{failure.boundary}: {failure.message}" for failure in failures if failure) or "no reward"
    )
