"""Capabilities for every package's tests: what a machine lacks skips with a reason, unless it is required.

`HERMES_REQUIRE=docker,ssh` turns a skip for want of one of these into a failure; `.ci/run` sets it, so
that a green run means that the real thing was exercised.
"""

import fcntl
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

TEST_IMAGE = "hermes-test:bookworm"
IMAGE_FOLDER = Path(__file__).parent / "tests" / "image"


def _succeeds(*argv: str, timeout: float = 600) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=timeout, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _docker() -> str | None:
    if not _succeeds("docker", "info", timeout=60):
        return "no Docker daemon answers `docker info`"
    return None


def _binary(*names: str) -> str | None:
    if any(shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") for name in names):
        return None
    return f"none of {', '.join(names)} is installed"


def _variable(name: str) -> str | None:
    return None if os.environ.get(name) else f"{name} is not set"


def _live() -> str | None:
    return (
        None
        if os.environ.get("MODAL_TOKEN_ID") or os.environ.get("DAYTONA_API_KEY")
        else "no cloud tokens are set"
    )


CAPABILITIES: dict[str, Callable[[], str | None]] = {
    "docker": _docker,
    "ssh": lambda: _binary("sshd"),
    "singularity": lambda: _binary("apptainer", "singularity"),
    "bwrap": lambda: _binary("bwrap"),
    "browser": lambda: _binary("chromium", "chromium-browser", "google-chrome"),
    "atropos": lambda: None if find_spec("atroposlib") else "atroposlib is not installed",
    "tb2": lambda: _variable("HERMES_TB2_TASKS"),
    "ycb": lambda: (
        _variable("HERMES_YCB_PYTHON") and (None if find_spec("yc_bench") else "yc-bench is not installed")
    ),
    "live": _live,
}


@functools.cache
def missing(capability: str) -> str | None:
    """Why `capability` cannot be used on this machine, or None where it can."""
    return CAPABILITIES[capability]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


@pytest.hookimpl(optionalhook=True)  # also where pytest runs without xdist
def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core: most tests wait for processes and containers more than they compute.

    A few at most, since a container may see many more cores than it may use.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, 2 * cores)


def pytest_configure(config: pytest.Config) -> None:
    """Make every run alike, whatever started it.

    Property tests try the same examples in each quick run, and new ones in long runs; no clock decides about any.
    """
    # Commands would print as to the terminal that these tell of.
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR_FORCE"):
        os.environ.pop(name, None)
    # A proxy that this machine may have does not reach the servers of the tests.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))
    # What a script starts in its background ignores Ctrl-C, and so would every command that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if find_spec("hypothesis") and not config.getoption("--hypothesis-profile", None):
        from hypothesis import settings

        settings.register_profile("long", settings.get_profile("ci"), derandomize=False)
        settings.load_profile("long" if config.getoption("--slow") else "ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="a long run: give --slow"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = {name.strip() for name in os.environ.get("HERMES_REQUIRE", "").split(",")}
    for capability in CAPABILITIES:
        if item.get_closest_marker(capability) and (reason := missing(capability)):
            if capability in required:
                pytest.fail(f"{capability} is required here (HERMES_REQUIRE), but {reason}")
            pytest.skip(reason)


@pytest.fixture(scope="session")
def test_image() -> str:
    """A Debian image with bash, python3, git and tar, built once from the public `debian:bookworm-slim`."""
    lock = Path(tempfile.gettempdir()) / f"hermes-test-image-{os.getuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the workers of one run share the image
        if not _succeeds("docker", "image", "inspect", TEST_IMAGE):
            build = ["docker", "build", "-q", "-t", TEST_IMAGE, str(IMAGE_FOLDER)]
            built = subprocess.run(build, capture_output=True, text=True, timeout=900, check=False)
            if built.returncode:
                pytest.fail(f"cannot build {TEST_IMAGE}: {built.stderr[-2000:]}")
    return TEST_IMAGE
