"""Every error of this package.

SandboxError
├── SandboxStartError      it could not be started; nothing is left behind
│   ├── ImageError         the image is missing, cannot be built, or cannot host a sandbox
│   └── QuotaError         the service or machine refuses more of them now
├── SandboxGone            it existed and does not any more
├── Unsupported            this backend cannot do or enforce that
├── Unavailable            the service does not answer; trying again later may help
├── AuthError              the credentials are missing or refused
├── CommandFailed          a command failed under `check=True`
└── UnsafeArchive          an archive would have written outside its target

File errors inside a sandbox are the built-in ones: FileNotFoundError, IsADirectoryError, PermissionError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_sandbox.result import ExecResult


class SandboxError(Exception):
    """The base of every error here.

    Attributes:
        retryable: Whether the same call may succeed later, unchanged.
    """

    retryable: bool = False


class SandboxStartError(SandboxError):
    """The sandbox could not be started; nothing of it is left behind."""


class ImageError(SandboxStartError):
    """The image is missing, cannot be built, or lacks what a sandbox needs."""


class QuotaError(SandboxStartError):
    """The service or the machine refuses another sandbox at this moment."""

    retryable = True


class SandboxGone(SandboxError):
    """The sandbox existed and does not any more. Create another one; this one does not come back.

    Attributes:
        ended_inside: Whether what ran inside ended it (killed its main process, used up its memory), as far as the
            backend can tell; False where it was removed from outside, or nobody knows.
    """

    ended_inside: bool = False


class Unsupported(SandboxError):
    """The backend cannot do or enforce what was asked."""


class Unavailable(SandboxError):
    """The service behind the backend does not answer."""

    retryable = True


class AuthError(SandboxError):
    """The backend's credentials are missing or refused."""


class UnsafeArchive(SandboxError):
    """An archive tried to write outside its target, or holds an entry that is never unpacked."""


class CommandFailed(SandboxError):
    """A command failed although `check=True` asked for success.

    Attributes:
        result: What the command left.
    """

    def __init__(self, command: str, result: ExecResult) -> None:
        self.command, self.result = command, result
        super().__init__(command, result)

    def __str__(self) -> str:
        tail = self.result.output.strip()[-2000:]
        how = f"exit code {self.result.exit_code}" if self.result.reason == "exit" else self.result.reason
        return f"command failed ({how}): {self.command[:200]}" + (f"\n{tail}" if tail else "")
