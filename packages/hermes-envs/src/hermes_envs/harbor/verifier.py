"""The verifier: run a task's tests on what an agent left, and judge what they say.

*shared* runs them in the agent's own sandbox, as the authors of the benchmarks do: services that the agent started
stay alive, and so would a process that waits to overwrite the verdict, which only its contradictions give away.
*fresh* runs them in a new sandbox from a snapshot, where no process of the agent's is alive; a task that needs its
services cannot pass there. *both* runs the two and compares.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hermes_sandbox import SandboxError, SandboxGone, attach_sandbox, create_sandbox, delete_snapshot
from hermes_sandbox.errors import AuthError, Unavailable

from hermes_envs.harbor.guard import Baseline, repair, take_baseline
from hermes_envs.harbor.judging import Observation, judge
from hermes_envs.harbor.layout import Layout
from hermes_envs.harbor.prepare import prepare_environment
from hermes_envs.harbor.promise import Promise, promise_of
from hermes_envs.harbor.report import shows_breakdown, shows_start
from hermes_envs.harbor.verdict import PASS, Status, Verdict, conclusive, contradiction
from hermes_envs.outcome import Failure

if TYPE_CHECKING:
    from hermes_sandbox import Sandbox, SandboxSpec, Snapshot

    from hermes_envs.harbor.task import Task

Mode: TypeAlias = Literal["shared", "fresh", "both"]


DEFAULT_SECONDS = 600.0
"""What the tests of a task that does not say may take."""
LOOK_SECONDS = 60.0
"""What a look at a sandbox that failed may take."""


async def verify(
    task: Task,
    sandbox: Sandbox,
    *,
    mode: Mode = "shared",
    timeout: float | None = None,
    baseline: Baseline | None = None,
    backend_options: Mapping[str, Any] | None = None,
) -> Verdict:
    """Judge what an agent left in a sandbox. Whatever the tests do is in the verdict, not raised.

    Args:
        task: The task.
        sandbox: The agent's sandbox, after the agent has ended.
        mode: Where the tests run.
        timeout: Seconds for one run of the tests; the task's own by default, else 600.
        baseline: The judge's machinery before the agent acted (`take_baseline`); without one it is not repaired.
        backend_options: Options of the backend, for the sandboxes that are made here.

    Returns:
        The verdict; of *both*, the shared one, with the other as its `fresh`.

    Raises:
        hermes_sandbox.SandboxError: A sandbox cannot be reached, made or saved.
    """
    run = _verification(task, sandbox.backend, sandbox.spec, timeout, baseline, backend_options)
    try:
        return await _verify(run, sandbox, mode)
    except SandboxError as error:
        if not await run.broken(sandbox):
            raise
        return replace(await run.second_opinion(str(error)), mode=mode)


async def _verify(run: _Verification, sandbox: Sandbox, mode: Mode) -> Verdict:
    if mode == "shared":
        return await run.shared(sandbox)
    image = await sandbox.snapshot()  # before any test has run in the original
    try:
        if mode == "fresh":
            return await run.fresh(image)
        shared = await run.shared(sandbox)
        return replace(shared, fresh=await run.fresh(image))
    finally:
        await delete_snapshot(image, **run.options)


async def verify_snapshot(
    task: Task,
    image: Snapshot,
    backend: str,
    spec: SandboxSpec,
    *,
    timeout: float | None = None,
    backend_options: Mapping[str, Any] | None = None,
) -> Verdict:
    """Judge what an agent left, from a snapshot that was kept of its sandbox; the tests run as in *fresh* mode.

    The judge's machinery is compared with that of the task's own image, in which nobody has acted.

    Args:
        task: The task.
        image: The snapshot, taken after the agent had ended and before any test ran.
        backend: Where it was taken.
        spec: The sandbox that the agent had, as it was before the agent acted (`sandbox_spec`).
        timeout: Seconds for one run of the tests; the task's own by default, else 600.
        backend_options: Options of the backend.

    Raises:
        hermes_sandbox.SandboxError: A sandbox cannot be reached or made.
    """
    run = _verification(task, backend, spec, timeout, None, backend_options)
    async with run.pristine() as untouched:
        baseline = await take_baseline(untouched, Layout.of(untouched))
    return await replace(run, baseline=baseline).fresh(image)


def _verification(
    task: Task,
    backend: str,
    spec: SandboxSpec,
    timeout: float | None,
    baseline: Baseline | None,
    options: Mapping[str, Any] | None,
) -> _Verification:
    timeout = task.config.verifier_timeout if timeout is None else timeout
    return _Verification(
        task=task,
        backend=backend,
        spec=spec,
        timeout=DEFAULT_SECONDS if timeout is None else timeout,
        baseline=baseline,
        options=dict(options or {}),
        promise=promise_of(task.tests_dir),
    )


@dataclass(frozen=True)
class _Verification:
    task: Task
    backend: str
    spec: SandboxSpec
    timeout: float
    baseline: Baseline | None
    promise: Promise
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def shared(self, sandbox: Sandbox) -> Verdict:
        """Run the tests where the agent worked."""
        return await self._judge(sandbox, "shared")

    async def fresh(self, image: Snapshot) -> Verdict:
        """Run the tests in a new sandbox from the agent's snapshot."""
        spec = replace(self.spec, image=image)
        async with create_sandbox(self.backend, spec, **self.options) as sandbox:
            return await self._judge(sandbox, "fresh")

    @asynccontextmanager
    async def pristine(self) -> AsyncGenerator[Sandbox, None]:
        """A sandbox of the task's image in which nobody has acted."""
        async with create_sandbox(self.backend, self.spec, **self.options) as sandbox:
            await prepare_environment(self.task, sandbox)
            yield sandbox

    async def _judge(self, sandbox: Sandbox, mode: str) -> Verdict:
        began = time.perf_counter()
        layout = Layout.of(sandbox)
        repaired: tuple[str, ...] = ()
        if self.baseline is not None:
            repaired = await repair(sandbox, layout, self.baseline, self.pristine)
        prepared = time.perf_counter() - began
        image_env = self.baseline.env if self.baseline else None
        seen = await judge(self.task, sandbox, layout, self.timeout, image_env)
        verdict = await self._decide(seen)
        seconds = {"repair": prepared, **seen.seconds, "total": time.perf_counter() - began}
        return replace(
            verdict,
            tests=seen.evidence.tests or (),
            summary=seen.evidence.summary,
            rewards=seen.evidence.rewards,
            stdout=seen.run.stdout if seen.run else b"",
            files=seen.files,
            seconds={name: round(value, 3) for name, value in seconds.items()},
            mode=mode,
            repaired=repaired,
        )

    async def _decide(self, seen: Observation) -> Verdict:
        """The verdict that follows from one run of the tests, and where that says nothing, from another."""
        evidence = seen.evidence
        if not seen.wiped or seen.run is None:
            return _tampered(
                "wipe_failed", "the way for the tests could not be cleared: something keeps its place"
            )
        if seen.edited:
            return _tampered(
                "tests_edited", f"test files were changed while they ran: {', '.join(seen.edited[:3])}"
            )
        if evidence.problem.startswith("not a regular"):
            return _tampered("not_regular", f"the verdict file is {evidence.problem}")
        if why := contradiction(evidence, self.promise):
            return _tampered("contradiction", why)
        if evidence.reward is not None and conclusive(evidence, self.promise):
            return _graded(evidence.reward)
        if seen.run.timed_out:
            return self._timed_out(seen)
        if seen.run.reason == "oom":
            return _failed_by_agent("oom", "the tests ran out of memory")
        problem = evidence.problem or f"the reward is {evidence.reward:g}, and there is no trace of tests"
        return await self.second_opinion(problem, meant=self._can_be_meant(seen))

    def _can_be_meant(self, seen: Observation) -> bool:
        """Whether a reward of 0 without a trace of tests may be what the tests say: they begin, or come to it before."""
        possible = self.promise.early or seen.evidence.started
        stdout = seen.run.stdout if seen.run else b""
        return seen.evidence.reward == 0 and possible and not shows_breakdown(stdout)

    def _timed_out(self, seen: Observation) -> Verdict:
        stdout = seen.run.stdout if seen.run else b""
        if shows_start(stdout) or not self.promise.bootstrap:
            return _failed_by_agent("hung", f"the tests did not end within {self.timeout:g} s of their start")
        message = f"the tests had not started after {self.timeout:g} s"
        failure = Failure("verifier", "verifier_timeout", message, retryable=True)
        return Verdict(Status.verifier_timeout, None, "not_started", message, failure=failure)

    async def broken(self, sandbox: Sandbox) -> bool:
        """Whether a sandbox is there, but runs no command any more: only what acted in it can have done that.

        Raises:
            hermes_sandbox.SandboxGone: It is not there; the error says how it ended.
            hermes_sandbox.SandboxError: Its backend cannot be asked.
        """
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                again = await attach_sandbox(self.backend, sandbox.id, **self.options)
                try:
                    return not (await again.exec("true", timeout=LOOK_SECONDS)).ok
                finally:
                    await again.detach()
        except (SandboxGone, Unavailable, AuthError):
            raise
        except (SandboxError, TimeoutError):
            return True

    async def second_opinion(self, problem: str, *, meant: bool = False) -> Verdict:
        """No usable verdict: if the same tests give one where nobody acted, the agent is the reason.

        Args:
            problem: What is missing.
            meant: What was seen is a reward of 0 that the tests may mean; they do where it is the same in both.
        """
        async with self.pristine() as sandbox:
            layout = Layout.of(sandbox)
            again = await judge(self.task, sandbox, layout, self.timeout)
        evidence = again.evidence
        if conclusive(evidence, self.promise):
            return _failed_by_agent(
                "broken_environment", f"the tests work in a pristine sandbox, not in this one: {problem}"
            )
        if meant and self._can_be_meant(again):
            return _graded(0.0)
        message = f"the tests cannot run here, in a pristine sandbox neither: {problem}"
        failure = Failure("verifier", "bootstrap", message, retryable=True)
        return Verdict(Status.verifier_error, None, "bootstrap", message, failure=failure)


def _graded(reward: float) -> Verdict:
    status = Status.passed if reward >= PASS else Status.failed
    return Verdict(status, reward, "tests")


def _tampered(cause: str, message: str) -> Verdict:
    failure = Failure("verifier", "tampered", message, by_policy=True)
    return Verdict(Status.tampered, 0.0, cause, message, failure=failure)


def _failed_by_agent(cause: str, message: str) -> Verdict:
    failure = Failure("verifier", cause, message, by_policy=True)
    return Verdict(Status.failed, 0.0, cause, message, failure=failure)
