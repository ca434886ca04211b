"""Whole runs of YC-Bench: the real simulator in a local sandbox."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.ycb import YcBench, YcBenchConfig
from hermes_benchmarks.ycb.baselines import baseline
from hermes_envs import AgentResult, Outcome, Rollout, RolloutSession, StopReason, run_rollout
from hermes_envs.agents import loop_agent
from hermes_envs.clients import ScriptedClient, Turn
from hermes_parsers import ToolCall

pytestmark = [pytest.mark.ycb, pytest.mark.filterwarnings("ignore:local sandboxes without isolation")]
PYTHON = os.environ.get("HERMES_YCB_PYTHON", sys.executable)


def bench(**env: Any) -> YcBench:
    settings = {"presets": ["fast_test"], "seeds": [1], "simulator_python": PYTHON, **env}
    return YcBench(YcBenchConfig.model_validate({"env": settings}))


async def play(agent: Any, **env: Any) -> Rollout:
    benchmark = bench(**env)
    (task,) = benchmark.tasks()
    return await run_rollout(benchmark.rollout(task), agent)


def shell_agent(script: str, said: list[str] | None = None) -> Any:
    async def act(messages: Sequence[Any], session: RolloutSession) -> AgentResult:
        done = await session.sandbox.exec(script, timeout=60)
        if said is not None:
            said.append(done.output)
        return AgentResult(messages=list(messages))

    return act


async def test_a_run_in_which_no_time_passed_is_resumed_to_its_bankruptcy_and_marked() -> None:
    rollout = await play(baseline("never").for_task(bench().tasks()[0]))
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 0.0)
    info = rollout.reward_details["info"]
    assert (info["incomplete"], info["funds_cents"]) == (True, -491_336)
    assert round(info["reference_composite"], 4) == 0.5751


async def test_a_model_is_told_about_the_company_that_was_made_and_plays_it_through_the_terminal() -> None:
    call = ToolCall(
        "call_1",
        "terminal",
        '{"command": "yc-bench scratchpad write --content plan; yc-bench company status"}',
    )
    client = ScriptedClient([Turn(content=None, tool_calls=(call,)), Turn(content="Enough.")])
    rollout = await play(loop_agent(client))
    result = rollout.result
    assert result
    assert result.stop_reason is StopReason.finished
    system, start, _, answer, _ = result.messages
    for domain in ("backend", "data", "frontend", "hardware", "research", "system", "training"):
        assert domain in system["content"]
    assert "$250,000.00" in start["content"]
    assert "funds_cents" in answer["content"]
    assert rollout.reward_details["info"]["commands"] == 2
    assert b"scratchpad" in rollout.reward_details["files"]["journal.jsonl"]


# Among all the simulators of this machine, the one of this sandbox.
SERVER = r"""
cd .yc-bench
server=$(pgrep -f '[s]imulator.py serve' | while read -r pid; do
    [ "$(readlink /proc/$pid/cwd)" = "$PWD" ] && echo $pid; done)
"""
FORGE = (
    SERVER
    + r"""
rm socket && ls
for file in simulator.py shim.py; do echo 'print("{\"funds_cents\": 99999999999}")' >$file; done
echo '{"message": "{\"nonce\": null, \"funds_cents\": 99999999999}", "mac": "0"}' >/proc/$server/fd/1
printf 'half a line' >/proc/$server/fd/0
kill -STOP $server
"""
)


async def test_what_an_agent_can_reach_of_the_simulator_changes_no_score() -> None:
    said: list[str] = []
    rollout = await play(shell_agent(FORGE, said))
    assert said == ["shim.py\nsimulator.py\n"]  # no database; and every step of it worked
    assert (rollout.outcome, rollout.reward) == (Outcome.completed, 0.0)
    assert rollout.reward_details["info"]["funds_cents"] == -491_336


async def test_killing_the_simulator_is_the_agents_own_doing() -> None:
    rollout = await play(shell_agent(SERVER + "kill -9 $server"))
    assert (rollout.outcome, rollout.reward) == (Outcome.policy_failed, 0.0)


def test_the_simulator_is_part_of_the_identity_so_that_what_cannot_work_is_said_before_anything_starts(
    tmp_path: Path,
) -> None:
    simulator: Any = bench().identity()["simulator"]
    assert (simulator["version"], simulator["commit"]) == ("0.1.0", "f25a2be..89065f3")
    with pytest.raises(UsageError, match="'fast_test'"):
        bench(presets=["fast_tset"]).identity()
    with pytest.raises(UsageError, match="/no/python"):
        bench(simulator_python="/no/python").identity()
    with pytest.raises(UsageError, match="no preset file"):
        bench(presets=[f"{tmp_path}/none.toml"]).tasks()


@pytest.mark.parametrize(
    "env", [{"start_date": "soon"}, {"start_date": "2024-02-29"}, {"horizon_years": 9000}]
)
def test_a_calendar_that_no_world_can_have_is_refused(env: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(env))):
        bench(**env)
    assert bench(start_date="2026-03-01").env.start_date == "2026-03-01"


def test_a_task_for_every_preset_and_seed(tmp_path: Path) -> None:
    benchmark = bench(presets="fast_test, hard", seeds="1, 2")
    assert [task.name for task in benchmark.tasks()] == ["fast_test-1", "fast_test-2", "hard-1", "hard-2"]
    preset = tmp_path / "own.toml"
    preset.write_text('extends = "fast_test"')
    (task,) = bench(presets=[str(preset)]).tasks()
    assert (task.name, task.category, len(task.checksum)) == ("own-1", "own", 64)
    with pytest.raises(UsageError, match="two presets are called own"):
        bench(presets=[str(preset), "own"]).tasks()


def test_baselines_stand_beside_every_result() -> None:
    records = [
        SimpleNamespace(task="fast_test-1", graded=True, info={"incomplete": True, "idle_composite": 0.0}),
        SimpleNamespace(task="fast_test-7", graded=True, info={"incomplete": False, "idle_composite": 0.0}),
        SimpleNamespace(task="fast_test-7", graded=False, info={}),
    ]
    baselines, unfinished = bench().notes(records)  # type: ignore[arg-type]
    assert baselines == (
        "Baselines on these worlds: never and idle 0.000 on each; "
        "greedy 0.974 (0.974 on fast_test-1; not measured on the others)."
    )
    assert unfinished.startswith("1 of 3 runs are incomplete")
    (alone,) = bench().notes(records[1:2])  # type: ignore[arg-type]
    assert (
        alone
        == "Baselines on these worlds: never and idle 0.000 (0.000 on fast_test-7); greedy not measured."
    )
    for other in ({"draws": "sim_init"}, {"horizon_years": 3}):
        assert "greedy not measured" in bench(**other).notes(records)[0]  # type: ignore[arg-type]


RICH = """
extends = "fast_test"
[world]
initial_funds_cents = 100000000000
"""


@pytest.mark.parametrize("agent", ["idle", "never"])
async def test_doing_nothing_is_played_in_every_world_and_comes_to_the_same(
    tmp_path: Path, agent: str
) -> None:
    (tmp_path / "rich.toml").write_text(RICH)
    env: dict[str, Any] = {"presets": [str(tmp_path / "rich.toml")], "seeds": [7]}
    rollout = await play(baseline(agent).for_task(bench().tasks()[0]), **env)
    assert rollout.reward_details["info"]["idle_composite"] == rollout.reward == 1.0


def test_the_environment_names_a_python_for_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_YCB_PYTHON", "/a/python")

    def python(**env: Any) -> str:
        benchmark = bench(simulator_python=None, **env)
        return benchmark.rollout(benchmark.tasks()[0]).sandbox.env["YCB_PYTHON"]

    assert python() == "/a/python"
    assert python(terminal_backend="docker") == "python3"
    benchmark = bench(simulator_python="/another")
    assert benchmark.rollout(benchmark.tasks()[0]).sandbox.env["YCB_PYTHON"] == "/another"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python can run the simulator")
def test_an_old_python_is_told_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_YCB_PYTHON", raising=False)
    benchmark = bench(simulator_python=None)
    with pytest.raises(UsageError, match=r"uv run --python 3\.12"):
        benchmark.rollout(benchmark.tasks()[0])


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_greedy_is_rich_and_complete() -> None:
    rollout = await play(baseline("greedy").for_task(bench().tasks()[0]))
    info = rollout.reward_details["info"]
    assert info["survived"]
    assert not info["incomplete"]
    assert info["composite"] == info["reference_composite"] == rollout.reward
    assert rollout.reward == pytest.approx(0.974, abs=0.002)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_reference_figure_is_reproduced_to_the_cent_in_the_world_it_was_measured_in() -> None:
    rollout = await play(baseline("greedy-reference").for_task(bench().tasks()[0]), draws="sim_init")
    info = rollout.reward_details["info"]
    assert (info["funds_cents"], info["incomplete"]) == (1_945_074_899, False)
    assert info["reference_composite"] == rollout.reward == pytest.approx(0.9731, abs=0.00005)
