"""The terminal toolset: commands in the rollout's shell, and processes in the background."""

from hermes_tools.registry import Toolset
from hermes_tools.toolsets.terminal.process import process
from hermes_tools.toolsets.terminal.terminal import terminal

TERMINAL = Toolset("terminal", "Run commands, in the foreground and in the background.", (terminal, process))
