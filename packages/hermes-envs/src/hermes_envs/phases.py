"""The phases of one attempt at a rollout: sandbox, prepare, agent, reward, clean-up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from hermes_sandbox import Sandbox, create_sandbox
from hermes_sandbox.registry import backend_class
from hermes_tools import ToolSession
from hermes_tools.session import Slots

from hermes_envs.blame import blamed
from hermes_envs.cleanup import finish
from hermes_envs.context import ToolContext, run_bridged
from hermes_envs.logs import RolloutLogger
from hermes_envs.messages import Message
from hermes_envs.outcome import (
    STOP_OF_BOUNDARY,
    BoundaryError,
    BoundaryName,
    Failure,
    StopReason,
    boundary,
    failure_of,
    is_failure,
)
from hermes_envs.result import AgentResult
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Agent, Reward, RolloutSpec
from hermes_envs.telemetry import Telemetry
from hermes_envs.toolset import tool_registry, tools_of

_BLOCKING_PER_ROLLOUT = 4
_UNGRADED = {
    StopReason.provider_error,
    StopReason.sandbox_error,
    StopReason.harness_error,
    StopReason.cancelled,
}


@dataclass(frozen=True, slots=True)
class Shared:
    """What rollouts of a process share.

    Attributes:
        sandboxes: Held while a sandbox is created.
        tool_pool: Bounds blocking tools; None is a few per rollout.
        telemetry: Where spans go.
    """

    sandboxes: AbstractAsyncContextManager[Any] | None
    tool_pool: Slots | None
    telemetry: Telemetry


class Attempt:
    """One attempt: after `run`, its attributes say how it went.

    Attributes:
        result: What the agent did.
        reward: The reward, where the reward function gave one.
        failure: Why it is not completed.
        timings: Seconds by phase.
        tool_names: The tools that the agent was shown.
    """

    def __init__(
        self,
        spec: RolloutSpec,
        agent: Agent,
        shared: Shared,
        log: RolloutLogger,
    ) -> None:
        self._spec = spec
        self._agent = agent
        self._shared = shared
        self._log = log
        self._tools = tools_of(spec)
        backend_class(spec.backend)  # an unknown name is the caller's mistake, not a failure of the rollout
        self._messages: list[Message] = [] if callable(spec.messages) else list(spec.messages)
        self.result: AgentResult | None = None
        self.reward: Reward | None = None
        self.failure: Failure | None = None
        self.timings: dict[str, float] = {}
        self.tool_names: tuple[str, ...] = ()

    async def run(self) -> None:
        """Go through the phases; raises only when cancelled."""
        began = time.perf_counter()
        try:
            async with self._sandbox() as sandbox, self._session(sandbox) as session:
                try:
                    await self._prepare(session)
                    await self._act(session)
                    await self._judge(session)
                except BoundaryError as error:
                    raise BoundaryError(await self._blamed(error.failure, sandbox)) from error.__cause__
        except BoundaryError as error:
            self.failure = error.failure
            self._log.warning("%s", error, exc_info=error.__cause__)
        except BaseException as error:
            if not is_failure(error):
                raise
            self.failure = failure_of(error, "harness")
            self._log.exception("the rollout broke outside every boundary")
        finally:
            self.timings["total"] = time.perf_counter() - began

    async def _blamed(self, failure: Failure, sandbox: Sandbox) -> Failure:
        """The failure with its blame settled; before the agent has acted nothing is the policy's."""
        return replace(failure, by_policy=False) if self.result is None else await blamed(failure, sandbox)

    @asynccontextmanager
    async def _sandbox(self) -> AsyncGenerator[Sandbox, None]:
        spec = self._spec
        sandbox: Sandbox | None = None
        try:
            # The slot bounds creations in flight, not living sandboxes; waiting for it is not the start's time.
            async with (
                self._shared.sandboxes or nullcontext(),
                self._phase("sandbox", "sandbox", spec.limits.sandbox_start_timeout, retryable=True),
            ):
                sandbox = await create_sandbox(spec.backend, spec.sandbox, **spec.backend_options)
            yield sandbox
        finally:
            if sandbox is not None:
                began = time.perf_counter()
                await finish(sandbox.close, "sandbox", timeout=spec.limits.cleanup_timeout, log=self._log)
                self.timings["cleanup"] = time.perf_counter() - began

    @asynccontextmanager
    async def _session(self, sandbox: Sandbox) -> AsyncGenerator[RolloutSession, None]:
        spec = self._spec
        tools = ToolSession(
            tool_registry(spec),
            self._tools,
            sandbox,
            terminal_timeout=spec.limits.terminal_timeout,
            max_blocking=self._shared.tool_pool or _BLOCKING_PER_ROLLOUT,
            options=spec.tool_options,
        )
        self.tool_names = tuple(sorted(tools.tool_names))
        session = RolloutSession(spec.id, spec, sandbox, tools, self._log)
        try:
            yield session
        finally:
            await finish(tools.close, "tool session", timeout=spec.limits.cleanup_timeout, log=self._log)

    async def _prepare(self, session: RolloutSession) -> None:
        spec = self._spec
        if spec.prepare is None and not callable(spec.messages):
            return
        async with self._phase("prepare", "harness", spec.limits.prepare_timeout, retryable=True):
            if spec.prepare is not None:
                await spec.prepare(session)
            if callable(spec.messages):
                self._messages = list(await spec.messages(session))

    async def _act(self, session: RolloutSession) -> None:
        limit = asyncio.timeout(self._spec.limits.deadline)
        began = time.perf_counter()
        stop: StopReason | None = None
        failure: Failure | None = None
        try:
            async with limit:
                with boundary("harness", "running the agent"):
                    self.result = await self._agent(list(self._messages), session)
        except TimeoutError:
            stop = StopReason.deadline
        except BoundaryError as error:
            failure, stop = error.failure, STOP_OF_BOUNDARY[error.failure.boundary]
            self._log.warning("%s", error, exc_info=error.__cause__)
        finally:
            self.timings["agent"] = time.perf_counter() - began
        if stop is not None or self.result is None:
            partial = session.progress() if session.progress else None
            partial = partial or AgentResult(messages=list(self._messages))
            self.result = replace(partial, stop_reason=stop or StopReason.harness_error, error=failure)
        if self.result.stop_reason in _UNGRADED:
            raise BoundaryError(self.result.error or _ungraded(self.result.stop_reason))

    async def _judge(self, session: RolloutSession) -> None:
        reward, result = self._spec.reward, self.result
        if reward is None or result is None:
            return
        context = ToolContext(session)
        async with self._phase("reward", "verifier", self._spec.limits.reward_timeout, retryable=False):
            given = await run_bridged(reward, result, context)
        self.reward = _checked(given)
        if self.reward.failure is not None:
            raise BoundaryError(self.reward.failure)

    @asynccontextmanager
    async def _phase(
        self, name: str, at: BoundaryName, timeout: float, *, retryable: bool
    ) -> AsyncGenerator[None, None]:
        """A phase with its deadline, boundary, clock and span."""
        began = time.perf_counter()
        limit = asyncio.timeout(timeout)
        try:
            with self._shared.telemetry.phase(name):
                async with limit:
                    with boundary(at, name):
                        yield
        except TimeoutError as error:
            message = f"{name} took more than {timeout:g} s"
            raise BoundaryError(Failure(at, "Timeout", message, retryable=retryable)) from error
        finally:
            self.timings[name] = time.perf_counter() - began


def _ungraded(stop: StopReason) -> Failure:
    return Failure("harness", stop.value, "the agent ended without saying more")


def _checked(given: Any) -> Reward:
    """The reward as a `Reward`, refused unless it is a finite number from 0 to 1 or explains why not.

    Raises:
        BoundaryError: It is none.
    """
    reward = given if isinstance(given, Reward) else Reward(given)
    if reward.failure is not None:
        return reward
    value = _number(reward.value)
    if value is not None and 0.0 <= value <= 1.0:
        return replace(reward, value=value)
    message = f"the reward function returned {reward.value!r}; a reward is a finite number from 0 to 1"
    raise BoundaryError(Failure("verifier", "InvalidReward", message))


def _number(value: Any) -> float | None:
    """Any library's number or truth value as a float; text is none, although `float` would read it."""
    try:
        return None if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
