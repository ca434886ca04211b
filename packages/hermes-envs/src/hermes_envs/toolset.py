"""Which tools a rollout's agent is shown, and how their toolsets are set."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from hermes_tools import Tool, ToolRegistry, default_registry
from hermes_tools.errors import nearest

from hermes_envs.config import ConfigError
from hermes_envs.spec import RolloutSpec

_OBJECTS = ("host",)
"""Settings that are objects, such as a browser to share: code can give them, a file cannot."""


def tool_registry(spec: RolloutSpec) -> ToolRegistry:
    """Where the spec's toolset names are looked up."""
    return spec.registry if spec.registry is not None else default_registry()


def tools_of(spec: RolloutSpec) -> list[Tool]:
    """The spec's tools.

    Raises:
        hermes_tools.UnknownToolsetError: A name is neither a toolset nor a tool.
        hermes_tools.ToolsetUnavailableError: A toolset cannot work here; it says what is missing.
    """
    return tool_registry(spec).resolve(spec.tools)


def tool_options(settings: Mapping[str, Any]) -> list[object]:
    """Settings of toolsets as a tool session takes them, out of plain data.

    Args:
        settings: By toolset, `web` or `browser`, its settings by name: `{"web": {"provider": "searxng", "keys":
            {"searxng": "http://127.0.0.1:8888"}, "allow_hosts": ["127.0.0.1:8000"]}}`.

    Returns:
        A `WebOptions`, a `BrowserOptions`.

    Raises:
        ConfigError: An unknown toolset or setting, with the nearest named, or a value that does not fit.
    """
    from hermes_tools.toolsets.browser.options import BrowserOptions
    from hermes_tools.toolsets.web.options import WebOptions

    kinds: dict[str, type[Any]] = {"web": WebOptions, "browser": BrowserOptions}
    found: list[object] = []
    for toolset, values in settings.items():
        if toolset not in kinds:
            raise ConfigError(f"the toolset {toolset!r} has no settings: {nearest(toolset, kinds)}")
        if not isinstance(values, Mapping):
            raise ConfigError(f"the settings of {toolset} are a mapping of names to values, not {values!r}")
        found.append(_options(kinds[toolset], toolset, typing.cast("Mapping[str, Any]", values)))
    return found


def _options(kind: type[Any], toolset: str, values: Mapping[str, Any]) -> object:
    from pydantic import TypeAdapter, ValidationError

    known = typing.get_type_hints(kind, localns={"BrowserHost": object})
    names = [field.name for field in dataclasses.fields(kind) if field.name not in _OBJECTS]
    fitting: dict[str, Any] = {}
    for name, value in values.items():
        if name not in names:
            raise ConfigError(f"the toolset {toolset} has no setting {name!r}: {nearest(name, names)}")
        try:
            fitting[name] = TypeAdapter(known[name]).validate_python(value)
        except ValidationError as error:
            raise ConfigError(f"{toolset}.{name}: {error.errors()[0]['msg']}") from error
    return kind(**fitting)
