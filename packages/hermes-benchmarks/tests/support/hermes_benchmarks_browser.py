"""A real Chromium for tests."""

from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = Path(__file__).parents[3] / "hermes-tools" / "tests" / "support" / "hermes_tools_chromium.py"
TIMEOUT = 100_000


@contextmanager
def page():
    """An empty page that remembers what went wrong on it, in `problems`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=TIMEOUT)
        try:
            found = browser.new_page()
            found.set_default_timeout(TIMEOUT)
            found.problems = []
            found.on("pageerror", lambda error: found.problems.append(str(error)))
            found.on("console", lambda m: found.problems.append(m.text) if m.type == "error" else None)
            found.on("request", lambda r: found.problems.append(r.url) if r.url.startswith("http") else None)
            yield found
        finally:
            browser.close()
