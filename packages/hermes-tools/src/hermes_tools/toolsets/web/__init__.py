"""The web toolset: search, and the main text of pages."""

from importlib.util import find_spec

from hermes_tools.registry import Toolset
from hermes_tools.toolsets.web.extract import web_extract
from hermes_tools.toolsets.web.options import WebOptions
from hermes_tools.toolsets.web.search import web_search

__all__ = ("WEB", "WebOptions")


def web_missing() -> str | None:
    """What is not installed for the web tools, or None."""
    absent = [name for name in ("aiohttp", "trafilatura", "pypdf") if find_spec(name) is None]
    return f'{", ".join(absent)} not installed: pip install "hermes-tools[web]"' if absent else None


WEB = Toolset("web", "Search the web and read pages.", (web_search, web_extract), missing=web_missing)
