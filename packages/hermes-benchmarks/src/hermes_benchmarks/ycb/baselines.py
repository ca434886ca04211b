"""Policies without a model, published beside every result: they say what a score is worth.

`never` lets no time pass, `idle` lets time pass and does nothing, `greedy` always puts the whole team on the task
that it finishes soonest, until it has all the funds that count; `greedy-reference` repeats what was measured elsewhere.
They are not bound by the turns that a model has.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes_envs import AgentResult

from hermes_benchmarks.agents import RunAgent
from hermes_benchmarks.ycb.score import INITIAL_FUNDS

if TYPE_CHECKING:
    from hermes_envs import Agent, RolloutSession
    from hermes_envs.messages import Message
    from hermes_sandbox import Shell

    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.config import EvaluationConfig

COMMAND_TIMEOUT = 60.0
EVENT_LIMIT = 5000
REFERENCE_EVENTS = 400
"""Where the reference stopped; on larger presets its policy would come to do thousands of tasks in no time."""
WORKDAY_HOURS = 9
ENOUGH = 100 * INITIAL_FUNDS
"""Cents of which more score nothing."""
RAISE = 0.01
"""The share by which a task done raises the salaries of those who did it, in most presets."""

Merit: TypeAlias = Callable[[Mapping[str, Any], float], float]
"""How good an offer is, from the offer and the working hours that the team needs for it."""


class Company:
    """The simulator's commands, as a policy sees them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def run(self, *argv: str) -> dict[str, Any]:
        """One command's answer."""
        line = shlex.join(["yc-bench", *argv])
        result = await self._shell.run(line, timeout=COMMAND_TIMEOUT, output_limit=None)
        if result.exit_code != 0:
            raise RuntimeError(f"{line} failed with exit code {result.exit_code}: {result.output[-500:]}")
        return json.loads(result.stdout)

    async def resume(self) -> bool:
        """Let time pass until the next event; whether the simulation goes on."""
        after = await self.run("sim", "resume")
        return after["terminal_reason"] is None and bool(after["wake_events"] or after["payrolls_applied"])


async def never(company: Company) -> None:
    """Do nothing at all."""


async def idle(company: Company) -> None:
    """Let time pass until the end."""
    for _ in range(EVENT_LIMIT):
        if not await company.resume():
            return


async def greedy(company: Company) -> None:
    """Put the whole team on the shortest task that pays, one after another, until the end or until there is enough.

    Each task done raises skills by about 12% and salaries by 1%. A task pays when its reward is more than what its
    raises cost up to the horizon. Without that, tasks soon take no time at all, and the payroll of the thousands done
    in a minute is the company's bankruptcy.
    """
    for _ in range(EVENT_LIMIT):
        status = await company.run("company", "status")
        salaries = _months_left(status) * status["monthly_payroll_cents"]
        if status["tasks"]["active"] == 0 and status["funds_cents"] - salaries < ENOUGH:
            pays = int(RAISE * salaries)
            await _take_best_task(company, status, _speed, "--reward-min-cents", str(pays), "--limit", "1000")
        if not await company.resume():
            return


async def greedy_reference(company: Company) -> None:
    """Put the whole team on the task with the highest reward for each day, one after another: the reference's policy.

    It was not published. This one was found by search: in the worlds of `sim init` it earns the figures known of the
    reference to the cent, with the same number of tasks, events and ledger entries.
    """
    for _ in range(REFERENCE_EVENTS):
        status = await company.run("company", "status")
        if status["tasks"]["active"] == 0:
            await _take_best_task(company, status, _daily_reward, "--limit", "100")
        if not await company.resume():
            return


def _months_left(status: Mapping[str, Any]) -> int:
    now, end = (datetime.fromisoformat(status[key]) for key in ("sim_time", "horizon_end"))
    return 12 * (end.year - now.year) + end.month - now.month


async def _take_best_task(company: Company, status: Mapping[str, Any], merit: Merit, *wanted: str) -> None:
    """Put the whole team on the best of the wanted offers that the company may take, the first of equals."""
    prestige = str(int(max(status["prestige"].values())))
    browse = ("market", "browse", "--required-prestige-lte", prestige, *wanted)
    offers = (await company.run(*browse))["tasks"]
    team = (await company.run("employee", "list"))["employees"]
    rates: dict[str, float] = {}
    for employee in team:
        for domain, rate in employee["skills"].items():
            rates[domain] = rates.get(domain, 0.0) + rate
    if not offers:
        return
    task = max(offers, key=lambda offer: merit(offer, _hours(offer, rates)))["task_id"]
    await company.run("task", "accept", "--task-id", task)
    for employee in team:
        await company.run("task", "assign", "--task-id", task, "--employee-id", employee["employee_id"])
    await company.run("task", "dispatch", "--task-id", task)


def _hours(offer: Mapping[str, Any], rates: Mapping[str, float]) -> float:
    """Working hours that the whole team needs: domains are worked on side by side."""
    return max(
        need["required_qty"] / max(rates.get(need["domain"], 0.0), 1e-9) for need in offer["requirements"]
    )


def _speed(offer: Mapping[str, Any], hours: float) -> float:
    return -hours


def _daily_reward(offer: Mapping[str, Any], hours: float) -> float:
    """Cents for each working day, as if the team were divided among the domains and a task took a day at least."""
    days = max(hours * len(offer["requirements"]) / WORKDAY_HOURS, 1.0)
    return offer["reward_funds_cents"] / days


MEASURED: Mapping[str, float] = {
    "fast_test-1": 0.974274,
    **{f"{preset}-{seed}": 1.0 for preset in ("medium", "hard") for seed in (1, 2, 3)},
    "fast_test-2": 1.0,
    "fast_test-3": 1.0,
}
"""The score of `greedy` on the default worlds; `never` and `idle` end bankrupt on all of them."""

POLICIES = {"never": never, "idle": idle, "greedy": greedy, "greedy-reference": greedy_reference}


def baseline(name: str) -> RunAgent:
    """The baseline of that name as an agent of a run."""
    policy = POLICIES[name]

    async def act(messages: Sequence[Message], session: RolloutSession) -> AgentResult:
        shell = await session.sandbox.open_shell()
        try:
            await policy(Company(shell))
        finally:
            await shell.close()
        return AgentResult(
            messages=[*messages, {"role": "assistant", "content": f"The {name} policy has ended."}]
        )

    def for_task(task: BenchmarkTask) -> Agent:
        return act

    return RunAgent(for_task=for_task)


def factory(name: str) -> Any:
    """A factory for the benchmark's table of agents."""

    def make(config: EvaluationConfig) -> RunAgent:
        return baseline(name)

    return make
