"""A real Chromium for tests."""

import shutil
from contextlib import contextmanager

from playwright.sync_api import sync_playwright


@contextmanager
def page():
    """An empty page that remembers what went wrong on it, in `problems`."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            found = browser.new_page()
            found.problems = []
            found.on("pageerror", lambda error: found.problems.append(str(error)))
            found.on("console", lambda m: found.problems.append(m.text) if m.type == "error" else None)
            found.on("request", lambda r: found.problems.append(r.url) if r.url.startswith("http") else None)
            yield found
        finally:
            browser.close()
