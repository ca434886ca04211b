"""Toolsets made of others."""

from hermes_tools.registry import Toolset

COMPOSITES = (
    Toolset(
        "debugging",
        "Find and mend faults: terminal, files and the web.",
        includes=("terminal", "file", "web"),
    ),
    Toolset(
        "coding",
        "Write programs: terminal, files, scripts, a to-do list.",
        includes=("terminal", "file", "code", "todo"),
    ),
    Toolset(
        "safe",
        "Nothing that changes the workspace: web, pictures, a to-do list.",
        includes=("web", "vision", "todo"),
    ),
    Toolset(
        "research",
        "Read on the web: search, browser, pictures, a to-do list.",
        includes=("web", "browser", "vision", "todo"),
    ),
)
