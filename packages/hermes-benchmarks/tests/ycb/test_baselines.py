"""The greedy policies on a company made by hand."""

from typing import Any

import pytest
from hermes_benchmarks.ycb.baselines import Company, greedy, greedy_reference


class Paper(Company):
    """Two employees, three offers; the second event is the horizon."""

    def __init__(self, funds: int) -> None:
        self.said: list[tuple[str, ...]] = []
        self.answers: dict[tuple[str, str], Any] = {
            ("company", "status"): {
                "tasks": {"active": 0},
                "prestige": {"data": 1.0, "backend": 3.7},
                "funds_cents": funds,
                "monthly_payroll_cents": 1_000_000,
                "sim_time": "2025-10-15T12:00:00",
                "horizon_end": "2026-01-01T09:00:00",
            },
            ("employee", "list"): {
                "employees": [
                    {"employee_id": "Ann", "skills": {"data": 4.0, "backend": 1.0}},
                    {"employee_id": "Bob", "skills": {"data": 1.0, "backend": 1.0}},
                ]
            },
            ("market", "browse"): {
                "tasks": [
                    offer("rich", 99, data=1000),
                    offer("short", 1, data=400),
                    offer("small", 9, backend=300),
                ]
            },
        }
        self.ends = iter([None, "horizon_end"])

    async def run(self, *argv: str) -> dict[str, Any]:
        self.said.append(argv)
        if argv == ("sim", "resume"):
            return {"terminal_reason": next(self.ends), "wake_events": [{}], "payrolls_applied": 0}
        return self.answers.get((argv[0], argv[1]), {})


def offer(name: str, reward: int, **needs: int) -> dict[str, Any]:
    requirements = [{"domain": domain, "required_qty": quantity} for domain, quantity in needs.items()]
    return {"task_id": name, "reward_funds_cents": reward, "requirements": requirements}


async def test_the_whole_team_works_on_the_task_that_it_finishes_soonest() -> None:
    company = Paper(funds=25_000_000)
    await greedy(company)
    pays = ("--reward-min-cents", "30000")  # 1% of three months' salaries
    assert ("market", "browse", "--required-prestige-lte", "3", *pays, "--limit", "1000") in company.said
    task = [line for line in company.said if line[0] == "task"]
    assert task[:4] == [
        ("task", "accept", "--task-id", "short"),
        ("task", "assign", "--task-id", "short", "--employee-id", "Ann"),
        ("task", "assign", "--task-id", "short", "--employee-id", "Bob"),
        ("task", "dispatch", "--task-id", "short"),
    ]


@pytest.mark.parametrize(("funds", "enough"), [(2_503_000_000, True), (2_502_999_999, False)])
async def test_no_task_is_taken_once_the_salaries_to_the_end_leave_all_that_scores(
    funds: int, enough: bool
) -> None:
    company = Paper(funds)
    await greedy(company)
    assert company.said[-1] == ("sim", "resume")
    assert (("employee", "list") not in company.said) is enough


async def test_the_reference_takes_the_highest_reward_a_day_of_a_team_divided_among_the_domains() -> None:
    company = Paper(funds=25_000_000)
    day, two_days, hour = (
        offer("day", 10, data=45),
        offer("two days", 15, data=45, backend=18),
        offer("hour", 9, data=5),
    )
    company.answers["market", "browse"] = {"tasks": [two_days, day, hour]}
    await greedy_reference(company)
    assert ("market", "browse", "--required-prestige-lte", "3", "--limit", "100") in company.said
    assert ("task", "dispatch", "--task-id", "day") in company.said
