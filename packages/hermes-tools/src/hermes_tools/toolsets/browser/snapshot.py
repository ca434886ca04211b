"""Pages as text: accessibility trees with references of elements."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes_tools.toolsets.browser.page import Browser, explained

if TYPE_CHECKING:
    from playwright.async_api import Page

MAX_COMPACT = 20_000
_ROLE = re.compile(r"^\s*- (?:'|\")?([\w/]+)")
_BOX = re.compile(r"\[ref=(e\d+)\].*\[box=(-?[\d.]+),(-?[\d.]+),([\d.]+),([\d.]+)\]")
_INTERACTIVE = frozenset(
    [
        "alert",
        "alertdialog",
        "button",
        "checkbox",
        "combobox",
        "dialog",
        "gridcell",
        "heading",
        "iframe",
        "link",
        "listbox",
        "menu",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "option",
        "progressbar",
        "radio",
        "scrollbar",
        "searchbox",
        "slider",
        "spinbutton",
        "switch",
        "tab",
        "textbox",
        "tree",
        "treeitem",
    ]
)
_MARK = """boxes => { const layer = document.createElement('div'); layer.id = 'hermes-marks';
  for (const [ref, x, y, w, h] of boxes) { const box = document.createElement('div');
    box.style.cssText = `position:fixed;left:${x}px;top:${y}px;width:${w}px;height:${h}px;border:2px solid red;` +
      'box-sizing:border-box;z-index:2147483647;pointer-events:none';
    const label = document.createElement('span'); label.textContent = ref;
    label.style.cssText = 'position:absolute;left:0;top:0;background:red;color:white;font:bold 11px monospace;padding:0 2px';
    box.append(label); layer.append(box); }
  document.documentElement.append(layer); }"""
_UNMARK = "() => document.getElementById('hermes-marks')?.remove()"


async def take_snapshot(browser: Browser, *, full: bool) -> str:
    """The page in front as text.

    Args:
        browser: The session's browser.
        full: Whether to give all of it, or interactive elements and headings only.
    """
    page = await browser.page()
    async with explained("The snapshot"):
        tree = await page.aria_snapshot(mode="ai")
    if full:
        return tree
    text = compact(tree)
    if len(text) > MAX_COMPACT:
        text = f"{text[:MAX_COMPACT].rpartition(chr(10))[0]}\n[... {len(text) - MAX_COMPACT:,} characters more; scroll, or full=true]"
    return text


def compact(tree: str) -> str:
    """The lines of a tree that show something to act on, or a heading."""
    lines: list[str] = []
    for line in tree.splitlines():
        found = _ROLE.match(line)
        if found is not None and (found[1] in _INTERACTIVE or "[cursor=pointer]" in line):
            lines.append(line)
    return "\n".join(lines)


@asynccontextmanager
async def annotate_page(page: "Page") -> AsyncGenerator[None]:
    """Mark the interactive elements of a page with their references, for the time of a picture."""
    tree = await page.aria_snapshot(mode="ai", boxes=True)
    boxes = [
        [found[1], *map(float, found.group(2, 3, 4, 5))]
        for line in compact(tree).splitlines()
        if (found := _BOX.search(line)) is not None
    ]
    await page.evaluate(_MARK, boxes)
    try:
        yield
    finally:
        await page.evaluate(_UNMARK)
