"""Docker for tests: the plain command line, and a daemon of one's own that may be stopped."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def docker(*argv: str, host: str | None = None, check: bool = True) -> str:
    """What `docker …` prints."""
    where = [] if host is None else ["-H", host]
    done = subprocess.run(["docker", *where, *argv], capture_output=True, text=True, timeout=300, check=False)
    if check and done.returncode:
        raise AssertionError(f"docker {' '.join(argv)}: {done.stderr}")
    return done.stdout


async def eventually(condition: object, *, within: float = 60.0) -> bool:
    """Whether a condition (a callable) comes true in time."""
    assert callable(condition)
    end = time.monotonic() + within
    while time.monotonic() < end:
        if condition():
            return True
        await asyncio.sleep(0.1)
    return False


class PrivateDaemon:
    """A dockerd with its own data, socket and network namespace."""

    def __init__(self, folder: Path) -> None:
        self.host = f"unix://{folder}/docker.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        argv = ["unshare", "-n", "dockerd", "-H", self.host, "--data-root", f"{self._folder}/data"]
        argv += ["--exec-root", f"{self._folder}/exec", "--pidfile", f"{self._folder}/pid"]
        argv += ["--bridge=none", "--iptables=false", "--ip6tables=false"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while subprocess.run(
            ["docker", "-H", self.host, "info"], capture_output=True, check=False
        ).returncode:
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError((self._folder / "log").read_text()[-3000:])
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop it; its containers end with it."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def private_daemon(folder: Path, image: str) -> Iterator[PrivateDaemon]:
    """A running private daemon that has one image of the ordinary one."""
    daemon = PrivateDaemon(folder)
    daemon.start()
    try:
        save = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        load = ["docker", "-H", daemon.host, "load", "-q"]
        subprocess.run(load, stdin=save.stdout, capture_output=True, check=True, timeout=300)
        assert save.stdout is not None
        save.stdout.close()
        save.wait()
        yield daemon
    finally:
        daemon.stop()
        subprocess.run(
            ["sh", "-c", f"umount {folder}/exec/netns/* {folder}/data/*/*/merged"],
            capture_output=True,
            check=False,
        )
        shutil.rmtree(folder, ignore_errors=True)
