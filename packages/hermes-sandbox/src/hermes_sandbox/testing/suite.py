"""All checks together."""

from __future__ import annotations

import pytest

from hermes_sandbox.testing.exec_checks import ExecChecks
from hermes_sandbox.testing.file_checks import FileChecks, TransferChecks
from hermes_sandbox.testing.isolation_checks import IsolationChecks
from hermes_sandbox.testing.kill_checks import KillChecks
from hermes_sandbox.testing.life_checks import LifeChecks
from hermes_sandbox.testing.output_checks import OutputChecks
from hermes_sandbox.testing.process_checks import ProcessChecks
from hermes_sandbox.testing.shell_checks import ShellChecks


@pytest.mark.asyncio(loop_scope="class")
class SandboxConformance(
    ExecChecks,
    OutputChecks,
    KillChecks,
    ShellChecks,
    ProcessChecks,
    FileChecks,
    TransferChecks,
    IsolationChecks,
    LifeChecks,
):
    """Every check. Subclass it as `Test…` and set `backend`, and `spec`, `features` and `options` where needed."""
