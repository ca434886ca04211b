"""Real Terminal-Bench 2 tasks, judged under Docker: their authors' solutions pass, and doing nothing does not.

Their images must be there already (the names in each `task.toml`), with what their `test.sh` installs within reach.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hermes_envs import AgentResult, Outcome, RolloutSession, nop_agent, run_rollout
from hermes_envs.harbor import load_tasks, run_solution, task_rollout_spec

pytestmark = [pytest.mark.docker, pytest.mark.tb2, pytest.mark.slow, pytest.mark.timeout(1800)]

TASKS = (
    *(
        "regex-log",
        "cancel-async-tasks",
        "sqlite-db-truncate",
        "openssl-selfsigned-cert",
        "log-summary-date-ranges",
    ),
    *("cobol-modernization", "vulnerable-secret", "git-leak-recovery", "kv-store-grpc"),
)


@pytest.mark.parametrize("name", TASKS)
async def test_the_solution_passes_and_doing_nothing_fails(name: str) -> None:
    (task,) = load_tasks(os.environ["HERMES_TB2_TASKS"], only=[name])

    async def oracle(messages: Sequence[Any], session: RolloutSession) -> AgentResult:
        await run_solution(task, session.sandbox)
        return AgentResult(messages=list(messages))

    for agent, reward in ((nop_agent, 0.0), (oracle, 1.0)):
        rollout = await run_rollout(task_rollout_spec(task, backend="docker"), agent)
        assert rollout.outcome is Outcome.completed, rollout.failure
        assert rollout.reward == reward, rollout.reward_details["message"] or rollout.reward_details["tests"]
        assert rollout.reward_details["tests"]
