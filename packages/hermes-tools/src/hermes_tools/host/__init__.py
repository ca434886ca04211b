"""This machine as a workspace, without any isolation: for using and testing the tools alone."""

from hermes_tools.host.workspace import HostWorkspace

__all__ = ("HostWorkspace",)
