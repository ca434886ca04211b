"""Backends by name."""

import subprocess
import sys

import pytest
from hermes_sandbox import create_sandbox, get_backend, list_backends


def test_every_backend_is_listed() -> None:
    assert {"local", "docker", "ssh", "singularity", "modal", "daytona"} <= set(list_backends())


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean"):
        get_backend("dokcer")


def test_an_unknown_option_names_the_backend() -> None:
    with pytest.raises(TypeError, match="options of the local backend"):
        get_backend("local", colour="red")


def test_a_missing_option_is_named() -> None:
    with pytest.raises(TypeError, match=r"ssh backend needs the option host; give .*ssh\.host=HOST"):
        get_backend("ssh")


async def test_a_label_of_ours_is_refused() -> None:
    from hermes_sandbox import SandboxSpec

    with pytest.raises(ValueError, match="keeps for itself"):
        await create_sandbox("local", SandboxSpec(labels={"hermes.owner": "me"}), quiet=True)


def test_importing_the_package_loads_no_sdk() -> None:
    code = (
        "import sys, hermes_sandbox; "
        "print([m for m in ('aiodocker', 'aiohttp', 'asyncssh', 'modal', 'daytona', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
