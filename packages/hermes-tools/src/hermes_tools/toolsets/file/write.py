"""The `write_file` tool."""

from dataclasses import dataclass
from typing import Annotated

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool


@dataclass(frozen=True, slots=True)
class WriteFileResult:
    """A file that was written.

    Attributes:
        path: Its absolute path.
        bytes_written: Its size in bytes.
    """

    path: str
    bytes_written: int


@tool(toolset="file", lane="workspace", deadline=120, ignored=("cross_profile",))
async def write_file(
    session: ToolSession,
    path: Annotated[str, "The file: absolute, or relative to the shell's folder; ~ is the home folder."],
    content: Annotated[str, "The whole new content."],
) -> WriteFileResult:
    """Write a text file, replacing what was there. Missing folders are made."""
    target = await session.state(SessionShell).resolve(path)
    data = content.encode("utf-8")
    try:
        await session.workspace.write_bytes(target, data)
    except IsADirectoryError:
        raise ToolError(f"{target} is a folder; give the path of a file.") from None
    except (FileExistsError, NotADirectoryError):
        raise ToolError(f"A part of {target} is a file where a folder is needed.") from None
    return WriteFileResult(target, len(data))
