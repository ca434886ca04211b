"""The command `hermes-sandbox`: `doctor` what works here, `run` one command, `reap` what dead owners left."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hermes_sandbox.doctor import Diagnosis, diagnose
from hermes_sandbox.errors import SandboxError
from hermes_sandbox.registry import create_sandbox, list_backends
from hermes_sandbox.result import ExecResult, StreamName
from hermes_sandbox.spec import SandboxSpec

TIMED_OUT, LOST, MISUSED = 124, 125, 2
"""Exit codes beside the command's own: as timeout(1) and docker(1) use them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if given[:1] == ["run"] and "--" in given:  # here, for argparse may drop a `--` of the command's own
        at = given.index("--")
        given, command = given[:at], given[at + 1 :]
    arguments = _parser().parse_args(given)
    if arguments.run is _run:
        arguments.command += command
    try:
        return asyncio.run(arguments.run(arguments))
    except BrokenPipeError:  # who read our output has gone, as in `hermes-sandbox doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (SandboxError, ValueError, TypeError, OSError) as error:
        print(f"hermes-sandbox: {error or type(error).__name__}", file=sys.stderr)
        return LOST if isinstance(error, SandboxError) else MISUSED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hermes-sandbox", description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    doctor = verbs.add_parser("doctor", help="try each backend: latencies, or why it cannot work")
    doctor.add_argument(
        "backends", nargs="*", metavar="BACKEND", help="only these; then failing is exit code 1"
    )
    doctor.add_argument(
        "--image", default="debian:bookworm-slim", help="image to start (default %(default)s)"
    )
    doctor.add_argument("--no-start", action="store_true", help="only look, start nothing")
    doctor.add_argument("--timeout", type=float, default=120.0, help="seconds for each backend")
    doctor.set_defaults(run=_doctor)

    run = verbs.add_parser("run", help="run one command in a fresh sandbox", usage=_RUN_USAGE)
    run.add_argument("backend", choices=list_backends(), metavar="BACKEND")
    run.add_argument("command", nargs="*", help="after `--`: one word is a bash script, more are an argv")
    run.add_argument("--image")
    run.add_argument("--timeout", type=float, help="seconds until the command is killed (exit code 124)")
    run.add_argument("--cpus", type=float)
    run.add_argument("--memory-mb", type=int)
    run.add_argument("--network", choices=["open", "none"])
    run.add_argument("--workdir")
    run.add_argument("--user")
    run.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    run.add_argument("--stdin", action="store_true", help="pass standard input on")
    run.set_defaults(run=_run)

    reap = verbs.add_parser("reap", help="remove what dead owners left and what is past its deadline")
    reap.add_argument(
        "backends",
        nargs="*",
        metavar="BACKEND",
        help="only these, or those given options; else all that need none",
    )
    reap.add_argument("--dry-run", action="store_true", help="only list")
    reap.set_defaults(run=_reap)

    for verb in (doctor, run, reap):
        option = "BACKEND.NAME=VALUE"
        verb.add_argument(
            "--option", action="append", default=[], metavar=option, help="ssh.host=box, for example"
        )
    for verb in (doctor, reap):
        verb.add_argument("--json", action="store_true", help="for programs")
    return parser


_RUN_USAGE = "hermes-sandbox run BACKEND [--image IMAGE] [--option BACKEND.NAME=VALUE] … -- COMMAND …"


def backend_options(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by backend from `BACKEND.NAME=VALUE`; a value that is JSON is taken as such.

    Raises:
        ValueError: One has another form.
    """
    options: dict[str, dict[str, Any]] = {}
    for text in given:
        key, equals, value = text.partition("=")
        backend, dot, name = key.partition(".")
        if not (equals and dot and backend and name):
            raise ValueError(f"--option takes BACKEND.NAME=VALUE, not {text!r}")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        options.setdefault(backend, {})[name] = parsed
    return options


async def _doctor(arguments: argparse.Namespace) -> int:
    options = backend_options(arguments.option)
    names: list[str] = arguments.backends or list_backends()
    found: list[Diagnosis] = []
    for name in names:
        spec = SandboxSpec(image=arguments.image)
        diagnosis = await diagnose(
            name, options.get(name, {}), spec, start=not arguments.no_start, timeout=arguments.timeout
        )
        found.append(diagnosis)
        if not arguments.json:
            print(diagnosis, flush=True)
    if arguments.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    return 1 if arguments.backends and not all(each.ok for each in found) else 0


async def _run(arguments: argparse.Namespace) -> int:
    if not arguments.command:
        raise ValueError("run takes a command after `--`")
    spec = SandboxSpec(
        image=arguments.image,
        cpus=arguments.cpus,
        memory_mb=arguments.memory_mb,
        network=arguments.network,
        workdir=arguments.workdir,
        user=arguments.user,
        env=_variables(arguments.env),
    )
    command: list[str] = arguments.command
    stdin = await asyncio.to_thread(sys.stdin.buffer.read) if arguments.stdin else None
    options = backend_options(arguments.option).get(arguments.backend, {})
    async with create_sandbox(arguments.backend, spec, **options) as sandbox:
        result = await sandbox.exec(
            command[0] if len(command) == 1 else command,
            timeout=arguments.timeout,
            stdin=stdin,
            output_limit=0,
            on_output=_pass_on,
        )
    return _exit_code(result)


def _variables(given: Sequence[str]) -> Mapping[str, str]:
    pairs = [text.partition("=") for text in given]
    if wrong := next((text for text in given if "=" not in text), None):
        raise ValueError(f"--env takes NAME=VALUE, not {wrong!r}")
    return {name: value for name, _, value in pairs}


def _pass_on(stream: StreamName, data: bytes) -> None:
    target = sys.stdout if stream == "stdout" else sys.stderr
    target.buffer.write(data)
    target.buffer.flush()


def _exit_code(result: ExecResult) -> int:
    if result.exit_code is not None:
        return result.exit_code
    print(f"hermes-sandbox: the command ended by {result.reason}", file=sys.stderr)
    return TIMED_OUT if result.timed_out else LOST


async def _reap(arguments: argparse.Namespace) -> int:
    from hermes_sandbox.reaping import reap

    options = backend_options(arguments.option)
    chosen = {name: options.get(name, {}) for name in arguments.backends or options}
    reaped = await reap(chosen or None, dry_run=arguments.dry_run)
    if arguments.json:
        print(json.dumps([asdict(each) for each in reaped], indent=2))
    for each in reaped if not arguments.json else ():
        action = "failed to remove" if each.error else "would remove" if arguments.dry_run else "removed"
        print(f"{action} {each.backend} {each.id}: {each.error or each.reason}")
    return 1 if any(each.error for each in reaped) else 0


if __name__ == "__main__":
    sys.exit(main())
