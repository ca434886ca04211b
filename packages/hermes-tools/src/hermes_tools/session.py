"""One rollout's own state: its tools, shell, processes, browser, to-do list and budgets."""

import asyncio
import contextvars
import copy
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

from hermes_tools.errors import UnknownToolError, nearest
from hermes_tools.guard import Failures, GuardedWorkspace
from hermes_tools.lanes import Lane
from hermes_tools.registry import ToolRegistry, default_registry
from hermes_tools.results import JsonDict, ResultBudget
from hermes_tools.tool import Tool
from hermes_tools.workspace import Workspace

T = TypeVar("T")
CLOSE_DEADLINE = 30.0
_log = logging.getLogger(__name__)


class Slots(Protocol):
    """What bounds how many blocking functions run at once: an `asyncio.Semaphore`, or one of its kind."""

    async def acquire(self) -> Any:
        """Wait for a place and take it."""
        ...

    def release(self) -> None:
        """Give the place back."""
        ...


class ToolSession:
    """The state of one rollout. An async context manager; nothing it started outlives it.

    A model's background processes end with it too: close it after whatever still needs them, such as a verifier.

    Attributes:
        registry: Where the tools come from.
        workspace: The machine the tools act on.
        terminal_timeout: Seconds a foreground command may take unless its call says otherwise.
        budget: How many characters of results the model is shown.
    """

    def __init__(
        self,
        registry: ToolRegistry | None,
        tools: Sequence[str | Tool] | None,
        workspace: Workspace,
        *,
        terminal_timeout: float = 120.0,
        budget: ResultBudget | None = None,
        max_blocking: "int | Slots" = 4,
        options: Sequence[object] = (),
    ) -> None:
        """Make a session; nothing is started until a tool needs it.

        Args:
            registry: Where to look names up; None: the built-in and installed toolsets.
            tools: Names of toolsets or tools, or tools; None: every toolset that can work here.
            workspace: The machine the tools act on.
            terminal_timeout: Seconds a foreground command may take unless its call says otherwise.
            budget: How many characters of results the model is shown.
            max_blocking: Most functions that are not async running at once, each in a thread; or a semaphore, or
                anything of its kind, that several sessions share.
            options: Settings of toolsets, such as `WebOptions(allow_private=True)`, one of a kind.
        """
        self.registry = registry if registry is not None else default_registry()
        self._tools = {tool.name: tool for tool in self.registry.resolve(tools)}
        self.failures = Failures()
        self.workspace: Workspace = GuardedWorkspace(workspace, self.failures)
        self.terminal_timeout = terminal_timeout
        self.budget = budget or ResultBudget()
        self._blocking: Slots | None = None if isinstance(max_blocking, int) else max_blocking
        self._max_blocking = max_blocking if isinstance(max_blocking, int) else 0
        self._options = {type(option): option for option in options}
        self._state: dict[type[Any], Any] = {}
        self._lanes: dict[str, Lane] = {}
        self._closed = False

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The session's tools by name."""
        return self._tools

    @property
    def tool_names(self) -> frozenset[str]:
        """The names the model may call."""
        return frozenset(self._tools)

    @property
    def definitions(self) -> list[JsonDict]:
        """What the model is shown: OpenAI tool dictionaries."""
        return [tool.definition() for tool in self._tools.values()]

    def tool(self, name: str) -> Tool:
        """The tool of this name.

        Raises:
            UnknownToolError: The session has none; it names the nearest.
        """
        if name not in self._tools:
            raise UnknownToolError(f"There is no tool {name!r}. {nearest(name, self._tools)}")
        return self._tools[name]

    def option(self, kind: type[T]) -> T:
        """The settings of this kind the session was made with, or the defaults."""
        return cast(T, self._options[kind]) if kind in self._options else kind()

    def state(self, kind: "Callable[[ToolSession], T]") -> T:
        """This session's one object of a class, made as `kind(session)` when first asked for.

        A tool keeps its state here. An `async def aclose()` it has is awaited when the session closes.
        """
        key = cast("type[Any]", kind)
        if key not in self._state:
            if self._closed:
                raise RuntimeError("This tool session is closed.")
            self._state[key] = kind(self)
        return self._state[key]

    def widened(
        self, tools: Sequence[str | Tool] | None = None, *, budget: ResultBudget | None = None
    ) -> "ToolSession":
        """This session with other tools: shell, processes, browser and lanes are the same. Closing one closes both.

        Args:
            tools: As for a new session; None: every toolset that can work here.
            budget: Another budget.
        """
        other = copy.copy(self)
        other._tools = {tool.name: tool for tool in self.registry.resolve(tools)}
        other.budget = budget or self.budget
        return other

    def lane(self, name: str) -> Lane:
        """The lane of this name; see `Tool.lane`."""
        return self._lanes.setdefault(name, Lane())

    async def run_blocking(self, function: Callable[[], T]) -> T:
        """Run a function that is not async in a thread of its own, at most `max_blocking` at once.

        A thread cannot be stopped: when the wait is cancelled the function runs on and keeps its place.
        """
        if self._blocking is None:
            self._blocking = asyncio.Semaphore(self._max_blocking)
        await self._blocking.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        semaphore = self._blocking

        def settle(value: T | None, error: BaseException | None) -> None:
            semaphore.release()
            if done.cancelled():
                return
            if error is None:
                done.set_result(cast(T, value))
            else:
                done.set_exception(error)

        def work() -> None:
            value, failure = None, None
            try:
                value = context.run(function)
            except StopIteration as error:
                failure = RuntimeError(f"the function raised StopIteration: {error}")
            except BaseException as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=work, name="hermes-tool", daemon=True).start()
        return await done

    async def __aenter__(self) -> "ToolSession":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all the session started. May be called twice; never fails for a workspace that is gone."""
        self._closed = True
        while self._state:
            _, item = self._state.popitem()
            closer = getattr(item, "aclose", None)
            if closer is None:
                continue
            try:
                async with asyncio.timeout(CLOSE_DEADLINE):
                    await closer()
            except Exception as error:
                # That a workspace which is gone cannot be tidied up is no news.
                level = logging.DEBUG if self.failures.behind(error) else logging.WARNING
                _log.log(level, "closing %s: %s: %s", type(item).__name__, type(error).__name__, error)
