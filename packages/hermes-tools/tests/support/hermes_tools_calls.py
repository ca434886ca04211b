"""Calls a tool as a model would and returns what the model gets."""

import json
from typing import Any

from hermes_tools import ToolSession, handle_function_call


async def call(session: ToolSession, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The decoded result, whether it went well or not."""
    return json.loads(await handle_function_call(name, json.dumps(arguments), session))


async def succeed(session: ToolSession, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The decoded result of a call that must go well."""
    result = await call(session, name, **arguments)
    assert "error" not in result, result
    return result


async def fail(session: ToolSession, name: str, /, **arguments: Any) -> str:
    """The error of a call that must fail."""
    result = await call(session, name, **arguments)
    assert "error" in result, result
    return result["error"]
