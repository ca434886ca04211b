"""From what was fetched to text a model can read."""

import asyncio
import json
import sys
from dataclasses import dataclass

from hermes_tools.errors import ToolError
from hermes_tools.toolsets.web.fetch import Page

HTML_SECONDS = 40.0
PDF_SECONDS = 60.0
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = (
    "application/json",
    "application/xml",
    "application/javascript",
    "application/yaml",
    "application/x-yaml",
)


@dataclass(frozen=True, slots=True)
class Readable:
    """The text of a page.

    Attributes:
        title: Its title, or nothing.
        text: Its main text, as Markdown where it was HTML.
    """

    title: str
    text: str


async def readable(page: Page) -> Readable:
    """The main text of a page.

    Raises:
        ToolError: It has none, or is of a kind that cannot be read.
    """
    kind = page.media_type
    if kind == "application/pdf" or page.data.startswith(b"%PDF-"):
        if page.truncated:
            raise ToolError(f"The PDF is larger than {len(page.data):,} bytes.")
        return await _pdf(page.data)
    if kind in _HTML or (not kind and page.data.lstrip()[:1] == b"<"):
        return await _html(page)
    if kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml")) or not kind:
        if b"\0" in page.data[:1024]:
            raise ToolError("The page is binary data.")
        return Readable("", _decoded(page))
    hint = " Look at it with vision_analyze." if kind.startswith("image/") else ""
    raise ToolError(f"The page is of type {kind}, which has no text.{hint}")


def _decoded(page: Page) -> str:
    try:
        return page.data.decode(page.charset or "utf-8", "replace")
    except (LookupError, UnicodeError):  # No text encoding, or one that cannot pass over errors.
        return page.data.decode("utf-8", "replace")


async def _html(page: Page) -> Readable:
    known = page.charset is not None
    data = _decoded(page).encode("utf-8", "replace") if known else page.data
    head = json.dumps({"url": page.url, "known": known}).encode()
    found = await _in_process("html", "page", head + b"\n" + data, HTML_SECONDS)
    if not found.text.strip():
        raise ToolError(
            "The page has no text; it may need a browser. Try browser_navigate where you have it."
        )
    return found


async def _pdf(data: bytes) -> Readable:
    found = await _in_process("pdf", "PDF", data, PDF_SECONDS)
    if not found.text.strip():
        raise ToolError("The PDF has no text; its pages may be pictures.")
    return found


async def _in_process(program: str, what: str, data: bytes, seconds: float) -> Readable:
    # In a process of its own, with limits: a page can make any reader run for ever, and threads cannot be stopped.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        f"hermes_tools.toolsets.web.{program}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(data)
    except TimeoutError:
        raise ToolError(f"The {what} could not be read within {seconds:g} seconds.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ToolError(f"The {what} could not be read: it is broken, encrypted or too large.")
    found = json.loads(output)
    return Readable(found["title"], found["text"])
