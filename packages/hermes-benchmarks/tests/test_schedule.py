import asyncio
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hermes_benchmarks.outage import OutageGate
from hermes_benchmarks.schedule import RetryPolicy, Schedule
from hermes_benchmarks_support import Watcher, record


@dataclass(frozen=True)
class Spec:
    task: str
    attempt: int = 1

    @property
    def name(self):
        return f"{self.task}__{self.attempt}"


def specs(*names):
    return [Spec(name) for name in names]


class Script:
    """Runs trials by a script: the verdicts of a task's tries in order, the last one repeated."""

    def __init__(self, seconds=0.0, **verdicts):
        self.seconds, self.verdicts = seconds, verdicts
        self.ran, self.now, self.most = [], 0, 0

    async def __call__(self, spec):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        tries = self.ran.count(spec.task)
        self.ran.append(spec.task)
        verdicts = self.verdicts.get(spec.task, ["passed"])
        outcome = verdicts[min(tries, len(verdicts) - 1)]
        values = outcome if isinstance(outcome, dict) else {"verdict": outcome}
        return record(spec.task, **values)


def schedule(run, **options):
    watcher = Watcher()
    options.setdefault("retry", RetryPolicy(retries=2, first_wait=0.001))
    return Schedule(run=run, observer=watcher, **options), watcher


async def test_no_more_run_at_once_than_allowed():
    run = Script(seconds=0.01)
    plan, _ = schedule(run, concurrency=3)
    await plan.execute(specs(*"abcdefghij"))
    assert sorted(run.ran) == list("abcdefghij")
    assert run.most == 3


async def test_the_longest_go_first_when_the_last_are_left():
    started = []

    async def run(spec):
        started.append(spec.name)
        await asyncio.sleep(0)
        return record(spec.task, seconds={"short": 1.0, "long": 9.0}[spec.task])

    plan, _ = schedule(run, concurrency=2)
    await plan.execute([Spec(task, n) for n in (1, 2, 3) for task in ("short", "long")])
    assert started[:4] == ["short__1", "long__1", "short__2", "long__2"]
    assert started[4:] == ["long__3", "short__3"]


async def test_what_cannot_be_graded_is_tried_again_within_bounds():
    run = Script(a=["sandbox_error", "passed"], b=["verifier_error"])
    plan, watcher = schedule(run)
    await plan.execute(specs("a", "b"))
    assert run.ran.count("a") == 2
    assert run.ran.count("b") == 3
    last = [event for event in watcher.events if event[:2] == ("finished", "b")][-1]
    assert last == ("finished", "b", "verifier_error", False)


async def test_a_graded_failure_is_final():
    run = Script(a=["failed"])
    plan, _ = schedule(run)
    await plan.execute(specs("a"))
    assert run.ran == ["a"]


async def test_an_error_that_will_not_go_away_is_not_retried():
    run = Script(a=[{"verdict": "sandbox_error", "retryable": False}])
    plan, _ = schedule(run)
    await plan.execute(specs("a"))
    assert run.ran == ["a"]


async def test_a_refused_key_stops_the_run():
    refusal = {
        "verdict": "provider_error",
        "retryable": False,
        "cause": "AuthenticationFailed",
        "message": "no",
    }
    run = Script(a=[refusal])
    plan, _ = schedule(run, concurrency=1)
    await plan.execute(specs("a", "b", "c"))
    assert run.ran == ["a"]
    assert (plan.refused, plan.stopped) == (True, "no")


async def test_an_outage_pauses_the_run_and_costs_no_retries():
    down = asyncio.Event()

    async def provider(spec):
        if not down.is_set():
            provider.failures += 1
            return record(spec.task, verdict="provider_error")
        return record(spec.task)

    provider.failures = 0
    gate = OutageGate(threshold=3, first_wait=0.05, max_wait=0.05)
    plan, watcher = schedule(provider, gate=gate, concurrency=8, retry=RetryPolicy(1, first_wait=0.001))
    task = asyncio.create_task(plan.execute(specs(*(f"t{i}" for i in range(40)))))
    await asyncio.sleep(0.5)
    assert provider.failures < 30, "an outage must not burn through the trials"
    down.set()
    await asyncio.wait_for(task, 60)
    passed = {event[1] for event in watcher.events if event[0] == "finished" and event[2] == "passed"}
    assert len(passed) == 40
    assert any(event[0] == "paused" for event in watcher.events)


async def test_an_outage_beyond_patience_stops_the_run():
    run = Script(**{f"t{i}": ["provider_error"] for i in range(6)})
    plan, _ = schedule(run, gate=OutageGate(threshold=2, first_wait=0.02, max_wait=0.02), patience=0.2)
    await asyncio.wait_for(plan.execute(specs(*(f"t{i}" for i in range(6)))), 60)
    assert "failing" in plan.stopped


async def test_a_cost_cap_starts_nothing_more():
    run = Script(**{name: [{"verdict": "passed", "cost": 0.4}] for name in "abcde"})
    plan, _ = schedule(run, concurrency=1, max_cost=1.0)
    await plan.execute(specs(*"abcde"))
    assert run.ran == ["a", "b", "c"]
    assert "$1.20 of $1.00" in plan.stopped


async def test_a_run_that_is_over_its_cap_already_starts_nothing():
    run = Script()
    plan, _ = schedule(run, max_cost=1.0, spent=1.2)
    await plan.execute(specs(*"ab"))
    assert run.ran == []
    assert "$1.20 of $1.00" in plan.stopped


async def test_requests_that_a_provider_refuses_are_no_outage():
    refused = {"verdict": "provider_error", "retryable": False, "cause": "BadRequest"}
    run = Script(**{name: [refused] for name in "abcdef"})
    plan, watcher = schedule(run, concurrency=1)
    await asyncio.wait_for(plan.execute(specs(*"abcdef")), 60)
    assert (run.ran, plan.stopped) == (list("abcdef"), "")
    assert not any(event[0] == "paused" for event in watcher.events)


async def test_a_machines_trouble_says_nothing_of_the_provider():
    run = Script(a=["provider_error"], b=["sandbox_error"], c=["provider_error"])
    gate = OutageGate(threshold=2, first_wait=60)
    plan, _ = schedule(run, concurrency=1, gate=gate, retry=RetryPolicy(0))
    await plan.execute(specs(*"ab"))
    assert not gate.closed
    task = asyncio.create_task(plan.execute(specs("c")))
    while not gate.closed:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_schedule_sleeps_while_a_probe_runs():
    asked = 0

    class Counting(OutageGate):
        def admits(self, running):
            nonlocal asked
            asked += 1
            return super().admits(running)

    gate = Counting(threshold=1, first_wait=0.0)
    gate.report(True)
    plan, _ = schedule(Script(seconds=0.5), gate=gate, concurrency=4)
    await asyncio.wait_for(plan.execute(specs(*"abc")), 60)
    assert asked < 10


async def test_cancelling_waits_for_the_trials_to_clean_up():
    begun, cleaned = asyncio.Semaphore(0), []

    async def run(spec):
        begun.release()
        try:
            await asyncio.sleep(300)
        finally:
            await asyncio.sleep(0.02)
            cleaned.append(spec.task)

    plan, _ = schedule(run, concurrency=2)
    task = asyncio.create_task(plan.execute(specs("a", "b", "c")))
    for _ in range(2):
        await begun.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(cleaned) == ["a", "b"]


def test_the_gate_lets_one_probe_through_at_a_time():
    now = SimpleNamespace(t=0.0)
    gate = OutageGate(threshold=2, first_wait=10, max_wait=25, clock=lambda: now.t)
    gate.report(True)
    assert gate.admits(5)
    gate.report(True)
    assert not gate.admits(0)
    now.t = 10
    assert gate.admits(0)
    assert not gate.admits(1)
    gate.report(True)
    assert gate.next_probe() == 20
    now.t = 30
    gate.report(True)
    assert gate.next_probe() == 25
    gate.report(False)
    assert gate.admits(5)
