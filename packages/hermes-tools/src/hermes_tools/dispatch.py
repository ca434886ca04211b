"""The one way a model's call reaches a tool."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hermes_tools.errors import ToolError
from hermes_tools.results import Content, JsonDict, ToolOutput, error_text, fit_result, result_text
from hermes_tools.session import ToolSession
from hermes_tools.tool import Tool


async def call_tool(
    name: str, arguments: str | Mapping[str, Any] | None, session: ToolSession, *, whole: bool = False
) -> ToolOutput:
    """Run one call of a model.

    A wrong name, wrong arguments, a tool that fails or takes too long: all are a `ToolOutput` with `error`. Only a
    cancellation, and what the workspace raises when it is gone, pass.

    Args:
        name: The tool's name.
        arguments: JSON text of an object, or the object.
        session: The rollout's tools and state.
        whole: Whether a result may be larger than the budget of one result.
    """
    started = time.perf_counter()
    details: JsonDict = {}
    try:
        tool = session.tool(name)
        args, kwargs = tool.parse(arguments)
        value = await _run(tool, args, kwargs, session)
        content = value if isinstance(value, Content) else Content(value)
        text = result_text(content.value)
        text = text if whole else await fit_result(session, name, text)
        parts = content.parts(text) if content.images else None
        return ToolOutput(text, None, parts, time.perf_counter() - started)
    except (Exception, SystemExit) as error:  # A library that exits must not end all rollouts.
        lost = session.failures.behind(error)
        if lost is not None:
            raise lost from None
        message = _message(name, error)
        details = error.details if isinstance(error, ToolError) else {}
    text = await fit_result(session, name, error_text(message, details))
    return ToolOutput(text, message, None, time.perf_counter() - started)


async def handle_function_call(
    name: str, arguments: str | Mapping[str, Any] | None, session: ToolSession
) -> str:
    """Run one call of a model and return the JSON text for it; see `call_tool`."""
    return (await call_tool(name, arguments, session)).text


async def _run(tool: Tool, args: tuple[Any, ...], kwargs: JsonDict, session: ToolSession) -> Any:
    async with _in_lane(tool, session):
        if tool.deadline is None:
            return await tool.run(session, args, kwargs)
        limit = asyncio.timeout(tool.deadline)
        try:
            async with limit:
                return await tool.run(session, args, kwargs)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ToolError(f"{tool.name} did not finish within {tool.deadline:g} seconds.") from None


@asynccontextmanager
async def _in_lane(tool: Tool, session: ToolSession) -> AsyncGenerator[None]:
    if tool.lane is None:
        yield
        return
    async with session.lane(tool.lane).enter(shared=tool.read_only):
        yield


def _message(name: str, error: BaseException) -> str:
    if isinstance(error, ToolError):
        return str(error)
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError):
        text = error.strerror or str(error)
        return f"{text}: {error.filename}" if error.filename else text
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be had"
    return f"{name} failed: {type(error).__name__}: {text}"
