"""Runs on any workspace what tools rely on."""

import asyncio
import posixpath
import shlex
from collections.abc import Awaitable, Callable

from hermes_tools.workspace import CommandResult, ProcessOutput, Workspace

PATIENCE = 60.0
"""Seconds for what is to come about, on a machine of any speed."""
Check = Callable[[Workspace, str], Awaitable[None]]


async def check_workspace(workspace: Workspace) -> list[str]:
    """Check that a workspace does what the tools need of it.

    It works in a folder of its own below `workdir`, which it removes.

    Args:
        workspace: A running workspace with bash and coreutils.

    Returns:
        Names of the checks that were made.

    Raises:
        AssertionError: A check failed; the message names it.
    """
    assert isinstance(workspace, Workspace), "the object lacks members of the Workspace protocol"
    made = await workspace.exec("mktemp -d ./check.XXXXXXXX && pwd", timeout=PATIENCE)
    lines = made.stdout.decode().split()
    folder = posixpath.normpath(posixpath.join(lines[1], lines[0]))
    assert lines[1] == workspace.workdir, f"commands start in {lines[1]}, not in workdir {workspace.workdir}"
    try:
        for check in _CHECKS:
            try:
                await check(workspace, folder)
            except Exception as error:
                raise AssertionError(f"{check.__name__}: {type(error).__name__}: {error}") from error
    finally:
        await workspace.exec(f"rm -rf -- {shlex.quote(folder)}", timeout=PATIENCE)
    return [check.__name__ for check in _CHECKS]


async def results_of_commands(workspace: Workspace, folder: str) -> None:
    """Exit codes, streams, folder, variables, input and word lists."""
    result = await workspace.exec("echo out; echo err >&2; exit 3", cwd=folder, timeout=PATIENCE)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n"), result
    assert result.reason == "exit" and not result.timed_out and not result.truncated
    merged = await workspace.exec("echo 1; echo 2 >&2; echo 3", merge=True, timeout=PATIENCE)
    assert merged.stdout == b"1\n2\n3\n", merged
    given = await workspace.exec(
        'pwd; printf %s "$X"; cat', cwd=folder, env={"X": "a b"}, stdin=b"in", timeout=PATIENCE
    )
    assert given.stdout == folder.encode() + b"\na bin", given
    much = await workspace.exec("head -c 10; wc -c", stdin=b"x" * 3_000_010, timeout=PATIENCE)
    assert much.stdout == b"x" * 10 + b"3000000\n", much
    words = await workspace.exec(["printf", "%s|", "a b", "$HOME", "'"], timeout=PATIENCE)
    assert words.stdout == b"a b|$HOME|'|", words
    silent = await workspace.exec("cat", timeout=PATIENCE)
    assert silent.exit_code == 0 and silent.stdout == b"", "a command without stdin must read an end of file"


async def long_commands(workspace: Workspace, folder: str) -> None:
    """A script longer than one argument of a process may be."""
    result = await workspace.exec(": " + "x" * 300_000 + "\necho done", timeout=PATIENCE)
    assert result.stdout == b"done\n", result.exit_code


async def output_limits(workspace: Workspace, folder: str) -> None:
    """Head and tail are kept, and the gap is told."""
    result = await workspace.exec("seq 1 100000", output_limit=1000, timeout=PATIENCE)
    assert result.truncated and len(result.stdout) <= 1100, len(result.stdout)
    assert result.stdout.startswith(b"1\n2\n") and result.stdout.endswith(b"100000\n")
    whole = await workspace.exec("head -c 3000000 /dev/zero", output_limit=None, timeout=PATIENCE)
    assert len(whole.stdout) == 3_000_000 and not whole.truncated


async def deadlines(workspace: Workspace, folder: str) -> None:
    """A command over its time is killed with its children; its output stays."""
    command = "echo begun; sleep 301 & sleep 301"
    result = await _stopped(lambda seconds: workspace.exec(command, timeout=seconds))
    assert result.timed_out and result.exit_code is None and result.stdout == b"begun\n", result


async def cancelling(workspace: Workspace, folder: str) -> None:
    """A cancelled call kills its command, and the workspace stays usable."""
    mark = shlex.quote(f"{folder}/alive")
    task = asyncio.create_task(workspace.exec(f"while true; do date > {mark}; sleep 0.1; done"))
    begun = await workspace.exec(f"until test -e {mark}; do sleep 0.1; done", timeout=PATIENCE)
    assert begun.exit_code == 0, "the command did not begin beside another"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    gone = await workspace.exec(
        f"while rm -f {mark}; sleep 0.5; test -e {mark}; do :; done", timeout=PATIENCE
    )
    assert gone.exit_code == 0, "the command ran on after its call was cancelled"


async def background_children(workspace: Workspace, folder: str) -> None:
    """What a command leaves in the background does not hold it up."""
    result = await workspace.exec("sleep 301 & echo $!", timeout=PATIENCE)
    assert result.exit_code == 0, "the command ended only with what it had left in the background"
    await workspace.exec(["kill", result.stdout.decode().strip()], timeout=PATIENCE)


async def files(workspace: Workspace, folder: str) -> None:
    """Bytes come back as they were written; folders are made; modes and links stay."""
    data = bytes(range(256)) * 5_000
    path = f"{folder}/a dir/ü'\"\n$x/file"
    await workspace.write_bytes(path, data)
    assert await workspace.read_bytes(path) == data
    assert await workspace.read_bytes(path, offset=256, limit=10) == bytes(range(10))
    assert await workspace.read_bytes(path, offset=len(data)) == b""
    assert await workspace.read_bytes(path, limit=0) == b""
    await workspace.write_bytes(f"{folder}/empty", b"")
    assert await workspace.read_bytes(f"{folder}/empty") == b""
    relative = posixpath.basename(folder)
    assert await workspace.read_bytes(f"{relative}/empty") == b"", "relative paths start from workdir"
    script = f"{folder}/run.sh"
    await workspace.write_bytes(script, b"#!/bin/sh\necho 1\n", mode=0o755)
    await workspace.exec(["ln", "-s", "run.sh", f"{folder}/link"], timeout=PATIENCE)
    await workspace.write_bytes(f"{folder}/link", b"#!/bin/sh\necho 2\n")
    result = await workspace.exec(["./run.sh"], cwd=folder, timeout=PATIENCE)
    assert result.stdout == b"2\n", f"writing must keep a file's mode and follow links: {result.output}"


async def file_errors(workspace: Workspace, folder: str) -> None:
    """The errors of files are the built-in ones."""
    await _raises(FileNotFoundError, workspace.read_bytes(f"{folder}/none"))
    await _raises(IsADirectoryError, workspace.read_bytes(folder))
    await _raises(IsADirectoryError, workspace.write_bytes(folder, b""))


async def shells(workspace: Workspace, folder: str) -> None:
    """Folder, variables and functions last, the first two even past `exit`; timeouts spare the shell; streams are in order."""
    shell = await workspace.open_shell(cwd=folder)
    try:
        assert shell.cwd == folder, shell.cwd
        await shell.run("mkdir -p sub; cd sub; export X='a b'; f() { echo f:$1; }", timeout=PATIENCE)
        assert shell.cwd == f"{folder}/sub", shell.cwd
        result = await shell.run('echo "$X"; f 1; echo err >&2; pwd', timeout=PATIENCE)
        assert result.output == f"a b\nf:1\nerr\n{folder}/sub\n", result.output
        late = await _stopped(lambda seconds: shell.run("echo begun; sleep 301", timeout=seconds))
        assert late.timed_out and "begun" in late.output, late
        failed = await shell.run("exit 7", timeout=PATIENCE)
        assert failed.exit_code == 7, failed
        again = await shell.run('pwd; echo "$X"', timeout=PATIENCE)
        assert again.output == f"{folder}/sub\na b\n", again.output
        broken = await shell.run("echo 'unclosed", timeout=PATIENCE)
        assert broken.exit_code not in (0, None), broken
        assert (await shell.run("echo on", timeout=PATIENCE)).output == "on\n"
    finally:
        await shell.close()
        await shell.close()


async def processes(workspace: Workspace, folder: str) -> None:
    """Background processes: output by offset, input, signals, waiting."""
    process = await workspace.spawn(
        "echo ready; while read line; do echo got:$line; done; exit 4", cwd=folder
    )
    await process.write(b"one\n")
    piece = await _until(process.read, b"ready\ngot:one\n")
    assert await process.poll() is None and await process.wait(0.1) is None
    await process.write(b"two\n")
    await process.close_stdin()
    assert await process.wait(PATIENCE) == 4 and await process.poll() == 4
    rest = await process.read(piece)
    assert rest.data == b"got:two\n", rest.data
    assert (await process.read(0, 5)).data == b"ready"
    sleeper = await workspace.spawn("sleep 300")
    await sleeper.signal("TERM")
    assert await sleeper.wait(PATIENCE) == 143


async def _stopped(run: Callable[[float], Awaitable[CommandResult]]) -> CommandResult:
    """What becomes of a command that is still running at its limit, and had time to begin before it."""
    result = await run(1)
    return result if result.output else await run(30)


async def _until(read: Callable[[], Awaitable[ProcessOutput]], wanted: bytes) -> int:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (piece := await read()).data != wanted:
        assert asyncio.get_running_loop().time() < deadline, f"the output never became {wanted!r}"
        await asyncio.sleep(0.05)
    return piece.next_offset


async def _raises(kind: type[BaseException], call: Awaitable[object]) -> None:
    try:
        await call
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")


_CHECKS: tuple[Check, ...] = (
    results_of_commands,
    long_commands,
    output_limits,
    deadlines,
    cancelling,
    background_children,
    files,
    file_errors,
    shells,
    processes,
)
