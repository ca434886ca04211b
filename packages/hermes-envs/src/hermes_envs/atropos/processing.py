"""`process`: run groups at once and write scored trajectories to a file."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_envs.config import ConfigError
from hermes_envs.rollout import Rollout

from .cli import as_list
from .errors import EnvironmentFailed, uncancelled
from .formats import FORMATS, metadata_of
from .library import ScoredDataGroup
from .metrics import Metrics
from .output_file import OutputFile
from .rows import Row, is_scored, rows_in
from .scoring import failures_of
from .transcript_html import write_html

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

_LOST_IN_A_ROW = 3


class _Progress:
    """Says how far it is, at most every two seconds and at the end."""

    def __init__(self, total: int, done: int, metrics: Metrics) -> None:
        self._total, self._resumed, self.done, self._metrics = total, done, done, metrics
        self._rewards: list[float] = []
        self._began = time.monotonic()
        self._said = 0.0

    def add(self, rewards: Sequence[float]) -> None:
        self.done += 1
        self._rewards += rewards
        self.say()

    def say(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._said < 2:
            return
        self._said = now
        mean = sum(self._rewards) / len(self._rewards) if self._rewards else float("nan")
        rate = (self.done - self._resumed) / max(now - self._began, 1e-9) * 60
        dropped = self._metrics.dropped_groups
        lost = f", {dropped} lost to infrastructure" if dropped else ""
        print(
            f"{self.done}/{self._total} groups, mean reward {mean:.3f}, {rate:.1f} groups/min{lost}",
            flush=True,
        )


async def process_groups(env: "HermesAgentBaseEnv[Any]") -> None:
    """Run `total_steps` groups and write them.

    Groups run at once, `max_num_workers` of them. A group that loses a member to the infrastructure is written
    without it in the one-rollout formats, and left out in the group form; a file that already has groups is gone
    on from. Where a subclass makes or changes groups (`collect_trajectory`, `collect_trajectories`,
    `postprocess_histories`), what it gives is written; a group that it makes nothing of is left out.

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
    file = OutputFile(path, size, config.process_format, overwrite=config.overwrite)
    if file.done:
        print(f"{path} has {len(file.done)} groups: going on from there (--env.overwrite true starts anew)")
        env.rolling.count_from(max(file.done) + 1)
    try:
        await _Processing(env, file).run()
    finally:
        file.close()
    print(f"trajectories: {path}")
    if config.process_format != "groups":
        page = path.with_suffix(".html")
        write_html(file.lines(), page, f"{env.name}: {path.name}")
        print(f"to read them: {page}")


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of one task.

    Attributes:
        members: The scored rollouts with their places and rows.
        groups: The groups of them, where the group form asks for these.
        rollouts: Everything that was run.
    """

    members: Sequence[tuple[int, Rollout, Row]]
    groups: Sequence[ScoredDataGroup]
    rollouts: Sequence[Rollout]


class _Processing:
    def __init__(self, env: "HermesAgentBaseEnv[Any]", file: OutputFile) -> None:
        self._env = env
        self._file = file
        self._progress = _Progress(env.config.total_steps, len(file.done), env.metrics)

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
        with uncancelled():
            made = await (self._theirs(item) if env.makes_groups else self._ours(index, item))
        if made is None:
            self._give_up_where_all_fail()
            return
        self._file.write(index, self._lines(index, item, made))
        self._progress.add([row.score for _, _, row in made.members])
        await env.log_processed(made.rollouts)

    async def _ours(self, index: int, item: Any) -> _Made | None:
        """Run a group; None where the infrastructure left nothing of it to write."""
        env = self._env
        rollouts = await env.rolling.run_group(item, env.rolling.group(index))
        env.metrics.count(rollouts)
        scored = [rollout for rollout in rollouts if is_scored(rollout)]
        whole_groups = env.config.process_format == "groups"
        if not scored or (whole_groups and len(scored) < len(rollouts)):
            env.metrics.drop(failures_of(rollouts))
            return None
        env.metrics.dropped_in_a_row = 0
        members = [
            (member, rollout, env.scoring.rows(rollout)[0])
            for member, rollout in enumerate(rollouts)
            if is_scored(rollout)
        ]
        return _Made(members, await env.scoring.grouped(scored) if whole_groups else (), rollouts)

    async def _theirs(self, item: Any) -> _Made | None:
        """Have the subclass make a group; None where it, or the infrastructure, makes nothing of the task."""
        env = self._env
        with env.rolling.watched() as rollouts:
            made, _ = await env.collect_trajectories(item)
            made = await env.postprocess_histories(made) if made else None
        groups: list[ScoredDataGroup] = [group for group in as_list(made) if group]
        if not groups:
            return None
        told = [row for group in groups for row in rows_in(group, rollouts)]
        return _Made([(member, *row) for member, row in enumerate(told)], groups, rollouts)

    def _give_up_where_all_fail(self) -> None:
        metrics = self._env.metrics
        if metrics.dropped_in_a_row >= _LOST_IN_A_ROW:
            raise EnvironmentFailed(
                f"{metrics.dropped_in_a_row} groups in a row were lost to infrastructure; the last: "
                f"{metrics.dropped_because}"
            )

    def _lines(self, index: int, item: Any, made: _Made) -> list[Mapping[str, Any]]:
        env = self._env
        name = env.item_name(item, index)
        if env.config.process_format == "groups":
            return [{**group, "metadata": {"group": index, "item": name}} for group in made.groups]
        form = FORMATS[env.config.process_format]
        return [
            form(
                rollout,
                row,
                metadata_of(rollout, env=env.name or "", group=index, member=member, item=name),
            )
            for member, rollout, row in made.members
        ]
