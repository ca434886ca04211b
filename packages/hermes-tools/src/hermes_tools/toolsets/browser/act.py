"""Browser tools that do something on a page."""

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool
from hermes_tools.toolsets.browser.look import DEADLINE, PageResult, page_result
from hermes_tools.toolsets.browser.page import Browser, explained

_SCROLL = """down => { window.scrollBy(0, (down ? 1 : -1) * window.innerHeight * 0.8);
  return [Math.round(window.scrollY), Math.max(0, document.documentElement.scrollHeight - window.innerHeight)]; }"""
Ref = Annotated[str, "The element's reference from the newest snapshot, such as e5."]


@dataclass(frozen=True, slots=True)
class ScrollResult:
    """Where a page is scrolled to.

    Attributes:
        success: True.
        position: Pixels above the visible part.
        last_position: The position at the end of the page.
    """

    success: bool
    position: int
    last_position: int


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_click(session: ToolSession, ref: Ref) -> PageResult:
    """Click an element. Take a new snapshot afterwards to see what changed."""
    browser = session.state(Browser)
    element = await browser.element(ref)
    async with explained(f"Clicking {ref}"):
        await element.click()
    await browser.settle()
    return await page_result(browser)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_type(
    session: ToolSession,
    ref: Ref,
    text: Annotated[str, "The text; it replaces what is there. For a list, the choice."],
) -> PageResult:
    """Type into a text field, or choose from a list. Press Enter with browser_press where that is needed."""
    browser = session.state(Browser)
    element = await browser.element(ref)
    async with explained(f"Typing into {ref}"):
        if await element.evaluate("e => e.tagName === 'SELECT'"):
            await element.select_option(label=text)
        else:
            await element.fill(text)
    return await page_result(browser)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_scroll(
    session: ToolSession, direction: Annotated[Literal["up", "down"], "Which way."]
) -> ScrollResult:
    """Scroll the page by most of a window's height."""
    page = await session.state(Browser).page()
    async with explained("Scrolling"):
        position, last = cast("list[int]", await page.evaluate(_SCROLL, direction == "down"))
    return ScrollResult(True, position, last)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_back(session: ToolSession) -> PageResult:
    """Go back to the page before."""
    browser = session.state(Browser)
    page = await browser.page()
    before = page.url
    async with explained("Going back"):
        answer = await page.go_back(
            wait_until="domcontentloaded", timeout=browser.options.load_seconds * 1000
        )
    if answer is None and page.url == before:
        raise ToolError("There is no page to go back to.")
    await browser.settle()
    return await page_result(browser)


@tool(toolset="browser", lane="browser", deadline=DEADLINE)
async def browser_press(
    session: ToolSession, key: Annotated[str, "A key, such as Enter, Tab, Escape, ArrowDown or Control+A."]
) -> PageResult:
    """Press a key in the element that has the focus."""
    browser = session.state(Browser)
    page = await browser.page()
    async with explained(f"Pressing {key}"):
        await page.keyboard.press(key)
    await browser.settle()
    return await page_result(browser)
