"""`tb2` in a process of its own.

`start` and `tb2` fork it from a process that has everything imported already (`hermes_benchmarks_nursery`): it runs, ends
and is killed as any other, and does not spend a second on its imports. `cold` starts it as a person does.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CODE = "import sys; from hermes_benchmarks.cli.tb2 import main; main()"
WITHOUT = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENROUTER_API_KEY")
PATIENCE = 500
"""Seconds for a whole run on a slow machine."""
NURSERY = Path(__file__).with_name("hermes_benchmarks_nursery.py")


def environment(**more):
    """The environment without keys of models."""
    return {name: value for name, value in os.environ.items() if name not in WITHOUT} | more


class Command:
    """A `tb2` that runs, in a process group of its own."""

    def __init__(self, folder, arguments, env, file_size=None):
        self.out, self.err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - closed by `communicate`
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = {"folder": str(folder), "arguments": list(map(str, arguments)), "env": env}
        asked["file_size"] = file_size
        with there:
            descriptors = [there.fileno(), self.out.fileno(), self.err.fileno()]
            socket.send_fds(nursery(), [json.dumps(asked).encode()], descriptors)
        self._here.settimeout(PATIENCE)
        self.pid = int(self._here.recv(64))
        self.returncode = None

    def poll(self):
        """The exit code, negative for a signal; None while it runs."""
        return self.wait(0)

    def wait(self, timeout):
        """Likewise, after at most `timeout` seconds."""
        if self.returncode is None:
            self._here.settimeout(max(timeout, 0.001))
            try:
                self.returncode = int(self._here.recv(64))
            except TimeoutError:
                return None
            self._here.close()
        return self.returncode

    def kill(self, number=signal.SIGKILL):
        """Signal it and everything in its group; nothing happens where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def send_signal(self, number):
        """Signal it alone."""
        os.kill(self.pid, number)

    def said(self):
        """What it has written so far: output, errors."""
        texts = (os.pread(file.fileno(), 1 << 24, 0) for file in (self.out, self.err))
        return tuple(text.decode() for text in texts)

    def communicate(self, timeout=PATIENCE):
        """Wait for its end; output, errors."""
        if self.wait(timeout) is None:
            self.kill()
            self.wait(60)
            raise subprocess.TimeoutExpired("tb2", timeout, *self.said())
        said = self.said()
        self.out.close()
        self.err.close()
        return said

    def await_line(self):
        """Wait until it has written a line, or ended."""
        deadline = time.monotonic() + PATIENCE
        while "\n" not in self.said()[0] and self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)


def start(folder, *arguments, file_size=None, **more):
    """Start `tb2` in a folder.

    Where no file may grow beyond `file_size` bytes, writing fails as on a full disk.
    """
    return Command(folder, arguments, environment(**more), file_size)


def tb2(folder, *arguments, timeout=PATIENCE, file_size=None, **more):
    """Run `tb2` to its end; exit code, output, errors."""
    command = start(folder, *arguments, file_size=file_size, **more)
    out, err = command.communicate(timeout)
    return command.returncode, out, err


def cold(folder, *arguments, **more):
    """Likewise, by a Python of its own."""
    argv = [sys.executable, "-c", CODE, *map(str, arguments)]
    env = environment(**more)
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


@functools.cache
def nursery():
    """The socket of this process's nursery, which ends with it."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        argv = [sys.executable, str(NURSERY), str(there.fileno())]
        process = subprocess.Popen(argv, pass_fds=[there.fileno()], start_new_session=True)

    def end():
        here.close()
        process.wait(60)

    atexit.register(end)
    return here
