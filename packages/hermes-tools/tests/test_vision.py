"""vision_analyze: pictures from the workspace and the web, for the model to see."""

import base64
import json
from pathlib import Path

import pytest
from hermes_tools import call_tool
from hermes_tools.toolsets.web import WebOptions
from hermes_tools_calls import fail
from hermes_tools_site import running_site

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


async def test_a_picture_from_each_source(open_session, tmp_path: Path):
    (tmp_path / "a b.png").write_bytes(PNG)
    async with running_site() as site:
        session = open_session("vision", options=[WebOptions(allow_private=True)])
        data = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        for source in ("a b.png", f"file://{tmp_path}/a b.png", f"{site.url}/image.png", data):
            output = await call_tool("vision_analyze", {"image_url": source, "question": "What?"}, session)
            assert output.error is None
            result = json.loads(output.text)
            assert (result["media_type"], result["bytes"], result["question"]) == ("image/png", 58, "What?")
            assert output.parts[1] == {"type": "image_url", "image_url": {"url": data}}
            assert "base64" not in output.text or source == data


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("none.png", "not found"),
        ("text.png", "no PNG"),
        ("data:image/png;base64,***", "data URL"),
        ("data:image/png", "data URL"),
        ("large.png", "larger than 8 MiB"),
        ("http://10.0.0.1/x.png", "private address"),
        ("", "empty"),
    ],
)
async def test_what_is_no_picture(open_session, tmp_path: Path, source, part):
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "large.png").write_bytes(PNG + bytes(9 << 20))
    assert part in await fail(open_session("vision"), "vision_analyze", image_url=source)
