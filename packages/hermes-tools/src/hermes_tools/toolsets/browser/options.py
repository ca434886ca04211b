"""Settings of the browser tools."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_tools.toolsets.browser.host import BrowserHost

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_BUNDLED = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium")


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """Settings of the browser tools; give them to the session: `options=[BrowserOptions(…)]`.

    Which addresses may be visited is said by `WebOptions`.

    Attributes:
        executable: The browser; None: an installed Chromium or Chrome, else the one Playwright installed.
        host: A browser to share between sessions, each with a context of its own; None: one for this session alone.
        action_seconds: Most seconds for one action.
        load_seconds: Most seconds for a page to load.
        width: Width of the window in pixels.
        height: Height of the window in pixels.
        args: Further arguments for the browser.
    """

    executable: str | None = None
    host: "BrowserHost | None" = None
    action_seconds: float = 10.0
    load_seconds: float = 30.0
    width: int = 1280
    height: int = 800
    args: tuple[str, ...] = field(default=())


def find_browser() -> str | None:
    """The path of a usable browser on this machine, or None."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    default = Path.home() / ".cache" / "ms-playwright"
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or default)
    found = sorted(path for pattern in _BUNDLED for path in folder.glob(pattern))
    return str(found[-1]) if found else None
