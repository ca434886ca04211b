"""Checks for people who write workspaces of their own."""

from hermes_tools.testing.workspace_checks import check_workspace

__all__ = ("check_workspace",)
