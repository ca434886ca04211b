"""The resident runner itself, as a child of this process: framing, input, leftovers, kills."""

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hermes_sandbox import create_sandbox
from hermes_sandbox.backend import Tree
from hermes_sandbox.backends.local_process import LocalProcess
from hermes_sandbox.jobs import MARK
from hermes_sandbox.runner import Runner, client, runner_program
from hermes_sandbox.runner.errors import RunnerLost
from hermes_sandbox.runner.job import RunnerJob
from hermes_sandbox.runner.programs import Turn, quote, shell_lines

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
OURS = f"m/{uuid.uuid4().hex}"
"""The mark of the commands here. Another run's must differ: the kills look at all of the machine's processes."""


async def open_runner() -> tuple[Runner, LocalProcess]:
    argv = ("bash", "--norc", "--noprofile", "-c", runner_program())
    process = await LocalProcess.spawn(argv, cwd="/", env=ENV)
    runner = Runner(process)
    await runner.ready()
    return runner, process


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    opened, _ = await open_runner()
    yield opened
    await opened.close()


class Output:
    def __init__(self) -> None:
        self.stdout = self.stderr = b""

    def __call__(self, stream: str, data: bytes) -> None:
        if stream == "stdout":
            self.stdout += data
        else:
            self.stderr += data


async def start(
    runner: Runner, script: str, *, feed: bool = False, merge: bool = False
) -> tuple[RunnerJob, Output]:
    output = Output()
    job = await runner.start(("bash", "-c", script), "/", {MARK: OURS}, output, merge=merge, feed=feed)
    return job, output


async def finish(job: RunnerJob) -> int | None:
    async with asyncio.timeout(60):
        ending = await job.ended
        await job.drained.wait()
    return ending.exit_code


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0\0",
        b"a\0",
        b"\0a",
        b"x" * 255 + b"\0",
        b"x" * 256 + b"\0" + b"y" * 300,
        b"\xff\xfe\n\r\n" * 100,
        bytes(range(256)) * 700,
        b"no newline",
        b"D 1 1 5\nX 1 0 0 0\n",
    ],
    ids=lambda data: f"{len(data)}-{hashlib.md5(data).hexdigest()[:4]}",
)
async def test_bytes_pass_unchanged_in_both_directions(runner: Runner, data: bytes) -> None:
    job, output = await start(runner, "exec tee /dev/stderr", feed=True)
    if data:
        await job.write(data)
    await job.close_stdin()
    assert await finish(job) == 0
    assert output.stdout == output.stderr == data


async def test_a_fork_that_fails_is_no_signal(runner: Runner) -> None:
    """Bash says 254, and something else than "Exit", where a limit of processes is reached."""
    said = "bash: fork: Resource temporarily unavailable"
    await runner.request(f"wait() {{ builtin wait $1; echo '{said}' >&2; return 254; }}")
    job, _ = await start(runner, "true")
    async with asyncio.timeout(60):
        ending = await job.ended
    assert (ending.exit_code, ending.signaled) == (254, False)


async def test_random_pieces_of_random_bytes(runner: Runner) -> None:
    """Pieces of all sizes and pauses, which exercise short blocks, dd and the flood."""
    seed = random.Random(7)
    whole = seed.randbytes(700_000)
    job, output = await start(runner, "exec cat", feed=True)
    at = 0
    while at < len(whole):
        size = seed.choice([1, 2, 100, 255, 256, 257, 4096, 40_000, 150_000])
        await job.write(whole[at : at + size])
        at += size
        if seed.random() < 0.3:
            await asyncio.sleep(seed.random() * 0.01)
    await job.close_stdin()
    assert await finish(job) == 0
    assert output.stdout == whole


async def test_many_at_once_keep_their_output_apart(runner: Runner) -> None:
    async def one(number: int) -> None:
        job, output = await start(runner, f"for i in {{1..300}}; do echo {number}; echo {-number} >&2; done")
        assert await finish(job) == 0
        assert output.stdout == b"%d\n" % number * 300
        assert output.stderr == b"%d\n" % -number * 300

    await asyncio.gather(*(one(number) for number in range(1, 17)))


async def test_merged_streams_come_in_true_order(runner: Runner) -> None:
    job, output = await start(runner, "for i in {1..200}; do echo o$i; echo e$i >&2; done", merge=True)
    assert await finish(job) == 0
    assert output.stdout.split() == [
        b"%c%d" % (kind, i) for i in range(1, 201) for kind in (ord("o"), ord("e"))
    ]


async def test_the_runner_keeps_its_own_locale_from_commands(runner: Runner) -> None:
    job, output = await start(runner, 'echo "$LC_ALL"; x=ä; echo ${#x}')
    assert await finish(job) == 0
    assert output.stdout == b"C.UTF-8\n1\n"


async def test_commands_hold_none_of_the_runners_descriptors(runner: Runner) -> None:
    for feed in (False, True):
        job, output = await start(runner, "exec ls /proc/self/fd", feed=feed)
        assert await finish(job) == 0
        assert output.stdout.split() == [b"0", b"1", b"2", b"3"]  # 3 is the folder that ls reads


async def test_a_command_that_reads_nothing_does_not_block_others(runner: Runner) -> None:
    deaf, _ = await start(runner, "sleep 600", feed=True)
    writing = asyncio.create_task(deaf.write(b"x" * 1_000_000))
    await asyncio.sleep(0.1)
    job, output = await start(runner, "echo fine")
    assert await finish(job) == 0
    assert output.stdout == b"fine\n"
    assert not writing.done()
    assert await runner.signal_tree(Tree(OURS, deaf.pid), signal.SIGKILL) >= 1
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(writing, 60)


async def test_input_after_the_command_closed_it_is_a_broken_pipe(runner: Runner) -> None:
    job, _ = await start(runner, "exec <&-; sleep 600", feed=True)
    with pytest.raises(BrokenPipeError):
        async with asyncio.timeout(60):
            await job.write(b"x" * 1_000_000)
    await runner.signal_tree(Tree(OURS, job.pid), signal.SIGKILL)


async def test_a_chatty_leftover_is_silenced_and_lives_on(runner: Runner) -> None:
    job, output = await start(runner, "(while :; do echo again; sleep 0.01; done) & echo $!")
    await asyncio.wait_for(job.ended, 60)
    while not output.stdout.count(b"\n") > 5:
        await asyncio.sleep(0.01)
    child = next(int(line) for line in output.stdout.split() if line.isdigit())
    assert await job.discard(force=True)
    kept = len(output.stdout)
    await asyncio.sleep(0.1)
    assert len(output.stdout) == kept
    os.kill(child, 0)
    os.kill(child, signal.SIGKILL)


async def test_what_a_pump_has_in_hand_is_not_dropped_with_it(runner: Runner) -> None:
    """It has read the last words, but a busy machine has not let it pass them on when it is told to go."""
    lock = await runner.ask('tell() { printf "K %s %s\\n" "$1" "$lock" >&"$events"; }; tell', "")
    descriptor = os.open(f"/proc/{await runner.ready()}/fd/{lock}", os.O_RDWR)
    byte = os.read(descriptor, 1)
    job, output = await start(runner, "sleep 600 & echo last words")
    await asyncio.wait_for(job.ended, 60)
    async with asyncio.timeout(60):
        while await job.busy():
            await asyncio.sleep(0.01)
    dropping = asyncio.create_task(job.discard())
    await asyncio.sleep(0.05)
    assert (output.stdout, dropping.done()) == (b"", False)
    os.write(descriptor, byte)
    os.close(descriptor)
    assert await asyncio.wait_for(dropping, 60)
    assert output.stdout == b"last words\n"
    await runner.signal_tree(Tree(OURS, job.pid), signal.SIGKILL)


async def test_a_kill_reaches_children_that_left_the_group_and_session(runner: Runner) -> None:
    job, output = await start(
        runner, "setsid sleep 610 & (exec setsid bash -c 'exec -a other sleep 620') & echo up; exec sleep 600"
    )
    while b"up" not in output.stdout:
        await asyncio.sleep(0.01)
    assert await runner.signal_tree(Tree(OURS, job.pid), signal.SIGKILL) >= 3
    assert await finish(job) == 137
    async with asyncio.timeout(60):
        while await runner.signal_tree(Tree(OURS, job.pid), 0):
            await asyncio.sleep(0.02)


async def test_a_killed_keeper_is_noticed(runner: Runner) -> None:
    job, _ = await start(runner, "kill -9 $PPID; echo bye")
    assert await finish(job) is None


async def test_a_killed_runner_loses_its_commands_and_refuses_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SLOW_START", 0.2)
    runner, process = await open_runner()
    job, _ = await start(runner, f"until [ -e {tmp_path}/end ]; do sleep 0.05; done; exit 3")
    await process.signal(signal.SIGKILL)
    with pytest.raises(RunnerLost):
        await asyncio.wait_for(start(runner, "echo no"), 60)
    # What was running reports its end without the runner.
    (tmp_path / "end").touch()
    assert (await asyncio.wait_for(job.ended, 60)).exit_code == 3
    await runner.close()


async def test_a_program_that_is_no_runner_is_told_with_its_words() -> None:
    process = await LocalProcess.spawn(
        ("bash", "-c", "echo 'exec: no such thing' >&2; exit 1"), cwd="/", env=ENV
    )
    runner = Runner(process)
    with pytest.raises(RunnerLost, match="no such thing"):
        await runner.ready()
    await runner.close()


async def test_a_sink_that_raises_ends_its_own_command_only(runner: Runner) -> None:
    def broken(stream: str, data: bytes) -> None:
        raise ZeroDivisionError

    job = await runner.start(
        ("bash", "-c", "echo x; sleep 600"), "/", {MARK: OURS}, broken, merge=False, feed=False
    )
    await asyncio.wait_for(job.ended, 60)
    assert isinstance(job.failure, ZeroDivisionError)
    await runner.signal_tree(Tree(OURS, job.pid), signal.SIGKILL)
    other, output = await start(runner, "echo fine")
    assert await finish(other) == 0
    assert output.stdout == b"fine\n"


@pytest.mark.parametrize("text", ["", "a b", "it's", '"$x" `y`', "new\nline", "ünï", "\udcff"])
async def test_words_survive_quoting(runner: Runner, text: str) -> None:
    output = Output()
    job = await runner.start(
        ("printf", "%s", text), "/", {MARK: OURS, "V": text}, output, merge=False, feed=False
    )
    assert await finish(job) == 0
    assert output.stdout == text.encode(errors="surrogateescape")


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


def test_a_shells_lines_hold_the_word_after_the_command_only() -> None:
    lines = shell_lines("echo it's", cwd="/x", env={"A": "1"}, stdin=b"\0\n", turn=Turn("@w", 2)).split(b"\n")
    command = next(number for number, line in enumerate(lines) if b"echo" in line)
    assert all(b"@w" not in line for line in lines[: command + 1])
    assert b"@w" in lines[command + 1]


async def test_options_of_a_shell_do_not_reach_what_drives_it() -> None:
    async with create_sandbox("local", quiet=True) as sandbox, await sandbox.open_shell() as shell:
        await shell.run("set -u")
        assert (await shell.run("echo a; echo $NOPE; echo b", timeout=60)).exit_code == 1
        await shell.run("set +u -x")
        assert b"hermes" not in (await shell.run("echo traced", timeout=60)).stdout
        await shell.run(
            "set +x; IFS=x; trap 'echo D >/dev/null' DEBUG; printf() { echo no; }; unset HERMES_MARK"
        )
        assert (await shell.run("echo fine; false", timeout=60)).stdout == b"fine\n"
        assert (await shell.run("echo $?", timeout=60)).stdout == b"1\n"
        assert (await shell.run("pwd", cwd="/", env={"PWD_": "x"}, timeout=60)).stdout == b"/\n"
        assert (await shell.run("exec >/dev/null; echo gone", timeout=60)).exit_code == 0
        assert not (await shell.run("echo $(jobs)", timeout=60)).timed_out


HELD = r"""tell() {
  local descriptors=(/proc/$$/fd/*) children
  read -r -a children </proc/$$/task/$$/children
  printf 'K %s %s\n' "$1" "$((1000 * ${#children[@]} + ${#descriptors[@]}))" >&"$events"
}; tell"""
"""What a runner holds, counted by itself: from outside it shows a descriptor more while it waits for a request."""


async def test_ended_commands_leave_nothing_in_the_runner(runner: Runner) -> None:
    """Neither those that never read their input nor those whose input was never ended."""
    before = await runner.ask(HELD, "") % 1000  # without the children that it made its own pipes with
    for number in range(4):
        job, _ = await start(runner, "exec true", feed=True)
        with contextlib.suppress(BrokenPipeError):
            await job.write(bytes(100_000 * (number % 2)))
        assert await finish(job) == 0
    async with asyncio.timeout(60):
        while await runner.ask(HELD, "") != before:
            await asyncio.sleep(0.02)
