"""The resident runner: one long-lived process per sandbox that forks every command inside it."""

from hermes_sandbox.runner.client import Runner
from hermes_sandbox.runner.programs import kill_program, runner_program

__all__ = ["Runner", "kill_program", "runner_program"]
