"""One running browser."""

import asyncio
import contextlib
import os
from types import TracebackType
from typing import TYPE_CHECKING

from hermes_tools.errors import ToolError
from hermes_tools.toolsets.browser.options import BrowserOptions, find_browser

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

START_SECONDS = 80.0


class BrowserHost:
    """A Chromium that is started when first needed, and again when it has crashed.

    Share one between sessions to save memory and start-up: `options=[BrowserOptions(host=host)]`. An async context
    manager; whoever made it closes it.
    """

    def __init__(self, options: BrowserOptions | None = None) -> None:
        self._options = options or BrowserOptions()
        self._starting: asyncio.Task[Browser] | None = None
        self._playwright: Playwright | None = None

    async def browser(self) -> "Browser":
        """The running browser.

        Raises:
            ToolError: It cannot be started.
        """
        ended = self._starting is not None and self._starting.done()
        if ended and self._starting is not None and not await self._usable(self._starting):
            self._starting = None
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        # Shielded: a call that is cancelled must not leave a half-started browser behind.
        return await asyncio.shield(self._starting)

    @staticmethod
    async def _usable(starting: "asyncio.Task[Browser]") -> bool:
        return not starting.cancelled() and starting.exception() is None and starting.result().is_connected()

    async def _start(self) -> "Browser":
        from playwright.async_api import Error, async_playwright

        if self._playwright is None:
            self._playwright = await async_playwright().start()
        args = ["--disable-dev-shm-usage", *self._options.args]
        try:
            return await self._playwright.chromium.launch(
                executable_path=self._options.executable or find_browser(),
                # Chromium's own sandbox refuses to run as root.
                chromium_sandbox=os.geteuid() != 0,
                args=args,
                timeout=START_SECONDS * 1000,
            )
        except Error as error:
            raise ToolError(f"The browser could not be started: {error.message[:500]}") from None

    async def close(self) -> None:
        """End the browser. May be called twice."""
        if self._starting is not None:
            starting, self._starting = self._starting, None
            with contextlib.suppress(Exception):
                await (await starting).close()
        if self._playwright is not None:
            playwright, self._playwright = self._playwright, None
            await playwright.stop()

    async def __aenter__(self) -> "BrowserHost":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
