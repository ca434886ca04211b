"""The built-in toolsets."""

from hermes_tools.toolsets.browser import BROWSER
from hermes_tools.toolsets.code import CODE
from hermes_tools.toolsets.composites import COMPOSITES
from hermes_tools.toolsets.file import FILE
from hermes_tools.toolsets.terminal import TERMINAL
from hermes_tools.toolsets.todo import TODO
from hermes_tools.toolsets.vision import VISION
from hermes_tools.toolsets.web import WEB

__all__ = ("BUILT_IN",)

BUILT_IN = (TERMINAL, FILE, WEB, BROWSER, VISION, TODO, CODE, *COMPOSITES)
