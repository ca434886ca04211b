"""SyncSandbox: the whole interface, from any thread, beside running loops, across forks."""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hermes_sandbox import Process, Sandbox, Shell, SyncProcess, SyncSandbox, SyncShell
from hermes_sandbox.owned_folders import base_folder, find_owned_folder


@pytest.fixture
def sandbox() -> Iterator[SyncSandbox]:
    with SyncSandbox("local", quiet=True) as made:
        yield made


@pytest.mark.parametrize(
    ("kind", "twin"), [(Sandbox, SyncSandbox), (Shell, SyncShell), (Process, SyncProcess)]
)
def test_every_public_method_has_a_twin_with_the_same_parameters(kind: type, twin: type) -> None:
    own = {"prepare", "start", "open", "ended"}  # what the makers of these call
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in own:
            continue
        assert hasattr(twin, name), name
        if inspect.iscoroutinefunction(member):
            assert (
                str(inspect.signature(member)).split(" ->")[0]
                == str(inspect.signature(getattr(twin, name))).split(" ->")[0]
            )


def test_commands_files_shells_and_processes(sandbox: SyncSandbox, tmp_path: Path) -> None:
    assert sandbox.exec("cat; exit 3", stdin=b"in").stdout == b"in"
    sandbox.write_text("a/b", "text")
    assert sandbox.read_text("a/b") == "text"
    assert [entry.name for entry in sandbox.list_dir("a")] == ["b"]
    sandbox.download("a", tmp_path / "a")
    assert (tmp_path / "a" / "b").read_text() == "text"
    with sandbox.open_shell() as shell:
        shell.run("cd a; x=1")
        assert shell.run("echo $x; pwd").stdout.endswith(b"/a\n")
        assert shell.cwd.endswith("/a")
    process = sandbox.spawn(["cat"])
    process.write(b"hello")
    process.close_stdin()
    assert process.wait(60) == 0
    assert process.read().data == b"hello"
    assert [each.id for each in sandbox.processes()] == [process.id]


def test_errors_pass_through(sandbox: SyncSandbox) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        sandbox.read_bytes("nothing")


async def test_inside_a_running_loop(sandbox: SyncSandbox) -> None:
    assert sandbox.exec("echo $((6 * 7))").stdout == b"42\n"
    results = await asyncio.gather(*(asyncio.to_thread(sandbox.exec, f"echo {n}") for n in range(8)))
    assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(8)]


def test_from_many_threads(sandbox: SyncSandbox) -> None:
    seen: list[bytes] = []
    threads = [
        threading.Thread(target=lambda n=n: seen.append(sandbox.exec(f"echo {n}").stdout)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [f"{n}\n".encode() for n in range(8)]


def test_a_callback_cannot_wait_for_its_own_loop(sandbox: SyncSandbox) -> None:
    raised: list[str] = []

    def call(*_: object) -> None:
        try:
            sandbox.exec("true")
        except RuntimeError as error:
            raised.append(str(error))

    sandbox.exec("echo x", on_output=call)
    assert "would wait for itself" in raised[0]


def test_a_forked_child_is_told_and_can_make_its_own(sandbox: SyncSandbox) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sandbox.exec("true")
        except RuntimeError as error:
            with SyncSandbox("local", quiet=True) as own:
                os.write(writing, f"{error}|{own.exec('echo child').output}".encode())
        finally:  # whatever happens, or it would go on with the tests
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    assert "before a fork" in said
    assert said.endswith("|child\n")
    assert sandbox.exec("echo parent").stdout == b"parent\n"


def test_what_is_still_open_at_the_end_of_the_program_is_removed() -> None:
    code = "from hermes_sandbox import SyncSandbox; print(SyncSandbox('local', quiet=True).id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert find_owned_folder(base_folder("local"), done.stdout.strip()) is None


INTERRUPTED = """
import os, signal, sys, threading, time
from hermes_sandbox import SyncSandbox
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell starts without it
folder, main = sys.argv[1], threading.main_thread().ident

def waits():
    frame = sys._current_frames()[main]
    while frame and frame.f_code.co_name != "result":
        frame = frame.f_back
    return frame is not None

def interrupt():
    while not (os.path.exists(f"{folder}/pid") and waits()):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

def dead(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True

with SyncSandbox("local", quiet=True) as sandbox:
    threading.Thread(target=interrupt).start()
    try:
        sandbox.exec(f"echo $$ >{folder}/draft; mv {folder}/draft {folder}/pid; exec sleep 3600")
    except KeyboardInterrupt:
        pid, end = int(open(f"{folder}/pid").read()), time.monotonic() + 60
        while not dead(pid) and time.monotonic() < end:
            time.sleep(0.05)
        print("interrupted", dead(pid))
"""


def test_an_interrupt_kills_the_command(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.stdout == "interrupted True\n", done.stderr
