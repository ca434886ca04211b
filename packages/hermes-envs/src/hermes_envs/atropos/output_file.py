"""The JSON lines that `process` writes: whole groups, in any order, that a later run can go on from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_envs.config import ConfigError

from .formats import form_of

_INDEX = "group"


class OutputFile:
    """A file of JSON lines in which each group is written at once.

    A file that is already there is gone on from: a torn last line and the lines of an unfinished group are
    dropped, and `done` says which groups need not run again.

    Args:
        path: The file; exactly this one.
        group_size: Lines that make a whole group; 1 where a line is a group.
        form: The form of the lines, a value of `process_format`.
        overwrite: Start anew.

    Raises:
        ConfigError: The file is something else, or has lines of another form.
    """

    def __init__(self, path: Path, group_size: int, form: str, *, overwrite: bool = False) -> None:
        self.path = path
        self._form = form
        self.done: set[int] = set()
        path.parent.mkdir(parents=True, exist_ok=True)
        if overwrite or not path.exists():
            path.write_bytes(b"")
        else:
            self._take_up(group_size)
        self._file = path.open("a", encoding="utf-8", errors="replace")

    def write(self, index: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append a whole group and have it on disk."""
        self._file.write("".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines))
        self._file.flush()
        self.done.add(index)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line written so far."""
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _take_up(self, group_size: int) -> None:
        kept: dict[int, list[str]] = {}
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                if line.endswith("\n"):  # a kill may have cut the last one short
                    kept.setdefault(self._group_of(line), []).append(line)
        whole = {index: lines for index, lines in kept.items() if len(lines) >= group_size}
        part = self.path.with_name(self.path.name + ".part")
        part.write_text("".join(line for lines in whole.values() for line in lines), encoding="utf-8")
        part.replace(self.path)
        self.done = set(whole)

    def _group_of(self, text: str) -> int:
        """The group that a line belongs to."""
        mend = "give another --env.data_path_to_save_groups, or --env.overwrite true"
        try:
            line = json.loads(text)
            index, form = int(metadata_in(line)[_INDEX]), form_of(line)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{self.path} exists and was not written by `process`: {mend}") from error
        if form != self._form:
            raise ConfigError(
                f"{self.path} has lines of the form {form}, not {self._form}: set --format {form}, {mend}"
            )
        return index


def metadata_in(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of a line in any of our forms; ATIF keeps foreign fields in `extra`."""
    extra: Mapping[str, Any] = line.get("extra") or {}
    return line.get("metadata") or extra.get("metadata") or {}
