"""The code toolset: Python in the workspace that calls the other tools."""

from hermes_tools.registry import Toolset
from hermes_tools.toolsets.code.execute import execute_code

CODE = Toolset("code", "Run Python that calls the other tools.", (execute_code,))
