"""Serving rollouts to a trainer through Atropos' API, across restarts of any part."""

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_envs.config import ConfigError

from .api import ApiGone, AtroposApi, Refused, Status, Waiting, pause, post_path
from .errors import EnvironmentFailed, uncancelled
from .library import EvalHandlingEnum, ScoredDataGroup

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

_log = logging.getLogger(__name__)
_POLL = 0.2
_STEP_PATIENCE = 60.0
"""Seconds for which a full queue is no news: a trainer takes no groups while it steps."""
_BROKEN_IN_A_ROW = 3
_DROPPED_IN_A_ROW = 3


class Serving:
    """Keeps groups running for one environment until the trainer has had enough.

    Differs from atroposlib's manager where that loses work: a full queue starts no new group but lets running ones
    finish, an environment always may hold a share of the queue however fast its neighbours are, and a lost API is
    waited for and registered with anew while finished groups are kept. An environment whose own code fails group
    after group ends with that error; while the infrastructure does, one group at a time is tried.

    Args:
        env: The environment; it runs the groups.
    """

    def __init__(self, env: "HermesAgentBaseEnv[Any]") -> None:
        self.env = env
        self.api = AtroposApi(env.config.rollout_server_url)
        self._waiting = Waiting()
        self._queue_full = Waiting(_STEP_PATIENCE)
        self._registered = asyncio.Event()
        self._evaluation: asyncio.Task[None] | None = None
        self._exhausted = False
        self._broken_in_a_row = 0
        self._problem: Exception | None = None

    async def run(self) -> None:
        """Serve until the last step; cancels what still runs and says goodbye to the API.

        Raises:
            EnvironmentFailed: The environment's own code fails in every group.
        """
        try:
            await self._register()
            going = True
            while going:
                going = not await self._step()
                await asyncio.sleep(_POLL)
        finally:
            await self._stop()

    async def post(self, groups: Sequence[ScoredDataGroup]) -> None:
        """Send finished groups; waits for the API as long as it takes.

        Raises:
            Refused: The API will not take them.
        """
        tries = 0
        while True:
            await self._registered.wait()
            sent: list[dict[str, Any]] = [{**group, "env_id": self.env.env_id} for group in groups]
            try:
                await self.api.post(post_path(sent), sent[0] if len(sent) == 1 else sent)
            except ApiGone as error:
                if error.forgot:
                    self._registered.clear()  # a new API may give our number to another environment
                self._waiting.say(f"{error}; {len(sent)} finished group(s) are kept")
                await pause(tries)
                tries += 1
            else:
                return

    async def _step(self) -> bool:
        """One round of the manager; True at the end."""
        env = self.env
        try:
            status = await self.api.status(env.env_id)
        except ApiGone as error:
            await self._recover(error)
            return False
        if status.step < env.curr_step:
            await self._recover(ApiGone(f"{self.api.url} was started anew", forgot=True))
            return False
        self._registered.set()
        self._waiting.over()
        await env.server.update_weight(status.weight)
        await self._advance(status)
        if status.step >= env.config.total_steps:
            return True
        self._end_broken()
        self._start_groups(status)
        self._end_overdue()
        return self._exhausted and not env.workers

    async def _recover(self, error: ApiGone) -> None:
        """Wait until the API answers again; it keeps everything in memory, so a new one must be told of us."""
        self._registered.clear()
        forgot, tries, problem = error.forgot, 0, error
        while True:
            self._waiting.say(f"{problem}; is run-api running? Groups in flight go on")
            await pause(tries)
            tries += 1
            try:
                await self.api.get("/info")
                break
            except ApiGone as again:
                forgot, problem = forgot or again.forgot, again
        if forgot:
            await self._register()
        else:
            self._registered.set()

    async def _register(self) -> None:
        """Register once a trainer has, and check that its batches can be filled."""
        env = self.env
        tries = 0
        while True:
            try:
                answer = await self.api.post("/register-env", self._registration())
                info = await self.api.get("/info") | await self.api.get("/wandb_info")
            except ApiGone as error:
                self._waiting.say(f"{error}; start it with `run-api`")
            else:
                if answer.get("status") == "success":
                    break
                self._waiting.say("run-api is up, but no trainer has registered and asked for a batch yet")
            await pause(tries)
            tries += 1
        await env.registered(answer, info)
        check_batch(env.config.group_size, env.config.batch_size)
        self._registered.set()
        self._waiting.over()
        _log.info("registered as %s with %s", env.wandb_prepend, self.api.url)

    def _registration(self) -> dict[str, Any]:
        config = self.env.config
        return {
            "max_token_length": config.context_length or config.max_token_length,
            "desired_name": config.wandb_name or self.env.name or type(self.env).__name__,
            "weight": config.inference_weight,
            "min_batch_allocation": config.min_batch_allocation,
            "group_size": config.group_size,
        }

    async def _advance(self, status: Status) -> None:
        """Evaluate, checkpoint and log when the trainer has moved on."""
        env = self.env
        before, env.curr_step = env.curr_step, status.step
        if before == status.step:
            return
        if _crossed(before, status.step, env.config.steps_per_eval) and not self._evaluating:
            self._evaluation = asyncio.create_task(env.evaluate_while_serving())
        if _crossed(before, status.step, env.checkpoint_interval):
            self._save(status.step // env.checkpoint_interval * env.checkpoint_interval)
        if env.items_sent_this_step >= env.config.min_items_sent_before_logging:
            env.items_sent_this_step = 0
            await env.wandb_log({})  # pyright: ignore[reportUnknownMemberType]

    def _save(self, step: int) -> None:
        """Save the environment's place; the folder is the trainer's and may not be there for us."""
        try:
            self.env.save_checkpoint(step)
        except OSError as error:
            _log.error("the environment's place at step %d was not saved: %s", step, error)

    @property
    def _evaluating(self) -> bool:
        return self._evaluation is not None and not self._evaluation.done()

    def _start_groups(self, status: Status) -> None:
        for _ in range(self._free_places(status)):
            item = self.env.backlog.pop() if self.env.backlog else None
            self._start(item)

    def _free_places(self, status: Status) -> int:
        """How many groups may be started now."""
        env, running = self.env, len(self.env.workers)
        workers = env.max_num_workers
        if self._evaluating:
            if env.config.eval_handling is EvalHandlingEnum.STOP_TRAIN:
                return 0
            if env.config.eval_handling is EvalHandlingEnum.LIMIT_TRAIN:
                workers = max(1, int(workers * env.config.eval_limit_ratio))
        if self._exhausted:
            return 0
        if env.metrics.dropped_in_a_row >= _DROPPED_IN_A_ROW:
            workers = 1
        ahead = max(1, env.config.max_batches_offpolicy * env.config.batch_size // env.config.group_size)
        share = max(env.config.min_batch_allocation or 0.0, status.weight)
        own = max(1, math.ceil(ahead * min(1.0, share)))
        wanted = max(ahead - status.queue, min(own, ahead) - status.own_queue)
        if wanted > 0:
            self._queue_full.over()
        else:
            self._queue_full.say("the queue is full, and the trainer takes none of its groups")
        return min(workers, wanted) - running

    def _start(self, item: Any) -> None:
        env = self.env
        item_id = str(uuid.uuid4())
        env.running_items[item_id] = {"item": item, "worker": None, "start_time": time.time()}
        worker = asyncio.create_task(self._group(item_id, item))
        env.running_items[item_id]["worker"] = worker
        env.workers.add(worker)
        worker.add_done_callback(env.workers.discard)

    async def _group(self, item_id: str, item: Any) -> None:
        env = self.env
        try:
            with uncancelled():
                if item is None:
                    item = await env.get_next_item()
                if item is None:
                    self._exhausted = True
                    return
                env.running_items[item_id]["item"] = item
                await env.handle_env(item_id)
            self._broken_in_a_row = 0
        except Exception as error:
            self._broken_in_a_row += 1
            self._problem = error
            _log.exception("a group failed")
        finally:
            env.running_items.pop(item_id, None)

    def _end_broken(self) -> None:
        """End the serving where every group that was started has failed."""
        if self._broken_in_a_row < _BROKEN_IN_A_ROW or self.env.workers:
            return
        raise EnvironmentFailed(
            f"{self._broken_in_a_row} groups in a row failed in the environment's own code; the last: "
            f"{type(self._problem).__name__}: {self._problem}"
        ) from self._problem

    def _end_overdue(self) -> None:
        limit = self.env.config.worker_timeout
        for running in list(self.env.running_items.values()):
            if 0 < limit < time.time() - running["start_time"]:
                _log.warning("a group has run for more than worker_timeout=%g s: cancelled", limit)
                running["worker"].cancel()

    async def _stop(self) -> None:
        tasks = [*self.env.workers, *([self._evaluation] if self._evaluation else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._registered.is_set():
            try:
                await self.api.post("/disconnect-env", {"env_id": self.env.env_id})
            except (ApiGone, Refused) as error:
                _log.info("could not say goodbye: %s", error)
        await self.api.aclose()


def check_batch(group_size: int, batch_size: int) -> None:
    """Refuse sizes with which a batch can never be formed.

    Raises:
        ConfigError: The group size does not divide the batch size.
    """
    if batch_size > 0 and batch_size % group_size:
        raise ConfigError(
            f"groups of {group_size} cannot fill the trainer's batches of {batch_size}: "
            "set --env.group_size to a divisor of it"
        )


def _crossed(before: int, after: int, interval: int) -> bool:
    return interval > 0 and before // interval < after // interval
