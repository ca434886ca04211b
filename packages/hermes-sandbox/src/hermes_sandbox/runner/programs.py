"""The bash programs that run inside a sandbox, and the quoting of what they are told."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from hermes_sandbox.programs import settable


@functools.cache
def _source(name: str) -> str:
    """A program without its comments and empty lines: it travels as an argument."""
    lines = files("hermes_sandbox.runner").joinpath(name).read_text().splitlines()
    return (
        "\n".join(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")) + "\n"
    )


@functools.cache
def runner_program() -> str:
    """The resident runner."""
    return _source("kill.bash") + _source("runner.bash")


@functools.cache
def kill_program() -> str:
    """One round of signals, by arguments; it prints how many processes it met."""
    return _source("kill.bash") + 'signal_tree "$@" 2>/dev/null\necho "$alive"\n'


@functools.cache
def shell_program() -> str:
    """What an interactive bash reads before the commands of a shell."""
    return _source("shell.bash")


def quote(text: str) -> str:
    """A word of bash that means exactly this text.

    Raises:
        ValueError: The text holds a NUL, which no process can be given.
    """
    if "\0" in text:
        raise ValueError("a command, path or variable cannot hold a NUL byte; pass such bytes as stdin")
    return shlex.quote(text)


def encode(text: str) -> bytes:
    """Text as the bytes the sandbox sees; lone surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


COMMAND = 19
"""The descriptor from which a shell reads a command, and which is open in it for as long as the command runs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One command's turn in a shell.

    Attributes:
        end: A word written after its output, which nobody in the sandbox knows before.
        next: The number of the command after it.
    """

    end: str
    next: int

    def ending(self, status: object, *, back: bool = False) -> str:
        """The command of bash that tells of the end, without acting on the exit code that it passes on.

        The word is written in two pieces, for a trap on DEBUG, or a trace with BASH_XTRACEFD, may print the line itself.
        """
        word = f"{self.end[:4]}''{self.end[4:]}"
        return f"__hermes_end {word} {status} {self.next}{' back' if back else ''} && :"


def shell_lines(
    command: str,
    *,
    cwd: str | None,
    env: Mapping[str, str],
    stdin: bytes | None,
    turn: Turn,
) -> bytes:
    """What a shell reads to run one command, and to report its end as `shell.bash` tells.

    Args:
        command: Bash code.
        cwd: A folder for this command alone.
        env: Variables for this command alone.
        stdin: Its standard input.
        turn: How its end is told.
    """
    redirect = "</dev/null" if stdin is None else f"< <({_printing(stdin)})"
    # A long here-string would be a temporary file, and the disk may be full.
    text = f"<<<{quote(command)}" if len(command) < 16384 else f"< <(builtin printf %s {quote(command)})"
    out = '>&"$__hermes_out" 2>&1'
    # Of the group, not of the `.`: under `set -e` bash undoes the latter's before a trap on EXIT writes.
    run = f"__hermes_begin && :; {{ . /dev/fd/{COMMAND} {COMMAND}{text} {redirect}; }} {out}"
    before, end = "", turn.ending("$?", back=cwd is not None)
    if env:
        if wrong := [name for name in env if not settable(name)]:
            raise ValueError(
                f"a shell cannot set the variable {wrong[0]!r}; give it to `open_shell` or `exec`"
            )
        names = " ".join(map(quote, env))
        values = " ".join(f"{name}={quote(value)}" for name, value in env.items())
        before = f"__hermes_saved=$(declare -p {names} 2>/dev/null) || :; export {values}\n"
        restore = f'unset -v {names}; eval "$__hermes_saved"'
        end = f"__hermes_code=$?; {restore}; {turn.ending('$__hermes_code', back=cwd is not None)}"
    if cwd is not None:
        before += "__hermes_from=$PWD __hermes_there=\n"
        run = f"builtin cd -- {quote(cwd)} {out} && __hermes_there=$PWD && {{ {run}; }}"
    return encode(f"{before}{run}\n{end}\n")


def _printing(data: bytes) -> str:
    """A command of bash that writes exactly these bytes."""
    try:
        return f"builtin printf %s {quote(data.decode())}"
    except ValueError:  # no UTF-8, or with NUL bytes
        return "builtin printf '" + "".join(f"\\{byte:03o}" for byte in data) + "'"
