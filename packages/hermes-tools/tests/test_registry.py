"""Toolsets by name."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from hermes_tools import (
    ToolDefinitionError,
    ToolRegistry,
    ToolSession,
    Toolset,
    ToolsetUnavailableError,
    UnknownToolsetError,
    default_registry,
    get_tool_definitions,
    resolve_toolsets,
    tool,
)


@tool(toolset="one")
def first() -> str:
    """First."""
    return ""


@tool(toolset="two")
def second() -> str:
    """Second."""
    return ""


REGISTRY = ToolRegistry(
    [
        Toolset("one", "", (first,)),
        Toolset("two", "", (second,), missing=lambda: "it needs a second"),
        Toolset("both", "", includes=("one", "two", "deep")),
        Toolset("deep", "", includes=("both",)),
    ]
)


def names(tools) -> list[str]:
    return [item.name for item in tools]


def test_the_built_in_toolsets_have_the_known_names():
    built_in = default_registry().toolsets
    assert names(built_in["terminal"].tools) == ["terminal", "process"]
    assert names(built_in["file"].tools) == ["read_file", "write_file", "patch", "search_files"]
    definitions = get_tool_definitions(["file", "terminal"], ["patch"])
    assert [item["function"]["name"] for item in definitions] == [
        "read_file",
        "write_file",
        "search_files",
        "terminal",
        "process",
    ]


def test_none_means_all_that_can_work():
    assert names(REGISTRY.resolve()) == ["first"]
    assert REGISTRY.missing("both") == "it needs a second"


def test_a_toolset_that_cannot_work_says_what_it_lacks():
    for name in ("two", "second", "both", "deep"):
        with pytest.raises(ToolsetUnavailableError, match="it needs a second"):
            REGISTRY.resolve([name])
    assert names(REGISTRY.resolve(["both"], ["two"])) == ["first"]


@pytest.mark.parametrize("wrong", [["ones"], ["one", "frist"]])
def test_an_unknown_name_names_the_nearest(wrong):
    with pytest.raises(UnknownToolsetError, match=r"Did you mean '(one|first)'"):
        resolve_toolsets(wrong, registry=REGISTRY)
    with pytest.raises(UnknownToolsetError):
        resolve_toolsets(["one"], wrong, registry=REGISTRY)


def test_a_string_is_not_a_list_of_names():
    with pytest.raises(TypeError, match=r"\['one'\]"):
        REGISTRY.resolve("one")


def test_a_registry_is_not_changed_but_extended():
    @tool(toolset="one")
    def third() -> str:
        """Third."""
        return ""

    extended = REGISTRY.with_tools(third).with_toolset(Toolset("more", includes=("one",)))
    assert names(extended.resolve(["more"])) == ["first", "third"]
    assert "third" not in REGISTRY.tools
    with pytest.raises(ToolDefinitionError, match="two tools named 'first'"):
        REGISTRY.with_tools(tool(name="first", toolset="two")(first.handler))
    with pytest.raises(ToolDefinitionError, match="two toolsets named 'one'"):
        REGISTRY.with_toolset(Toolset("one"))
    with pytest.raises(UnknownToolsetError, match="includes 'none'"):
        REGISTRY.with_toolset(Toolset("x", includes=("none",)))


def test_installed_distributions_add_toolsets(monkeypatch):
    import sys
    import types

    plugin = types.ModuleType("hermes_tools_test_plugin")
    plugin.TOOLSET = Toolset("plugged", "From outside.", (first,))
    monkeypatch.setitem(sys.modules, "hermes_tools_test_plugin", plugin)
    point = EntryPoint("plugged", "hermes_tools_test_plugin:TOOLSET", "hermes_tools.toolsets")
    monkeypatch.setattr("hermes_tools.registry.entry_points", lambda group: EntryPoints([point]))
    assert names(default_registry.__wrapped__().resolve(["plugged"])) == ["first"]


def test_an_installed_toolset_that_cannot_be_loaded_is_named(monkeypatch):
    point = EntryPoint("torn", "no_such_module:TOOLSET", "hermes_tools.toolsets")
    monkeypatch.setattr("hermes_tools.registry.entry_points", lambda group: EntryPoints([point]))
    with pytest.raises(ToolDefinitionError, match=r"torn .* cannot be loaded"):
        default_registry.__wrapped__()


async def test_a_session_shows_its_tools_only(workspace):
    async with ToolSession(REGISTRY, ["one"], workspace) as session:
        assert session.tool_names == {"first"}
        assert [item["function"]["name"] for item in session.definitions] == ["first"]
