"""The folder of one run, which is its whole and only state.

RUN/config.json                 what was asked for, and the identity that a resumed run must share
RUN/trials/TASK__N/             attempt N at TASK; written by that trial alone
    result.json                 the truth; its rename into place is what finishes a trial
    trajectory.json             ATIF
    verifier/                   the verdict's files and the tests' output
    tries/M/                    an earlier try that could not be graded
RUN/trials.jsonl                one line per execution; rebuilt from the above when a run resumes
"""

import fcntl
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.files import append_line, read_json, write_json, write_lines
from hermes_benchmarks.record import TrialRecord, trial_name


class TrialFolder:
    """The folder of one attempt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self) -> TrialRecord | None:
        """The latest try's result, or None while there is none."""
        return read_record(self.path / "result.json")

    def earlier(self) -> list[TrialRecord]:
        """The results of earlier tries, oldest first."""
        found = (read_record(path) for path in (self.path / "tries").glob("*/result.json"))
        return sorted((record for record in found if record), key=lambda record: record.try_)

    def records(self) -> list[TrialRecord]:
        """Every try's result, oldest first."""
        last = self.record()
        return [*self.earlier(), *([last] if last else [])]

    def begin(self) -> int:
        """Make ready for a try and return its number: keep earlier results, drop what a kill left."""
        if (last := self.record()) is not None:
            self._set_aside(last.try_)
        self.path.mkdir(parents=True, exist_ok=True)
        for entry in self.path.iterdir():
            if entry.name != "tries":
                _remove(entry)
        return max((record.try_ for record in self.records()), default=0) + 1

    def _set_aside(self, number: int) -> None:
        """Move a finished try to `tries/NUMBER`, its result first: from then on the rest is debris."""
        aside = self.path / "tries" / str(number)
        aside.mkdir(parents=True, exist_ok=True)
        for name in ("result.json", *(entry.name for entry in self.path.iterdir())):
            if name not in ("tries",) and (self.path / name).exists():
                (self.path / name).replace(aside / name)

    def finish(self, record: TrialRecord) -> None:
        """Write the result; everything else of the trial must be in place by now."""
        write_json(self.path / "result.json", record.to_dict())


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The run's name: its folder's."""
        return self.path.resolve().name

    def create(self, config: dict[str, Any]) -> None:
        """Make the folder with its `config.json`."""
        (self.path / "trials").mkdir(parents=True, exist_ok=True)
        write_json(self.path / "config.json", config)

    def config(self) -> dict[str, Any]:
        """The content of `config.json`.

        Raises:
            UsageError: There is no run here.
        """
        config = read_json(self.path / "config.json")
        if config is None:
            raise UsageError(f"{self.path} is not a run folder: it has no readable config.json")
        return config

    def trial(self, task: str, attempt: int) -> TrialFolder:
        """The folder of an attempt, which need not exist yet."""
        return TrialFolder(self.path / "trials" / trial_name(task, attempt))

    def trial_folders(self) -> list[TrialFolder]:
        """The folders of all attempts begun so far, by name."""
        return [TrialFolder(path) for path in sorted((self.path / "trials").glob("*")) if path.is_dir()]

    def latest(self) -> list[TrialRecord]:
        """The latest result of every attempt that has one."""
        return [record for folder in self.trial_folders() if (record := folder.record())]

    def earlier(self) -> list[TrialRecord]:
        """The results of all tries that were followed by another."""
        return [record for folder in self.trial_folders() for record in folder.earlier()]

    def append(self, record: TrialRecord) -> None:
        """Add a line to `trials.jsonl`."""
        append_line(self.path / "trials.jsonl", record.line())

    def rebuild_lines(self) -> None:
        """Write `trials.jsonl` anew from the results."""
        executions: list[tuple[str, TrialRecord]] = []
        for folder in self.trial_folders():
            since = ""
            for record in folder.records():
                since = max(since, record.started)  # a clock may be set back between two tries
                executions.append((since, record))
        executions.sort(key=lambda pair: (pair[0], pair[1].task, pair[1].attempt, pair[1].try_))
        write_lines(self.path / "trials.jsonl", (record.line() for _, record in executions))

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the run for this process.

        Raises:
            UsageError: Another process is running it.
        """
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"another process is working on {self.path}") from None
            yield


def read_record(path: Path) -> TrialRecord | None:
    """The record in a `result.json`, or None where there is no valid one."""
    value = read_json(path)
    if value is None:
        return None
    try:
        return TrialRecord.model_validate(value)
    except ValidationError:
        return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
