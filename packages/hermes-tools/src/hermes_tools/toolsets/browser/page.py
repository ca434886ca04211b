"""One session's pages: its context, what happens on them, and errors in the model's words."""

import asyncio
import contextlib
import posixpath
import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.toolsets.browser.host import BrowserHost
from hermes_tools.toolsets.browser.options import BrowserOptions
from hermes_tools.toolsets.browser.proxy import PublicProxy
from hermes_tools.toolsets.web.options import WebOptions

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Download, Locator, Page

MAX_MESSAGES = 200
MAX_DOWNLOAD = 64 << 20
SETTLE_SECONDS = 0.15
_REF = re.compile(r"^@?(?:ref=)?\[?((?:f\d+)*e\d+)\]?$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Browser:
    """The pages of one session, in a context of their own: cookies and storage are not shared.

    Attributes:
        options: The session's settings.
        messages: Console messages and script errors, the newest last.
    """

    def __init__(self, session: ToolSession) -> None:
        self._session = session
        self.options = session.option(BrowserOptions)
        self._host = self.options.host or BrowserHost(self.options)
        self._context: BrowserContext | None = None
        self._proxy: PublicProxy | None = None
        self._pages: list[Page] = []
        self._events: list[str] = []
        self._saving: set[asyncio.Task[None]] = set()
        self.messages: deque[dict[str, str]] = deque(maxlen=MAX_MESSAGES)

    async def page(self) -> "Page":
        """The page in front; an empty one at first, or after a crash."""
        if self._context is not None and self._pages:
            return self._pages[-1]
        browser = await self._host.browser()
        if self._context is None or self._context.browser is not browser:
            self._context = await browser.new_context(
                viewport={"width": self.options.width, "height": self.options.height},
                accept_downloads=True,
                service_workers="block",
                proxy=await self._proxy_settings(),
            )
            self._context.set_default_timeout(self.options.action_seconds * 1000)
            self._context.on("page", self._opened)
        await self._context.new_page()
        return self._pages[-1]

    async def _proxy_settings(self) -> Any:
        web = self._session.option(WebOptions)
        if web.allow_private:
            return None
        if self._proxy is None:
            self._proxy = PublicProxy(web)
            self._address = await self._proxy.start()
        return {"server": self._address, "bypass": "<-loopback>"}

    def _opened(self, page: "Page") -> None:
        if self._pages:
            self._events.append("A new page was opened; it is in front now.")
        self._pages.append(page)
        page.on("close", self._closed)
        page.on("crash", self._crashed)
        page.on("dialog", self._dialog)
        page.on("download", self._download)
        page.on("console", self._console)
        page.on(
            "pageerror", lambda error: self.messages.append({"type": "exception", "text": str(error)[:2_000]})
        )

    def _closed(self, page: "Page") -> None:
        if page in self._pages:
            self._pages.remove(page)

    def _crashed(self, page: "Page") -> None:
        self._events.append("The page crashed.")
        self._closed(page)

    def _console(self, message: "ConsoleMessage") -> None:
        self.messages.append({"type": message.type, "text": message.text[:2_000]})

    async def _dialog(self, dialog: "Dialog") -> None:
        # An open dialog stops the page, and with it every action, so it is answered at once.
        self._events.append(
            f"The page showed a {dialog.type} dialog, which was accepted: {dialog.message[:500]}"
        )
        with contextlib.suppress(Exception):
            await dialog.accept(dialog.default_value) if dialog.type == "prompt" else await dialog.accept()

    def _download(self, download: "Download") -> None:
        task = asyncio.create_task(self._save(download))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def _save(self, download: "Download") -> None:
        from playwright.async_api import Error

        name = posixpath.basename(download.suggested_filename.replace("\\", "/")) or "download"
        target = posixpath.join(self._session.workspace.workdir, "downloads", name)
        try:
            data = await asyncio.to_thread(_downloaded, Path(await download.path()))
            await self._session.workspace.write_bytes(target, data)
            self._events.append(f"A file was downloaded to {target}.")
        except (Error, OSError, ToolError) as error:
            self._events.append(f"The download of {name} failed: {error}")

    def problem(self, url: str) -> str | None:
        """Why the host of an address could not be connected to, or None."""
        return self._proxy.problems.get(urlsplit(url).hostname or "") if self._proxy is not None else None

    async def settle(self) -> None:
        """Give what an action started a moment, and wait for a page that it loads."""
        from playwright.async_api import Error

        await asyncio.sleep(SETTLE_SECONDS)
        if self._pages:
            with contextlib.suppress(Error):
                await self._pages[-1].wait_for_load_state(
                    "domcontentloaded", timeout=self.options.action_seconds * 1000
                )
        if self._saving:
            await asyncio.wait(self._saving, timeout=self.options.action_seconds)

    def take_events(self) -> list[str] | None:
        """What happened since this was last asked: dialogs, downloads, new pages."""
        events, self._events = self._events, []
        return events or None

    async def element(self, ref: str) -> "Locator":
        """The element of a reference from the newest snapshot.

        Raises:
            ToolError: There is none.
        """
        found = _REF.match(ref.strip())
        if found is None:
            raise ToolError(f"{ref!r} is no element reference. Take one such as e5 from browser_snapshot.")
        page = await self.page()
        locator = page.get_by_ref(found[1])
        if await locator.count() == 0:
            raise ToolError(f"There is no element {found[1]} on the page now. Take a new browser_snapshot.")
        return locator

    async def replace_page(self) -> None:
        """Close a page that does not answer, and go on with an empty one."""
        page = self._pages[-1] if self._pages else None
        if page is not None:
            self._closed(page)
            with contextlib.suppress(Exception):
                async with asyncio.timeout(self.options.action_seconds):
                    await page.close()
        await self.page()

    async def aclose(self) -> None:
        """Close the context; the browser too, unless it is shared."""
        for task in self._saving:
            task.cancel()
        if self._context is not None:
            with contextlib.suppress(Exception):
                await self._context.close()
        if self.options.host is None:
            await self._host.close()
        if self._proxy is not None:
            await self._proxy.close()


def _downloaded(path: Path) -> bytes:
    if path.stat().st_size > MAX_DOWNLOAD:
        raise ToolError(f"it is larger than {MAX_DOWNLOAD >> 20} MiB")
    return path.read_bytes()


@asynccontextmanager
async def explained(what: str) -> AsyncGenerator[None]:
    """Turn Playwright's errors into ones that a model can act on."""
    from playwright.async_api import Error

    try:
        yield
    except Error as error:
        text = _COLOURS.sub("", error.message)
        first = text.partition("\nCall log")[0].strip()
        log = text.partition("Call log:")[2].strip().splitlines()
        reason = next(
            (line.strip(" -") for line in reversed(log) if "intercepts" in line or "not " in line), ""
        )
        raise ToolError(f"{what} failed: {first[:500]}{f' ({reason[:300]})' if reason else ''}") from None
