"""What can be wrong with a task folder."""

from pathlib import Path


class TaskError(ValueError):
    """A task folder cannot be used; the message names the file, the key, and what to do.

    Attributes:
        path: The file or folder at fault.
        key: The dotted key inside a `task.toml`, or None.
    """

    def __init__(self, message: str, *, path: Path, key: str | None = None) -> None:
        where = f"{path}: {key}: " if key else f"{path}: "
        text = where + message
        super().__init__(text if text.isprintable() else ascii(text)[1:-1])
        self.path = path
        self.key = key


class UnsupportedTask(TaskError):
    """The task is well formed and asks for something that this package does not do."""


class UnknownTask(KeyError):
    """No task of this name; the message names the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])
