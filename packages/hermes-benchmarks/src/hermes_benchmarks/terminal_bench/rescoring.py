"""The verdict of a Terminal-Bench trial, from the files it kept or from a snapshot of its sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_envs import Reward
from hermes_envs.harbor import Evidence, Status, Task, Verdict, reward_of, sandbox_spec, verify_snapshot
from hermes_envs.harbor.promise import promise_of
from hermes_envs.harbor.report import parse_ctrf, parse_summary, shows_start
from hermes_envs.harbor.verdict import PASS, conclusive, contradiction, read_reward
from hermes_sandbox.spec import Snapshot

if TYPE_CHECKING:
    from hermes_benchmarks.terminal_bench.config import TerminalBenchEnvConfig

FROM_FILES = ("tests", "contradiction")
"""Causes of graded verdicts that the kept files give; of edited tests or a planted verdict they know nothing."""


async def from_snapshot(
    task: Task, env: TerminalBenchEnvConfig, backend: str, kept: Mapping[str, Any]
) -> Reward:
    """Run the tests again in a new sandbox from the snapshot that `keep_state` took."""
    own = task.config.verifier_timeout
    verdict = await verify_snapshot(
        task,
        Snapshot(**kept),
        backend,
        sandbox_spec(task, backend, force_build=env.force_build),
        timeout=(env.test_timeout if own is None else own) * env.timeout_multiplier,
        backend_options=env.backend_options,
    )
    return reward_of(verdict)


def from_files(task: Task, folder: Path) -> Reward | None:
    """Judge `verifier/` by the rules of this version; None where it holds no verdict."""
    files = {
        path.name: path.read_bytes() for path in folder.glob("*") if path.is_file() and not path.is_symlink()
    }
    name = next((name for name in ("reward.json", "reward.txt") if name in files), None)
    if name is None:
        return None
    evidence = read_reward(name, "regular file", files[name])
    stdout = files.get("test-stdout.txt", b"")
    evidence = replace(
        evidence,
        tests=parse_ctrf(files.get("ctrf.json", b"")),
        summary=parse_summary(stdout),
        started=shows_start(stdout),
    )
    verdict = judged(task, evidence)
    return reward_of(verdict) if verdict else None


def judged(task: Task, evidence: Evidence) -> Verdict | None:
    """The verdict that the evidence alone gives; None where the sandbox would have to be asked."""
    promise = promise_of(task.tests_dir)
    tests = evidence.tests or ()
    if why := contradiction(evidence, promise):
        return Verdict(Status.tampered, 0.0, "contradiction", why, tests)
    if evidence.reward is None or not conclusive(evidence, promise):
        return None
    status = Status.passed if evidence.reward >= PASS else Status.failed
    return Verdict(
        status, evidence.reward, "tests", tests=tests, summary=evidence.summary, rewards=evidence.rewards
    )
