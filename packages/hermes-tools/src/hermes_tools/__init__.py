"""Typed tools, toolsets and toolset distributions for language-model agents, on any workspace."""

from hermes_tools.dispatch import call_tool, handle_function_call
from hermes_tools.distributions import (
    DISTRIBUTIONS,
    Distribution,
    load_distributions,
    sample_toolsets_from_distribution,
)
from hermes_tools.errors import (
    ArgumentsError,
    ToolDefinitionError,
    ToolError,
    ToolsError,
    ToolsetUnavailableError,
    UnknownToolError,
    UnknownToolsetError,
)
from hermes_tools.host import HostWorkspace
from hermes_tools.registry import (
    ToolRegistry,
    Toolset,
    default_registry,
    get_tool_definitions,
    resolve_toolsets,
)
from hermes_tools.results import Content, ResultBudget, ToolOutput, fit_turn
from hermes_tools.session import ToolSession
from hermes_tools.tool import Tool, tool
from hermes_tools.workspace import Workspace

__all__ = (
    "DISTRIBUTIONS",
    "ArgumentsError",
    "Content",
    "Distribution",
    "HostWorkspace",
    "ResultBudget",
    "Tool",
    "ToolDefinitionError",
    "ToolError",
    "ToolOutput",
    "ToolRegistry",
    "ToolSession",
    "ToolsError",
    "Toolset",
    "ToolsetUnavailableError",
    "UnknownToolError",
    "UnknownToolsetError",
    "Workspace",
    "call_tool",
    "default_registry",
    "fit_turn",
    "get_tool_definitions",
    "handle_function_call",
    "load_distributions",
    "resolve_toolsets",
    "sample_toolsets_from_distribution",
    "tool",
)
