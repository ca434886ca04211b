"""The command `hermes-tools`: look at tools, and try them on this machine."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from hermes_tools.dispatch import call_tool
from hermes_tools.errors import ToolsError
from hermes_tools.host import HostWorkspace
from hermes_tools.registry import default_registry, get_tool_definitions
from hermes_tools.session import ToolSession


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 for a call that failed, 2 for a wrong use.

    Args:
        argv: Arguments; by default the process's own.
    """
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except (ToolsError, OSError) as error:
        print(f"hermes-tools: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hermes-tools", description="Tools for language-model agents.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="toolsets and tools, and what those that cannot work here lack")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=_list)
    schema = verbs.add_parser("schema", help="the tool definitions a model is shown, as JSON")
    schema.add_argument("names", nargs="*", help="toolsets or tools; by default all that can work here")
    schema.add_argument("--strict", action="store_true", help="the variant for strict mode")
    schema.set_defaults(run=_schema)
    call = verbs.add_parser("call", help="run one tool on this machine, without isolation")
    call.add_argument("tool")
    call.add_argument(
        "arguments", nargs="?", default="{}", help="a JSON object; - reads it from standard input"
    )
    call.add_argument("--root", default=".", help="the folder to work in")
    call.set_defaults(run=_call)
    docs = verbs.add_parser("docs", help="the reference page of all tools, as Markdown")
    docs.set_defaults(run=_docs)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    registry = default_registry()
    toolsets = registry.toolsets.values()
    if arguments.json:
        entries = [
            {
                "name": toolset.name,
                "description": toolset.description,
                "tools": [tool.name for tool in toolset.tools],
                "includes": toolset.includes,
                "missing": registry.missing(toolset.name),
            }
            for toolset in toolsets
        ]
        print(json.dumps(entries, indent=2))
        return 0
    for toolset in toolsets:
        members = ", ".join(
            [*(tool.name for tool in toolset.tools), *(f"[{name}]" for name in toolset.includes)]
        )
        print(f"{toolset.name:<12}{toolset.description}\n{'':12}{members}")
        if lack := registry.missing(toolset.name):
            print(f"{'':12}cannot work here: {lack}")
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    print(json.dumps(get_tool_definitions(arguments.names or None, strict=arguments.strict), indent=2))
    return 0


def _call(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.arguments == "-" else arguments.arguments
    return asyncio.run(_call_on_host(arguments.tool, text, arguments.root))


async def _call_on_host(name: str, arguments: str, root: str) -> int:
    async with HostWorkspace(root) as workspace, ToolSession(None, [name], workspace) as session:
        # A toolset's name brings all its tools; what is called is the tool.
        output = await call_tool(name, arguments, session)
        print(json.dumps(json.loads(output.text), indent=2, ensure_ascii=False))
        return 1 if output.error else 0


def _docs(arguments: argparse.Namespace) -> int:
    from hermes_tools.reference import reference_page

    print(reference_page(default_registry()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
