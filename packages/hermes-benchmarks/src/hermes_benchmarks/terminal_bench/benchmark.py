"""Terminal-Bench 2 and TBLite as benchmarks: folders of Harbor tasks, judged by their own tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from hermes_envs.harbor import Task, TaskError, UnknownTask
from hermes_envs.harbor.rollout import WITHOUT_IMAGES

from hermes_benchmarks.benchmark import BenchmarkBase, BenchmarkTask, Skipped
from hermes_benchmarks.datasets import DatasetError, load_dataset_tasks, stray_folders
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.selection import NAMED
from hermes_benchmarks.terminal_bench.config import TerminalBenchConfig
from hermes_benchmarks.terminal_bench.plan import rollout_of, system_prompt
from hermes_benchmarks.verdict import Verdict

if TYPE_CHECKING:
    from hermes_envs import Reward, RolloutSpec

    from hermes_benchmarks.record import TrialRecord

SAMPLE = "sample"
UNFIT: Mapping[str, Mapping[str, str]] = {
    "modal": dict.fromkeys(
        ("qemu-startup", "qemu-alpine-ssh", "crack-7z-hash"),
        "does not work on modal: it needs nested virtualisation",
    ),
}
"""Tasks that a backend is known not to be able to run, with the reason."""
GPU_DRIVERS = ("/proc/driver/nvidia", "/dev/dxg")
"""What is there where a GPU may be: NVIDIA's driver, also seen from inside a container, or that of WSL."""


class TerminalBench2(BenchmarkBase):
    """Terminal-Bench 2 (89 tasks of Harbor's format), or any dataset of that format.

    Attributes:
        hub: The published dataset.
        command: The command line's name.
    """

    name: ClassVar[str] = "tb2"
    hub: ClassVar[str] = "NousResearch/terminal-bench-2"
    config_type: ClassVar[str] = "hermes_benchmarks.terminal_bench.config:TerminalBenchConfig"

    def __init__(self, config: TerminalBenchConfig | None = None) -> None:
        super().__init__(config)
        self.env = cast("TerminalBenchConfig", self.config).env
        self._unread: dict[str, str] = {}

    @property
    def dataset(self) -> str:
        """The dataset in effect: the packaged sample where none is named."""
        return self.env.dataset_name or SAMPLE

    @property
    def default_agent(self) -> str:
        """A scripted model for the sample, a real one for everything else."""
        model = self.config.openai.model_name
        return "scripted" if self.dataset == SAMPLE and not model else "hermes"

    @property
    def backend(self) -> str:
        """Local for the sample, which is made for it; Docker for everything else."""
        return self.env.terminal_backend or ("local" if self.dataset == SAMPLE else "docker")

    @cached_property
    def loaded(self) -> Sequence[Task]:
        """The dataset's tasks; only those named, where the filter holds no patterns.

        A task that is not supported is passed over unless it is named. Where one is malformed, those to be skipped are not read.
        """
        try:
            return self._load(())
        except TaskError as error:
            if not self.env.skip_tasks:
                raise UsageError(f"{error} (or leave it out with --env.skip_tasks)") from None
        except (DatasetError, UnknownTask) as error:
            raise UsageError(str(error)) from None
        try:
            tasks = self._load(self.env.skip_tasks)
            self._unread |= {name: NAMED for name in self.env.skip_tasks if not _has_globs([name])}
            return tasks
        except (DatasetError, TaskError, UnknownTask) as error:
            raise UsageError(str(error)) from None

    def _load(self, skip: Sequence[str]) -> list[Task]:
        env = self.env
        exact = env.task_filter if env.task_filter and not _has_globs(env.task_filter) else None
        dataset = self.dataset + (f"@{env.dataset_revision}" if env.dataset_revision else "")
        self._unread = {}
        return load_dataset_tasks(
            dataset, only=exact, skip=skip, split=env.dataset_split, unsupported=self._unread
        )

    def tasks(self) -> Sequence[BenchmarkTask]:
        """All tasks of the dataset, by name; of those that cannot be used, the name alone."""
        found = [*map(describe, self.loaded), *map(BenchmarkTask, self._unread)]
        return sorted(found, key=lambda task: task.name)

    def skipped(self) -> Sequence[Skipped]:
        """Tasks that the backend cannot run, or nothing here."""
        unfit = UNFIT.get(self.backend, {})
        found = [Skipped(task.name, unfit[task.name]) for task in self.loaded if task.name in unfit]
        if self.backend in WITHOUT_IMAGES:
            reason = "it needs a container: give --backend docker"
            found += [Skipped(task.name, reason) for task in self.loaded if not task.config.local]
        if self.backend == "docker":
            found += [
                Skipped(task.name, reason) for task in self.loaded if (reason := lacking_on_docker(task))
            ]
        return [*found, *(Skipped(name, reason) for name, reason in self._unread.items())]

    def warnings(self, tasks: Sequence[BenchmarkTask]) -> Sequence[str]:
        """What is passed over: folders that are no tasks yet, and keys of tasks that mean nothing here."""
        strays = [f"{name} is no task: it has no task.toml" for name in stray_folders(self.dataset)]
        return [*strays, *(f"{task.name}: {what}" for task in tasks for what in task.data.warnings)]

    def rollout(self, task: BenchmarkTask) -> RolloutSpec:
        """How a task is run: its image, its own limits, its tests afterwards.

        Raises:
            UsageError: It cannot be run so.
        """
        if self.backend in WITHOUT_IMAGES and (self.env.keep_state or self.env.verifier != "shared"):
            what = "--keep-state" if self.env.keep_state else f"--verifier {self.env.verifier}"
            raise UsageError(
                f"{what} needs snapshots, which {self.backend} does not have: give --backend docker"
            )
        try:
            return rollout_of(task.data, self.env, self.config.run, self.backend)
        except TaskError as error:
            raise UsageError(str(error)) from None

    def summarize(self, records: Sequence[TrialRecord]) -> Mapping[str, float]:
        """How many of the verifiers' tests passed over all graded trials: partial credit, never the score."""
        tests = [
            test for record in records if record.graded for test in record.tests if test.status != "skipped"
        ]
        if not tests:
            return {}
        return {"tests_passed": sum(test.status == "passed" for test in tests) / len(tests)}

    def notes(self, records: Sequence[TrialRecord]) -> Sequence[str]:
        """Where the shared and the fresh verdict of a trial disagree."""
        found = [(record.name, record.info.get("verifier", {}).get("disagreement")) for record in records]
        return [f"the verifiers disagree on {name}: {what}" for name, what in found if what]

    async def rescore(self, task: BenchmarkTask, folder: Path, record: TrialRecord) -> Reward | None:
        """The verdict that the files of a finished trial give; None where it came from what was seen in its sandbox."""
        from hermes_benchmarks.terminal_bench.rescoring import FROM_FILES, from_files

        if record.graded and record.phase == "verifier" and record.cause not in FROM_FILES:
            return None
        return from_files(task.data, folder / "verifier")

    async def rescore_tests(self, task: BenchmarkTask, folder: Path, record: TrialRecord) -> Reward | None:
        """The verdict of the tests, run again in the snapshot of a finished trial; of its files where it kept none."""
        from hermes_benchmarks.terminal_bench.rescoring import FROM_FILES, from_snapshot

        kept = record.info.get("snapshot")
        seen = record.verdict is Verdict.TAMPERED and record.cause not in FROM_FILES
        if kept is None or seen:  # no snapshot knows what was done while the tests ran
            return await self.rescore(task, folder, record)
        return await from_snapshot(task.data, self.env, self.backend, kept)

    def identity(self) -> Mapping[str, object]:
        """The rules of the game beside the tasks' own."""
        keep = {"timeout_multiplier", "task_timeout", "test_timeout", "force_build", "verifier"}
        return {
            **self.env.model_dump(mode="json", include=keep),
            "prompt": system_prompt(self.env),
        }

    def advice(self) -> str:
        """How to run the real thing, after a run of the sample."""
        if self.dataset != SAMPLE:
            return ""
        return (
            "This was the packaged sample. The real thing: "
            f"{self.name} evaluate --dataset {self.hub} (or a folder of tasks) --backend docker "
            "--openai.model_name NAME, with OPENAI_API_KEY or OPENROUTER_API_KEY set, or --openai.base_url URL."
        )

    async def rollout_and_score_eval(
        self, eval_item: BenchmarkTask | Task | Mapping[str, Any] | str
    ) -> dict[str, Any]:
        """Run and grade one task, for those who script the benchmark; nothing is written.

        Args:
            eval_item: A task, its name, or a mapping with its name under `task_name`, such as a dataset's row.

        Returns:
            passed, reward (None when it could not be graded), verdict, task_name, category, turns_used, error, trajectory (ATIF).

        Raises:
            UsageError: There is no such task, and the nearest is named; or it cannot run here.
        """
        from hermes_benchmarks.terminal_bench.scripting import score_one

        return await score_one(self, eval_item)

    async def evaluate(self) -> dict[str, float]:
        """Run all tasks as `tb2 evaluate` does and return the metrics; the results are in a run folder."""
        from hermes_benchmarks.terminal_bench.scripting import evaluate_all

        return await evaluate_all(self)


class TBLite(TerminalBench2):
    """TBLite (OpenThoughts Terminal Bench Lite): 100 tasks in four calibrated levels; only dataset and timeouts differ."""

    name: ClassVar[str] = "tblite"
    hub: ClassVar[str] = "NousResearch/openthoughts-tblite"
    config_type: ClassVar[str] = "hermes_benchmarks.terminal_bench.config:TBLiteConfig"


def lacking_on_docker(task: Task) -> str:
    """What a task asks for that Docker, or the Docker of this machine, cannot give; nothing where it may."""
    if task.config.network not in ("open", "none"):
        return "Docker cannot restrict its network to some hosts"
    if task.config.gpus and _docker_is_here() and not any(Path(driver).exists() for driver in GPU_DRIVERS):
        return "it needs a GPU, and this machine has no driver for one"
    return ""


def _docker_is_here() -> bool:
    return os.environ.get("DOCKER_HOST", "unix:").startswith("unix:")


def describe(task: Task) -> BenchmarkTask:
    """A Harbor task as the harness knows it."""
    config = task.config
    limits = {
        "agent_timeout": config.agent_timeout,
        "verifier_timeout": config.verifier_timeout,
        "cpus": config.cpus,
        "memory_mb": config.memory_mb,
        "storage_mb": config.storage_mb,
        "gpus": config.gpus or None,
        "network": None if config.network == "open" else config.network,
        "image": config.docker_image,
    }
    return BenchmarkTask(
        name=task.name,
        category=config.category,
        difficulty=config.difficulty,
        tags=config.tags,
        checksum=task.checksum,
        limits={key: value for key, value in limits.items() if value is not None},
        data=task,
    )


def _has_globs(names: Sequence[str]) -> bool:
    return any(set("*?[") & set(name) for name in names)
