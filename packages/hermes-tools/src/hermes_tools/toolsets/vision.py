"""Looking at pictures."""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote_to_bytes

from hermes_tools.errors import ToolError
from hermes_tools.registry import Toolset
from hermes_tools.results import Content
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.file.missing import not_found

MAX_BYTES = 8 << 20
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture the model was given.

    Attributes:
        image: Where it came from.
        media_type: Its kind.
        bytes: Its size.
        question: What was asked about it.
    """

    image: str
    media_type: str
    bytes: int
    question: str


@tool(toolset="vision", deadline=60)
async def vision_analyze(
    session: ToolSession,
    image_url: Annotated[str, "A file of the workspace, or the address of a picture (http, https or data)."],
    question: Annotated[str, "What you want to know of it."] = "Describe the picture.",
) -> Content:
    """Look at a picture: it is added to the conversation for you to see. PNG, JPEG, GIF and WebP."""
    data = await _load(session, image_url.strip())
    kind = media_type(data)
    if kind is None:
        raise ToolError(f"{image_url[:200]} is no PNG, JPEG, GIF or WebP picture.")
    shown = image_url if len(image_url) <= 500 else f"{image_url[:100]}…"
    return Content(Picture(shown, kind, len(data), question), (data_url(data, kind),))


async def _load(session: ToolSession, source: str) -> bytes:
    if source.startswith("data:"):
        return _from_data_url(source)
    if source.startswith(("http://", "https://")):
        return await _download(session, source)
    path = await session.state(SessionShell).resolve(source.removeprefix("file://"))
    try:
        data = await session.workspace.read_bytes(path, limit=MAX_BYTES + 1)
    except FileNotFoundError:
        raise await not_found(session, path) from None
    if len(data) > MAX_BYTES:
        raise _too_large()
    return data


async def _download(session: ToolSession, url: str) -> bytes:
    from hermes_tools.toolsets.web import web_missing
    from hermes_tools.toolsets.web.fetch import Fetcher

    if lack := web_missing():
        raise ToolError(f"Pictures from the web cannot be had here: {lack}")
    page = await session.state(Fetcher).fetch(url, MAX_BYTES)
    if page.status >= 400:
        raise ToolError(f"The server answered with status {page.status}.")
    if page.truncated:
        raise _too_large()
    return page.data


def _from_data_url(url: str) -> bytes:
    head, comma, body = url.partition(",")
    try:
        data = base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except binascii.Error:
        comma = ""
        data = b""
    if not comma:
        raise ToolError("The data URL cannot be read: it must be data:image/png;base64, and base64 text.")
    if len(data) > MAX_BYTES:
        raise _too_large()
    return data


def _too_large() -> ToolError:
    return ToolError(f"The picture is larger than {MAX_BYTES >> 20} MiB; make it smaller first.")


def media_type(data: bytes) -> str | None:
    """The media type of a picture, from its first bytes, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), None)


def data_url(data: bytes, kind: str) -> str:
    """A picture as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


VISION = Toolset("vision", "Look at pictures.", (vision_analyze,))
