"""The browser toolset: a real Chromium, driven through Playwright.

The browser runs on the machine of this process, not in the sandbox: pages are fetched from here, and what runs on
`localhost` inside the sandbox cannot be reached. Private addresses are refused as for `web_extract`. Files the browser
downloads are put into the workspace.
"""

from importlib.util import find_spec

from hermes_tools.registry import Toolset
from hermes_tools.toolsets.browser.act import (
    browser_back,
    browser_click,
    browser_press,
    browser_scroll,
    browser_type,
)
from hermes_tools.toolsets.browser.look import (
    browser_console,
    browser_get_images,
    browser_navigate,
    browser_snapshot,
    browser_vision,
)
from hermes_tools.toolsets.browser.options import BrowserOptions, find_browser

__all__ = ("BROWSER", "BrowserOptions")


def _missing() -> str | None:
    if find_spec("playwright") is None:
        return 'playwright not installed: pip install "hermes-tools[browser]"'
    if find_browser() is None:
        return "no Chromium or Chrome is installed: install your system's chromium, or run `playwright install chromium`"
    return None


BROWSER = Toolset(
    "browser",
    "Use web pages in a browser.",
    (
        browser_navigate,
        browser_snapshot,
        browser_click,
        browser_type,
        browser_scroll,
        browser_back,
        browser_press,
        browser_get_images,
        browser_console,
        browser_vision,
    ),
    missing=_missing,
)
