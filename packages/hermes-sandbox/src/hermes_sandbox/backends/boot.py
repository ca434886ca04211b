"""How a command is started through a shell of unknown make: exactly, and without showing anything.

The transport (an SSH channel, a container client) executes one fixed line. The real script follows as the first
line of standard input, so neither a login shell's quoting rules nor the length of an argument matter, and no
variable's value shows in a process list. POSIX sh, and only what is built into it.
"""

import asyncio
import shlex
from typing import Protocol

from hermes_sandbox.backend import Command
from hermes_sandbox.errors import SandboxGone, Unavailable
from hermes_sandbox.programs import with_env

READ_SCRIPT = 'IFS= read -r line && eval "$(printf %b "$line")"'
"""The line to execute with `sh -c`."""

LONGEST_PREAMBLE = 60.0
"""Seconds that a login shell's start-up files may take."""

MARK = "hermes-sandbox-ready:"


def encoded(script: str) -> bytes:
    """`script` as the line that `READ_SCRIPT` reads."""
    line = script.replace("\\", "\\\\").replace("\n", "\\n")
    return line.encode("utf-8", "surrogateescape") + b"\n"


def opening(nonce: str, folder: str | None) -> str:
    """Say that our output begins here: a login shell's start-up files may have written some of their own.

    The line on standard output ends with the process id, or with `gone` when the sandbox's folder is missing.
    """
    ready = f"printf '%s\\n' {MARK}{nonce} >&2; printf '%s\\n' {MARK}{nonce}:$$"
    if folder is None:
        return ready + "\n"
    return (
        f"if [ ! -d {shlex.quote(folder)} ]; then printf '%s\\n' {MARK}{nonce} >&2; "
        f"printf '%s\\n' {MARK}{nonce}:gone; exit 1; fi; {ready}\n"
    )


def command_script(command: Command, login: str) -> str:
    """Become `command`: folder, environment, user (where it is not `login`), program."""
    lines = [f"cd -- {shlex.quote(command.cwd or '/')} || exit 126"]
    if command.clean_env:
        argv = ["env", "-i", *(f"{key}={value}" for key, value in command.env.items()), *command.argv]
    else:
        env, words = with_env(command.env, command.argv)
        argv = list(words)
        lines += [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    if command.user and command.user != login:
        lines.append(_as_user(command.user))
        argv = ["$@", *argv]
    words = ['"$@"' if word == "$@" else shlex.quote(word) for word in argv]
    return "\n".join([*lines, f"exec {' '.join(words)}"]) + "\n"


def _as_user(user: str) -> str:
    """Set `$@` to what runs a program as `user`: root just may, others need sudo without a password."""
    name = shlex.quote(user)
    return (
        f"id -u -- {name} >/dev/null || exit 126\n"
        f'if [ "$(id -u)" = 0 ]; then set -- setpriv --reuid {name} --regid "$(id -g -- {name})" --init-groups --\n'
        f"else set -- sudo -n -u {name} --; fi"
    )


class Opened(Protocol):
    """A process just opened, whose streams are buffered readers."""

    pid: int | None

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its standard output."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Its standard error."""
        ...


def look_around(workdir: str | None) -> str:
    """Make the working folder, check for what a sandbox needs, and print the answer that `seen` reads."""
    made = f"mkdir -p {shlex.quote(workdir)} && cd {shlex.quote(workdir)} || exit 5\n" if workdir else ""
    return (
        f"{made}command -v tar >/dev/null || {{ echo 'it has no tar' >&2; exit 4; }}\n"
        "bash=$(command -v bash) || { echo 'it has no bash' >&2; exit 4; }\n"
        'printf "%s\\0" "$bash" "$(id -un)" "$(pwd)"\n'
    )


def seen(out: bytes) -> tuple[str, str, str]:
    """What `look_around` found: bash, the user's name, the folder."""
    bash, login, folder = (field.decode("utf-8", "surrogateescape") for field in out.split(b"\0")[:3])
    return bash, login, folder


async def await_opening(process: Opened, nonce: str, where: str) -> None:
    """Skip what start-up files wrote, up to the mark of `opening` on both streams; then the pid is known.

    Raises:
        SandboxGone: The sandbox's folder is missing.
        Unavailable: No shell started.
    """
    mark = f"{MARK}{nonce}".encode()
    try:
        async with asyncio.timeout(LONGEST_PREAMBLE):
            await process.stderr.readuntil(mark + b"\n")
            await process.stdout.readuntil(mark)
            word = (await process.stdout.readuntil(b"\n")).strip(b":\n")
    except asyncio.IncompleteReadError as error:
        said = error.partial.decode(errors="replace").strip()[-500:]
        raise Unavailable(f"{where} did not start a shell: {said or 'the connection broke'}") from error
    except asyncio.LimitOverrunError as error:
        raise Unavailable(f"{where}: the login shell's start-up files write without end") from error
    if word == b"gone":
        raise SandboxGone(f"the sandbox's folder on {where} was removed")
    process.pid = int(word)
