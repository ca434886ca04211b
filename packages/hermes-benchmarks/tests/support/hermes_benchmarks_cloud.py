"""The local servers of the cloud backends, each a process of its own, and `tb2` against them."""

import json
import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hermes_benchmarks_command import environment

SERVERS = Path(__file__).parents[3] / "hermes-sandbox" / "tests" / "support"


@dataclass
class Cloud:
    """A running server, and how a client is told of it."""

    name: str
    env: dict[str, str]
    under: list[str]
    label: str
    process: subprocess.Popen[str]

    def start(self, folder, *arguments, command="tb2"):
        """Start a benchmark's command as a client of this server."""
        code = f"from hermes_benchmarks.cli.{command} import main; main()"
        return subprocess.Popen(
            [*self.under, sys.executable, "-c", code, *map(str, arguments)],
            cwd=folder,
            env=environment(**self.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, folder, *arguments, command="tb2", timeout=600):
        """Run it to its end; exit code, output, errors."""
        process = self.start(folder, *arguments, command=command)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err

    def containers(self):
        """The containers of its sandboxes."""
        argv = ["docker", "ps", "-aq", "--filter", f"label=hermes-server={self.label}"]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()

    def kill(self):
        """End it at once; what it made stays."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_cloud(name, folder):
    """A server; at the end nothing of it is left."""
    folder.mkdir(parents=True, exist_ok=True)
    label = uuid.uuid4().hex
    argv = [sys.executable, SERVERS / f"{name}_server.py", "--folder", folder, "--label", label]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        line = process.stdout.readline()
        assert line, (folder / "server.log").read_text()
        cloud = Cloud(name, process=process, **json.loads(line))
        try:
            yield cloud
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            if left := cloud.containers():
                subprocess.run(["docker", "rm", "-f", *left], capture_output=True, check=False)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
