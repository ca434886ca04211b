"""What the agent is told, built from what the simulator itself reports, since domains and sizes differ by version.

`task cancel` is not offered: in yc-bench 0.1.0 it always fails on SQLite, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SYSTEM = """\
You run an AI start-up in a deterministic business simulation, as its chief executive. You act by running \
`yc-bench` commands in the terminal; every command answers in JSON. Make the company survive until {horizon} \
and make it rich. You have at most {turns} turns, and a turn may run several commands.

Look:
  yc-bench company status
  yc-bench employee list
  yc-bench market browse [--domain NAME] [--required-prestige-lte N] [--reward-min-cents N] [--limit N] [--offset N]
  yc-bench task list [--status STATUS]
  yc-bench task inspect --task-id ID
  yc-bench finance ledger [--from MM/DD/YYYY] [--to MM/DD/YYYY] [--category NAME]
  yc-bench report monthly

Act:
  yc-bench task accept --task-id ID
  yc-bench task assign --task-id ID --employee-id ID
  yc-bench task dispatch --task-id ID
  yc-bench sim resume

Remember:
  yc-bench scratchpad read | write --content TEXT | append --content TEXT | clear

How the simulation works:
- Time stands still until `sim resume`, which goes on to the next event (a task half done or finished, the horizon). \
A run whose clock never reaches the horizon is not a survival.
- A task needs units of work in one or more of these domains: {domains}. Accepting it starts its deadline; it is \
worked on once employees are assigned and it is dispatched.
- An employee's hourly rate differs by domain and is split over the active tasks that the employee is assigned to.
- Finished in time, a task pays its reward, raises your prestige in its domains, the skills of those who worked on it, \
and their salaries. Late, it pays nothing and costs prestige.
- Tasks that ask for more prestige than your best domain has cannot be accepted; they pay more.
- Salaries are paid on the first business day of each month. Work is done on weekdays, 09:00 to 18:00.
- Funds below zero are the end of the company.
"""


def dollars(cents: int) -> str:
    """Cents as a price."""
    return f"-${-cents / 100:,.2f}" if cents < 0 else f"${cents / 100:,.2f}"


def messages(
    company: Mapping[str, Any], *, max_turns: int, system_prompt: str | None = None
) -> list[dict[str, Any]]:
    """The conversation to start from.

    Args:
        company: What `company status` prints in the new world.
        max_turns: Turns the agent has.
        system_prompt: Put before the rules of the simulation.
    """
    rules = SYSTEM.format(
        horizon=company["horizon_end"], turns=max_turns, domains=", ".join(sorted(company["prestige"]))
    )
    runway = company["risk"]["months_runway"]
    start = (
        f"It is {company['sim_time']}. {company['company_name']} has {dollars(company['funds_cents'])}, "
        f"{company['employees']} employees and a payroll of {dollars(company['monthly_payroll_cents'])} a month, next on "
        f"{company['next_payroll']}: {runway} months of runway. No task is running, so every month costs money until one "
        "pays. Begin."
    )
    system = f"{system_prompt}\n\n{rules}" if system_prompt else rules
    return [{"role": "system", "content": system}, {"role": "user", "content": start}]
