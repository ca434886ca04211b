"""A tool: a name, a schema the model is shown, and the function that does the work."""

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

from hermes_tools.errors import ArgumentsError, ToolDefinitionError, nearest
from hermes_tools.results import JsonDict

if TYPE_CHECKING:
    from hermes_tools.session import ToolSession
    from hermes_tools.signature import Arguments

Handler = Callable[..., Any]
DEFAULT_DEADLINE = 300.0
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Tool:
    """A tool. Make one with `@tool` from a typed function, or with `Tool.from_schema`.

    Attributes:
        name: What the model calls it by: letters, digits, `_` and `-`.
        toolset: The toolset it belongs to.
        handler: The function, async or not; one that is not runs in a thread of its own.
        deadline: Seconds a call may take, or None where the tool sees to that itself.
        lane: Calls of one lane that change something run alone, in the order they were made; None: no order.
        read_only: Whether a call changes nothing, so that it may run beside others of its lane.
        ignored: Parameters that have no meaning here and are not shown, but taken from models that were trained on them.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        arguments: "Callable[[], Arguments]",
        *,
        toolset: str = "custom",
        deadline: float | None = DEFAULT_DEADLINE,
        lane: str | None = None,
        read_only: bool = False,
        ignored: Collection[str] = (),
    ) -> None:
        if not name or len(name) > 64 or not _NAME_CHARACTERS.issuperset(name):
            raise ToolDefinitionError(
                f"{name!r} is no tool name: take 1 to 64 letters, digits, underscores or hyphens."
            )
        self.name = name
        self.toolset = toolset
        self.handler = handler
        self.deadline = deadline
        self.lane = lane
        self.read_only = read_only
        self.ignored = frozenset(ignored)
        self._make_arguments = arguments
        self._async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - the method itself is inspected, not callability
        )

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        handler: "Callable[[ToolSession, JsonDict], Any]",
        **options: Any,
    ) -> "Tool":
        """A tool from a plain JSON Schema.

        Args:
            name: Its name.
            description: What the model is told of it.
            parameters: JSON Schema of an object; arguments are coerced to it and checked against it.
            handler: Called with the session and the arguments, a dictionary; async or not.
            options: `toolset`, `deadline`, `lane`, `read_only` and `ignored` as for `Tool`.
        """

        def arguments() -> "Arguments":
            from hermes_tools.signature import SchemaArguments

            return SchemaArguments(description, dict(parameters))

        return cls(name, handler, arguments, **options)

    @cached_property
    def _arguments(self) -> "Arguments":
        # Built on first use: importing the tools then costs neither pydantic nor the schemas.
        return self._make_arguments()

    @property
    def description(self) -> str:
        """What the model is told of the tool."""
        return self._arguments.description

    @property
    def parameters(self) -> JsonDict:
        """JSON Schema of the arguments."""
        return self._arguments.schema

    def definition(self, *, strict: bool = False) -> JsonDict:
        """The OpenAI tool dictionary.

        Args:
            strict: The variant for strict mode: every parameter required, those with a default nullable, no
                further ones allowed. A null argument then stands for the default. A tool whose parameters strict mode
                cannot express, such as an object of any keys, stays without.
        """
        from hermes_tools.signature import is_closed, strict_schema

        function: JsonDict = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        if strict and is_closed(self.parameters):
            function |= {"parameters": strict_schema(self.parameters), "strict": True}
        return {"type": "function", "function": function}

    def parse(self, arguments: str | Mapping[str, Any] | None) -> tuple[tuple[Any, ...], JsonDict]:
        """Check and coerce a call's arguments.

        Args:
            arguments: JSON text of an object, or the object.

        Returns:
            Positional and keyword arguments of the handler, the session left out.

        Raises:
            ArgumentsError: It says what does not fit and what would.
        """
        values = load_arguments(arguments)
        if self.ignored:
            values = {name: value for name, value in values.items() if name not in self.ignored}
        return self._arguments.parse(self.name, values)

    async def run(self, session: "ToolSession", args: tuple[Any, ...], kwargs: JsonDict) -> Any:
        """Call the handler with what `parse` returned."""
        if name := self._arguments.session_parameter:
            kwargs = {name: session, **kwargs}
        elif self._arguments.session_first:
            args = (session, *args)
        if self._async:
            return await self.handler(*args, **kwargs)
        result = await session.run_blocking(lambda: self.handler(*args, **kwargs))
        return await result if inspect.isawaitable(result) else result

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, toolset={self.toolset!r})"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    toolset: str = "custom",
    description: str | None = None,
    deadline: float | None = DEFAULT_DEADLINE,
    lane: str | None = None,
    read_only: bool = False,
    ignored: Collection[str] = (),
) -> Callable[[Callable[..., Awaitable[Any]] | Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    toolset: str = "custom",
    description: str | None = None,
    deadline: float | None = DEFAULT_DEADLINE,
    lane: str | None = None,
    read_only: bool = False,
    ignored: Collection[str] = (),
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function; nothing is registered.

    Every parameter needs an annotation; `Annotated[str, "…"]` or the docstring's `Args:` section describe it.
    A parameter annotated `ToolSession` gets the session and is not shown to the model.

    Args:
        function: The function, when the decorator is used without brackets.
        name: The tool's name; by default the function's.
        toolset: The toolset it belongs to.
        description: What the model is told; by default the docstring up to its `Args:`.
        deadline: Seconds a call may take; None where the tool sees to that itself.
        lane: See `Tool`.
        read_only: See `Tool`.
        ignored: See `Tool`.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        if not inspect.isroutine(function):
            raise ToolDefinitionError(f"{function!r} is no function: write one around it.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ToolDefinitionError(f"{function.__qualname__} must return its result, not yield it.")
        # Types of a function made inside another one are only found through the caller's names.
        names = _local_names(function)

        def arguments() -> "Arguments":
            from hermes_tools.signature import FunctionArguments

            return FunctionArguments(function, description, names)

        return Tool(
            name or function.__name__,
            function,
            arguments,
            toolset=toolset,
            deadline=deadline,
            lane=lane,
            read_only=read_only,
            ignored=ignored,
        )

    return decorate if function is None else decorate(function)


def _local_names(function: Callable[..., Any]) -> JsonDict:
    if "<locals>" not in function.__qualname__:
        return {}
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return dict(frame.f_locals) if frame is not None else {}


def load_arguments(arguments: str | Mapping[str, Any] | None) -> JsonDict:
    """Arguments as a dictionary, from JSON text (also encoded twice) or as they are.

    Raises:
        ArgumentsError: They are no JSON object.
    """
    value: Any = arguments
    for _ in range(2):
        if not isinstance(value, str):
            break
        text = value
        try:
            value = json.loads(text) if text.strip() else {}
            if "\\ud" in text or "\\uD" in text:
                json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ArgumentsError(
                "The arguments contain half of a surrogate pair (\\uD800 to \\uDFFF): write the character itself."
            ) from None
        except (ValueError, RecursionError) as error:
            raise ArgumentsError(
                f"The arguments are not valid JSON: {error}. Send one JSON object."
            ) from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise ArgumentsError(f"The arguments must be one JSON object, such as {{}}, not a {kind}.")
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def unknown_argument(name: str, known: Mapping[str, Any]) -> str:
    """The sentence that refuses an argument the tool does not have."""
    return f"there is no parameter {name!r}. {nearest(name, known)}".removesuffix(".")
