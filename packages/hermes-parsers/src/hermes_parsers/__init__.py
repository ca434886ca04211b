"""Tool-call and reasoning parsers for every open-model format; standard library only."""

from hermes_parsers.parser import Parser, ParserStream
from hermes_parsers.registry import (
    UnknownParserError,
    get_parser,
    list_parsers,
    parser_for_model,
    register_parser,
)
from hermes_parsers.types import Delta, ParseError, ParseResult, ToolCall, ToolCallDelta

__all__ = [
    "Delta",
    "ParseError",
    "ParseResult",
    "Parser",
    "ParserStream",
    "ToolCall",
    "ToolCallDelta",
    "UnknownParserError",
    "get_parser",
    "list_parsers",
    "parser_for_model",
    "register_parser",
]
