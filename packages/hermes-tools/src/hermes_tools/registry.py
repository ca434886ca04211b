"""Toolsets by name, and which tools a list of names stands for.

A registry is immutable: `with_tools` and `with_toolset` return a new one. Other distributions add toolsets by
an entry point in the group `hermes_tools.toolsets` that names a `Toolset`, or a list of them.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, cast

from hermes_tools.errors import ToolDefinitionError, ToolsetUnavailableError, UnknownToolsetError, nearest
from hermes_tools.results import JsonDict
from hermes_tools.tool import Tool

ENTRY_POINT_GROUP = "hermes_tools.toolsets"


def _always() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools that are offered together.

    Attributes:
        name: What it is asked for by.
        description: One line on what it is for.
        tools: Its own tools.
        includes: Names of toolsets it consists of besides.
        missing: Says what it lacks to work on this machine, or None when it can.
    """

    name: str
    description: str = ""
    tools: tuple[Tool, ...] = ()
    includes: tuple[str, ...] = ()
    missing: Callable[[], str | None] = _always


class ToolRegistry:
    """An immutable set of toolsets."""

    def __init__(self, toolsets: Iterable[Toolset] = ()) -> None:
        self._toolsets: dict[str, Toolset] = {}
        self._tools: dict[str, Tool] = {}
        for toolset in toolsets:
            self._add(toolset)
        for toolset in self._toolsets.values():
            for name in toolset.includes:
                if name not in self._toolsets:
                    raise UnknownToolsetError(
                        f"Toolset {toolset.name!r} includes {name!r}, which is unknown. {nearest(name, self._toolsets)}"
                    )

    def _add(self, toolset: Toolset) -> None:
        if toolset.name in self._toolsets:
            raise ToolDefinitionError(f"There are two toolsets named {toolset.name!r}.")
        self._toolsets[toolset.name] = toolset
        for tool in toolset.tools:
            if self._tools.setdefault(tool.name, tool) is not tool:
                other = self._tools[tool.name].toolset
                raise ToolDefinitionError(
                    f"There are two tools named {tool.name!r}, in {other!r} and {toolset.name!r}."
                )

    @property
    def toolsets(self) -> Mapping[str, Toolset]:
        """All toolsets by name."""
        return MappingProxyType(self._toolsets)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All tools by name."""
        return MappingProxyType(self._tools)

    def with_toolset(self, *toolsets: Toolset) -> "ToolRegistry":
        """This registry and further toolsets."""
        return ToolRegistry([*self._toolsets.values(), *toolsets])

    def with_tools(self, *tools: Tool) -> "ToolRegistry":
        """This registry and further tools, each in the toolset it names, which is made where new."""
        toolsets = dict(self._toolsets)
        for tool in tools:
            old = toolsets.get(tool.toolset, Toolset(tool.toolset))
            toolsets[tool.toolset] = replace(old, tools=(*old.tools, tool))
        return ToolRegistry(toolsets.values())

    def missing(self, name: str) -> str | None:
        """What a toolset, or one it includes, lacks to work here; None when it can work."""
        return next((text for part in self._closure(name) if (text := part.missing()) is not None), None)

    def resolve(
        self, enabled: Sequence[str | Tool] | None = None, disabled: Sequence[str] | None = None
    ) -> list[Tool]:
        """The tools that names stand for, each once, in the order asked for.

        Args:
            enabled: Names of toolsets or of single tools, or tools themselves; None: every toolset that works here.
            disabled: Names of toolsets or tools to leave out.

        Raises:
            UnknownToolsetError: A name is neither a toolset nor a tool; it says the nearest.
            ToolsetUnavailableError: An enabled toolset cannot work here; it says what is missing.
        """
        for word, names in (("enabled", enabled), ("disabled", disabled)):
            if isinstance(names, str):
                raise TypeError(f"{word} must be a list of names, such as [{names!r}], not a string.")
        out = {tool.name for name in disabled or () for tool in self._named(name, check=False)}
        if enabled is None:
            names = [n for n, toolset in self._toolsets.items() if not toolset.includes]
            enabled = [name for name in names if self.missing(name) is None]
        found: dict[str, Tool] = {}
        for item in enabled:
            for tool in (item,) if isinstance(item, Tool) else self._named(item, out=out):
                if tool.name not in out and found.setdefault(tool.name, tool) is not tool:
                    raise ToolDefinitionError(f"Two different tools named {tool.name!r} were asked for.")
        return list(found.values())

    def _named(self, name: str, check: bool = True, out: set[str] | None = None) -> Iterator[Tool]:
        if name not in self._toolsets:
            yield self._single(name, check)
            return
        for part in self._closure(name):
            wanted = [tool for tool in part.tools if tool.name not in (out or ())]
            # A part that was disabled altogether need not work.
            if check and wanted and (lack := part.missing()) is not None:
                raise ToolsetUnavailableError(f"Toolset {part.name!r} cannot work here: {lack}")
            yield from part.tools

    def _single(self, name: str, check: bool) -> Tool:
        if name not in self._tools:
            known = {*self._toolsets, *self._tools}
            raise UnknownToolsetError(f"There is no toolset or tool {name!r}. {nearest(name, known)}")
        tool = self._tools[name]
        toolset = next(part for part in self._toolsets.values() if tool in part.tools)
        if check and (lack := toolset.missing()) is not None:
            raise ToolsetUnavailableError(f"Tool {name!r} cannot work here: {lack}")
        return tool

    def _closure(self, name: str) -> Iterator[Toolset]:
        if name not in self._toolsets:
            raise UnknownToolsetError(f"There is no toolset {name!r}. {nearest(name, self._toolsets)}")
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                yield self._toolsets[current]
                waiting.extend(reversed(self._toolsets[current].includes))


@functools.cache
def default_registry() -> ToolRegistry:
    """The built-in toolsets and those of installed distributions."""
    from hermes_tools.toolsets import BUILT_IN

    found: list[Toolset] = list(BUILT_IN)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            loaded: Any = point.load()
        except Exception as error:
            raise ToolDefinitionError(
                f"The toolset {point.name} ({point.value}) of an installed distribution cannot be loaded: {error}"
            ) from error
        found.extend(cast("list[Toolset]", loaded) if isinstance(loaded, list | tuple) else [loaded])
    return ToolRegistry(found)


def resolve_toolsets(
    enabled: Sequence[str | Tool] | None = None,
    disabled: Sequence[str] | None = None,
    *,
    registry: ToolRegistry | None = None,
) -> list[Tool]:
    """The tools that toolset names stand for; see `ToolRegistry.resolve`.

    Args:
        enabled: Names of toolsets or tools, or tools; None: every toolset that can work here.
        disabled: Names to leave out.
        registry: Where to look; by default the built-in and installed toolsets.
    """
    return (registry or default_registry()).resolve(enabled, disabled)


def get_tool_definitions(
    enabled_toolsets: Sequence[str | Tool] | None = None,
    disabled_toolsets: Sequence[str] | None = None,
    *,
    registry: ToolRegistry | None = None,
    strict: bool = False,
) -> list[JsonDict]:
    """OpenAI tool dictionaries of toolsets; see `resolve_toolsets`.

    Args:
        enabled_toolsets: Names of toolsets or tools, or tools; None: every toolset that can work here.
        disabled_toolsets: Names to leave out.
        registry: Where to look; by default the built-in and installed toolsets.
        strict: Whether to give the strict-mode variant.
    """
    tools = resolve_toolsets(enabled_toolsets, disabled_toolsets, registry=registry)
    return [tool.definition(strict=strict) for tool in tools]
