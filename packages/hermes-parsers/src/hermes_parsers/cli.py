"""The command `hermes-parsers`: list formats, read text, and tell which format a model writes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from hermes_parsers import catalog
from hermes_parsers.parser import Parser
from hermes_parsers.registry import UnknownParserError, get_parser, list_parsers, parser_for_model
from hermes_parsers.types import Delta

_CHUNK = 64


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.

    0: done. 1: a call could not be read, or no format is known for the model. 2: wrong usage.
    130: interrupted. 141: the output's reader has gone.
    """
    args = _arguments().parse_args(argv)
    try:
        status = int(args.run(args))
        print(end="", flush=True)  # here, where a reader that has gone is noticed
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # who read our output has gone, as in `hermes-parsers list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (UnknownParserError, OSError, ValueError) as error:
        print(f"hermes-parsers: {error}", file=sys.stderr)
        return 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hermes-parsers", description="Read the tool calls in the text of open models."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("list", help="show the formats, their aliases and special tokens")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_list)
    for name, run, text in (
        ("parse", _parse, "read a whole text and print the result as JSON"),
        ("stream", _stream, "read a text as it arrives and print one JSON line per delta"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("format", help="a format, or with --model the name of a model")
        command.add_argument("file", nargs="?", default="-", help="the text; - is standard input")
        command.add_argument("--model", action="store_true", help="FORMAT is the name of a model")
        command.add_argument("--tools", metavar="FILE", help="JSON file with a list of OpenAI tools")
        command.add_argument("--reasoning", choices=("auto", "open", "off"), default="auto")
        command.add_argument("--untyped", choices=("string", "json"), default="string")
        command.add_argument("--lenient", action="store_true", help="read damaged text too")
        if name == "stream":
            command.add_argument("--chunk", type=int, default=_CHUNK, help="characters per piece")
            command.add_argument("--openai", action="store_true", help="print chat.completion.chunk lines")
        command.set_defaults(run=run)
    command = commands.add_parser("which", help="tell which format a model writes")
    command.add_argument("model", help="such as Qwen/Qwen3-Coder-30B-A3B-Instruct")
    command.set_defaults(run=_which)
    return parser


def _list(args: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for name in list_parsers():
        aliases = sorted(alias for alias, target in catalog.ALIASES.items() if target == name)
        special = list(catalog.load(name).special) if name in catalog.FORMATS else []
        rows.append({"name": name, "aliases": aliases, "special_tokens": special})
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for row in rows:
        print(f"{row['name']:<16}{', '.join(row['aliases'])}".rstrip())
    return 0


def _which(args: argparse.Namespace) -> int:
    name = parser_for_model(args.model)
    if name is None:
        print(
            f"hermes-parsers: no format is known for {args.model!r}; see `hermes-parsers list`",
            file=sys.stderr,
        )
        return 1
    print(name)
    return 0


def _parse(args: argparse.Namespace) -> int:
    result = _parser(args).parse(_input(args.file).read())
    _print(result.to_dict(), indent=2)
    return 1 if result.errors else 0


def _stream(args: argparse.Namespace) -> int:
    from hermes_parsers.openai import ChunkWriter

    if args.chunk < 1:
        raise ValueError("--chunk must be at least 1")
    parser = _parser(args)
    stream, writer = parser.stream(), ChunkWriter()

    def show(deltas: list[Delta]) -> None:
        for delta in deltas:
            _print(writer.chunk(delta) if args.openai else _delta(delta))

    source = _input(args.file)
    while chunk := source.read(args.chunk):
        show(stream.feed(chunk))
    show(stream.finish())
    if args.openai:
        _print(writer.last())
    return 1 if stream.result().errors else 0


def _delta(delta: Delta) -> dict[str, Any]:
    if delta.error is not None:
        error = delta.error
        return {"error": {name: getattr(error, name) for name in error.__slots__}}
    if delta.tool_call is not None:
        call = delta.tool_call
        fields = {"index": call.index, "id": call.id, "name": call.name, "arguments": call.arguments}
        return {"tool_call": {key: value for key, value in fields.items() if value is not None}}
    return {"reasoning": delta.reasoning} if delta.reasoning is not None else {"content": delta.content}


def _parser(args: argparse.Namespace) -> Parser:
    name = args.format
    if args.model:
        name = parser_for_model(args.format)
        if name is None:
            raise ValueError(f"no format is known for the model {args.format!r}; give a format")
    tools: list[dict[str, Any]] | None = None
    if args.tools:
        loaded: Any = json.loads(Path(args.tools).read_text(encoding="utf-8"))
        if not isinstance(loaded, list):
            raise ValueError(f"{args.tools} does not hold a list of tools")
        tools = cast("list[dict[str, Any]]", loaded)
    return get_parser(name, tools, reasoning=args.reasoning, untyped=args.untyped, lenient=args.lenient)


def _input(file: str) -> TextIO:
    if file != "-":
        return Path(file).open(encoding="utf-8", errors="surrogateescape", newline="")
    return sys.stdin


def _print(value: object, indent: int | None = None) -> None:
    """Print JSON; text that no encoding can carry is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
