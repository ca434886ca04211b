"""A shell on this machine, whose state lasts from one command to the next."""

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hermes_tools.host.run import HostResult, run

# Each command is a process tree of its own, so that it can be killed whole while the shell's state stays.
_SCRIPT = r"""
[ -f {state} ] && source {state} 2>/dev/null
__hermes_keep() {{ {{ declare -px; declare -fp; shopt -p; alias -p; }} > {state}.new 2>/dev/null &&
  mv -f {state}.new {state}; pwd -P > {folder}; }}
trap __hermes_keep EXIT
shopt -s expand_aliases
eval {command}
"""


class HostShell:
    """A shell: folder, exported variables, functions and aliases last."""

    def __init__(self, cwd: str, env: Mapping[str, str] | None) -> None:
        self.cwd = cwd
        self._env = env
        self._kept = Path(tempfile.mkdtemp(prefix="hermes-shell-"))

    async def run(
        self, command: str, *, timeout: float | None = None, output_limit: int | None = 1 << 20
    ) -> HostResult:
        """Run a command; see `WorkspaceShell.run`."""
        self.cwd = _left(self.cwd)
        folder = self._kept / "cwd"
        script = _SCRIPT.format(
            state=shlex.quote(str(self._kept / "state")),
            folder=shlex.quote(str(folder)),
            command=shlex.quote(command),
        )
        result = await run(
            script, cwd=self.cwd, env=self._env, timeout=timeout, merge=True, output_limit=output_limit
        )
        if folder.exists():
            left_in = folder.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")
            self.cwd = left_in or self.cwd  # Empty where the command removed the folder it was in.
        return result

    async def close(self) -> None:
        """Forget the state."""
        shutil.rmtree(self._kept, ignore_errors=True)


def _left(folder: str) -> str:
    """The folder or, where it was removed, the nearest above it that is left."""
    path = Path(folder)
    while not path.is_dir():
        path = path.parent
    return str(path)
