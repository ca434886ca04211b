"""How commands become the arguments of a process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hermes_sandbox.backend import Command, Machine

LONGEST_ARGUMENT = 100_000
"""Linux refuses single arguments of 128 KiB; a longer script is passed in pieces."""
LONGEST_SCRIPT = 1_500_000
_JOIN = 'IFS=; script="$*"; set --; unset IFS; eval "unset script; $script"'

TRUSTED_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


def bash_argv(bash: str, script: str) -> tuple[str, ...]:
    """Bash with some code.

    Raises:
        ValueError: The code is longer than any process can be given.
    """
    if (
        len(script) <= LONGEST_ARGUMENT // 4
        or len(script.encode(errors="surrogateescape")) <= LONGEST_ARGUMENT
    ):
        return (bash, "-c", script, "bash")
    step = LONGEST_ARGUMENT // 4
    if len(script.encode(errors="surrogateescape")) > LONGEST_SCRIPT:
        raise ValueError(
            f"the script is longer than {LONGEST_SCRIPT} bytes; write it to a file with write_text and run that"
        )
    pieces = [script[begin : begin + step] for begin in range(0, len(script), step)]
    return (bash, "-c", _JOIN, "bash", *pieces)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = frozenset(
    [
        "_",
        "BASHOPTS",
        "BASHPID",
        "BASH_ARGV0",
        "BASH_COMMAND",
        "BASH_SUBSHELL",
        "BASH_VERSINFO",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "LINENO",
        "PPID",
        "RANDOM",
        "SECONDS",
        "SHELLOPTS",
        "SRANDOM",
        "UID",
    ]
)


def settable(name: str) -> bool:
    """Whether a shell can set this variable for what it starts."""
    return _NAME.fullmatch(name) is not None and name not in _SHELLS_OWN


def with_env(env: Mapping[str, str], argv: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables that a shell can set, and a command that sets the others by itself."""
    plain = {name: value for name, value in env.items() if settable(name)}
    others = [f"{name}={value}" for name, value in env.items() if name not in plain]
    return plain, ("env", "--", *others, *argv) if others else tuple(argv)


def is_text(text: str) -> bool:
    """Whether no lone surrogate in it stands for a byte that is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ascii_word(text: str) -> str:
    """A word of bash that means these bytes, for a way that carries text alone; lone surrogates stand for bytes."""
    data = text.encode("utf-8", "surrogateescape")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in data)
    return f"$'{''.join(plain)}'"


def program_argv(bash: str, program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Bash with a program of this package and its arguments."""
    return (bash, "--norc", "--noprofile", "-c", program, "hermes-sandbox", *arguments)


def trusted_command(machine: Machine, command: Command) -> Command:
    """The same command with a pinned environment, found on a pinned path."""
    argv = command.argv
    if not argv[0].startswith("/"):
        argv = (machine.shell, "--norc", "--noprofile", "-c", 'exec -- "$@"', "bash", *argv)
    elif argv[0] == machine.shell:
        argv = (machine.shell, "--norc", "--noprofile", *argv[1:])
    return replace(command, argv=argv, env={**TRUSTED_ENV, **command.env}, clean_env=True)
