"""`process`: run groups at once and write scored trajectories to a file."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_envs.config import ConfigError
from hermes_envs.rollout import Rollout

from .errors import EnvironmentFailed
from .formats import FORMATS, metadata_of
from .output_file import OutputFile
from .rows import is_scored
from .transcript_html import write_html

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

_log = logging.getLogger(__name__)
_LOST_IN_A_ROW = 3


class _Progress:
    """Says how far it is, at most every two seconds and at the end."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._resumed, self.done, self.lost = total, done, done, 0
        self._rewards: list[float] = []
        self._began = time.monotonic()
        self._said = 0.0

    def add(self, rollouts: Sequence[Rollout]) -> None:
        self.done += 1
        self._rewards += [rollout.reward for rollout in rollouts if rollout.reward is not None]
        self.say()

    def say(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._said < 2:
            return
        self._said = now
        mean = sum(self._rewards) / len(self._rewards) if self._rewards else float("nan")
        rate = (self.done - self._resumed) / max(now - self._began, 1e-9) * 60
        lost = f", {self.lost} lost to infrastructure" if self.lost else ""
        print(
            f"{self.done}/{self._total} groups, mean reward {mean:.3f}, {rate:.1f} groups/min{lost}",
            flush=True,
        )


async def process_groups(env: "HermesAgentBaseEnv[Any]") -> None:
    """Run `total_steps` groups and write them.

    Groups run at once, `max_num_workers` of them. A group that loses a member to the infrastructure is written
    without it in the one-rollout formats, and left out in the group form; a file that already has groups is gone
    on from.

    Args:
        env: The environment, set up.

    Raises:
        ConfigError: No output path, or one that cannot be used.
        EnvironmentFailed: The infrastructure fails every group.
    """
    config = env.config
    if config.data_path_to_save_groups is None:
        raise ConfigError("process needs an output file: --env.data_path_to_save_groups PATH.jsonl")
    path = Path(config.data_path_to_save_groups)
    size = 1 if config.process_format == "groups" else config.group_size
    file = OutputFile(path, size, overwrite=config.overwrite)
    if file.done:
        print(f"{path} has {len(file.done)} groups: going on from there (--env.overwrite true starts anew)")
    try:
        await _Processing(env, file).run()
    finally:
        file.close()
    print(f"trajectories: {path}")
    if config.process_format != "groups":
        page = path.with_suffix(".html")
        write_html(file.lines(), page, f"{env.name}: {path.name}")
        print(f"to read them: {page}")


class _Processing:
    def __init__(self, env: "HermesAgentBaseEnv[Any]", file: OutputFile) -> None:
        self._env = env
        self._file = file
        self._progress = _Progress(env.config.total_steps, len(file.done))
        self._lost_in_a_row = 0

    async def run(self) -> None:
        """Start groups in order as places are free."""
        env = self._env
        places = asyncio.Semaphore(max(1, env.max_num_workers))
        async with asyncio.TaskGroup() as running:
            for index in range(env.config.total_steps):
                await places.acquire()
                item = await env.get_next_item()
                if item is None:
                    print("the environment has no more tasks")
                    break
                if index in self._file.done:
                    places.release()
                    continue
                task = running.create_task(self._group(index, item))
                task.add_done_callback(lambda _: places.release())
        self._progress.say(last=True)

    async def _group(self, index: int, item: Any) -> None:
        env = self._env
        rollouts = await env.rolling.run_group(item, env.rolling.group(index))
        env.metrics.count(rollouts)
        scored = [rollout for rollout in rollouts if is_scored(rollout)]
        if not scored:
            self._lost(rollouts)
            return
        self._lost_in_a_row = 0
        self._file.write(index, await self._lines(index, item, rollouts, scored))
        self._progress.add(scored)
        await env.log_processed(rollouts)

    def _lost(self, rollouts: Sequence[Rollout]) -> None:
        self._progress.lost += 1
        self._lost_in_a_row += 1
        failure = rollouts[0].failure
        reason = f"{failure.boundary}: {failure.message}" if failure else "no reward"
        _log.warning("a group is lost to infrastructure: %s", reason)
        if self._lost_in_a_row >= _LOST_IN_A_ROW:
            raise EnvironmentFailed(
                f"{self._lost_in_a_row} groups in a row were lost to infrastructure; the last: {reason}"
            )

    async def _lines(
        self, index: int, item: Any, rollouts: Sequence[Rollout], scored: Sequence[Rollout]
    ) -> list[Mapping[str, Any]]:
        env = self._env
        name = env.item_name(item, index)
        if env.config.process_format == "groups":
            if len(scored) < len(rollouts):
                return []
            return [
                {**group, "metadata": {"group": index, "item": name}}
                for group in await env.scoring.grouped(scored)
            ]
        form = FORMATS[env.config.process_format]
        return [
            form(
                rollout,
                env.scoring.rows(rollout)[0],
                metadata_of(rollout, env=env.name or "", group=index, member=member, item=name),
            )
            for member, rollout in enumerate(rollouts)
            if is_scored(rollout)
        ]
