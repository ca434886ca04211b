"""Browser tools that open and look at pages."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

from hermes_tools.errors import ToolError
from hermes_tools.results import Content, JsonDict, ResultStore
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool
from hermes_tools.toolsets.browser.page import Browser, explained
from hermes_tools.toolsets.browser.proxy import PROXY_HEADER
from hermes_tools.toolsets.browser.snapshot import annotate_page, take_snapshot
from hermes_tools.toolsets.vision import data_url

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

DEADLINE = 90.0
NETWORK_CHANGES = 10
EVALUATE_SECONDS = 10.0
_IMAGES = """() => [...document.images].slice(0, 200).map(i => ({src: i.currentSrc || i.src, alt: i.alt,
  width: i.naturalWidth, height: i.naturalHeight})).filter(i => i.src)"""


@dataclass(frozen=True, slots=True)
class PageResult:
    """A page as it is now.

    Attributes:
        success: True; what fails is an error.
        url: Its address.
        title: Its title.
        snapshot: Its accessibility tree, with references of elements as `[ref=e5]`.
        status: HTTP status, after navigating.
        events: What happened besides: dialogs, downloads, new pages.
    """

    success: bool
    url: str
    title: str
    snapshot: str | None = None
    status: int | None = None
    events: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ImagesResult:
    """Pictures on a page.

    Attributes:
        success: True.
        images: src, alt, width and height of each.
    """

    success: bool
    images: list[JsonDict]


@dataclass(frozen=True, slots=True)
class ConsoleResult:
    """The console of the browser.

    Attributes:
        success: True.
        messages: type and text of each, the newest last.
        result: The value of the expression.
    """

    success: bool
    messages: list[dict[str, str]]
    result: Any = None


async def page_result(
    browser: Browser, *, snapshot: str | None = None, status: int | None = None
) -> PageResult:
    """What the model is told of the page in front."""
    page = await browser.page()
    async with explained("Reading the page"):
        title = await page.title()
    return PageResult(True, page.url, title, snapshot, status, browser.take_events())


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_navigate(
    session: ToolSession, url: Annotated[str, "The address, http or https."]
) -> PageResult:
    """Open a page in the browser. Returns its interactive elements with references for the other browser tools."""
    address = url.strip() if "://" in url or url.startswith("about:") else f"https://{url.strip()}"
    if urlsplit(address).scheme not in ("http", "https") and address != "about:blank":
        raise ToolError(f"{url!r} cannot be opened: the address must begin with http:// or https://.")
    browser = session.state(Browser)
    page = await browser.page()
    seconds = browser.options.load_seconds
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLate

    try:
        response = await _open(page, address, seconds)
    except TooLate:
        raise ToolError(f"{address} did not load within {seconds:g} seconds.") from None
    except Error as error:
        # A download is no page, and playwright calls it an aborted navigation.
        if "Download is starting" not in error.message and "ERR_ABORTED" not in error.message:
            reason = browser.problem(address) or error.message.partition("\n")[0].partition(" at ")[0][:300]
            raise ToolError(f"{address} could not be opened: {reason}") from None
        response = None
    await browser.settle()
    if response is not None and PROXY_HEADER in response.headers:
        raise ToolError(f"{response.url} could not be opened: {browser.problem(response.url)}")
    snapshot = await take_snapshot(browser, full=False)
    return await page_result(browser, snapshot=snapshot, status=response.status if response else None)


async def _open(page: "Page", address: str, seconds: float) -> "Response | None":
    """Load a page; again where Chromium gave up because a network interface came or went, as with any container."""
    from playwright.async_api import Error

    for _ in range(NETWORK_CHANGES):
        try:
            return await page.goto(address, wait_until="domcontentloaded", timeout=seconds * 1000)
        except Error as error:
            if "ERR_NETWORK_CHANGED" not in error.message:
                raise
    return await page.goto(address, wait_until="domcontentloaded", timeout=seconds * 1000)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_snapshot(
    session: ToolSession,
    full: Annotated[bool, "True: the whole content. False: interactive elements and headings."] = False,
) -> PageResult:
    """See the page as text: its accessibility tree, with references of elements such as [ref=e5]."""
    browser = session.state(Browser)
    return await page_result(browser, snapshot=await take_snapshot(browser, full=full))


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_get_images(session: ToolSession) -> ImagesResult:
    """List the pictures on the page with their addresses and descriptions."""
    page = await session.state(Browser).page()
    async with explained("Listing pictures"):
        found = cast("list[JsonDict]", await page.evaluate(_IMAGES))
    return ImagesResult(True, [{**item, "src": str(item["src"])[:500]} for item in found])


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_console(
    session: ToolSession,
    clear: Annotated[bool, "Whether to forget the messages after showing them."] = False,
    expression: Annotated[str | None, "JavaScript to evaluate in the page; its value is returned."] = None,
) -> ConsoleResult:
    """Read the page's console messages and script errors, or evaluate JavaScript in it."""
    browser = session.state(Browser)
    page = await browser.page()
    value: Any = None
    if expression is not None:
        try:
            async with explained("The expression"), asyncio.timeout(EVALUATE_SECONDS):
                value = await page.evaluate(expression)
        except TimeoutError:
            await browser.replace_page()
            raise ToolError(
                f"The expression did not end within {EVALUATE_SECONDS:g} seconds; the page was closed."
            ) from None
    messages = list(browser.messages)
    if clear:
        browser.messages.clear()
    return ConsoleResult(True, messages, value)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_vision(
    session: ToolSession,
    question: Annotated[str, "What you want to know of the page's looks."] = "What does the page look like?",
    annotate: Annotated[bool, "Whether to mark interactive elements with their references."] = False,
) -> Content:
    """Take a picture of the visible part of the page: it is added to the conversation for you to see."""
    browser = session.state(Browser)
    page = await browser.page()
    async with explained("The picture"):
        if annotate:
            async with annotate_page(page):
                data = await page.screenshot(type="png")
        else:
            data = await page.screenshot(type="png")
    path = await session.state(ResultStore).keep(data, ".png")
    value = {"success": True, "url": page.url, "question": question, "screenshot_path": path}
    return Content(value, (data_url(data, "image/png"),))
