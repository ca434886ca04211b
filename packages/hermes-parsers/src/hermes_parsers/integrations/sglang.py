"""SGLang plug-in: imported before the server starts, it offers `--tool-call-parser hermes_parsers_qwen3_coder`.

Loading this module where SGLang is installed registers every format under the name `hermes_parsers_NAME`. Elsewhere
it can be imported too, and `register` raises ImportError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hermes_parsers.integrations.bridge import plain_tool, shown_content, streamed_calls, streamed_content
from hermes_parsers.parser import Parser, ParserStream
from hermes_parsers.registry import get_parser, list_parsers
from hermes_parsers.types import Delta

PREFIX = "hermes_parsers_"
_PACKAGE = "sglang.srt.function_call"


def register(names: Iterable[str] | None = None, *, prefix: str = PREFIX) -> list[str]:
    """Register formats with SGLang.

    Args:
        names: The formats; all of them by default.
        prefix: What to put before their names. With "" they replace SGLang's own parsers of those names.

    Returns:
        The names registered.

    Raises:
        ImportError: SGLang is not installed, or has moved what this needs.
    """
    known = import_module(f"{_PACKAGE}.function_call_parser").FunctionCallParser.ToolCallParserEnum
    done: list[str] = []
    for name in names if names is not None else list_parsers():
        known[prefix + name] = detector(name)
        done.append(prefix + name)
    return done


def detector(name: str) -> type[Any]:
    """An SGLang `BaseFormatDetector` class for a format.

    Raises:
        ImportError: SGLang is not installed, or has moved what this needs.
        UnknownParserError: No such format.
    """
    get_parser(name)
    base = import_module(f"{_PACKAGE}.base_format_detector").BaseFormatDetector
    return type(f"HermesParsers_{name}", (_Bridge, base), {"format_name": name})


class _Bridge:
    """The methods of an SGLang detector; SGLang makes one object per request and splits off the reasoning before."""

    format_name = ""

    def __init__(self) -> None:
        super().__init__()
        # Stays empty, since SGLang completes the arguments of what is in it at the end of the stream.
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.streamed_args_for_tool: list[str] = []
        self.current_tool_id = -1
        self._stream: ParserStream | None = None

    def has_tool_call(self, text: str) -> bool:
        """Whether something in the text may begin a call."""
        format = get_parser(self.format_name).format
        return any(word in text for word in (*format.openers, *format.special))

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> Any:
        """Read a whole output."""
        types = import_module(f"{_PACKAGE}.core_types")
        result = self._parser(tools).parse(text)
        calls = [
            types.ToolCallItem(tool_index=index, name=call.name, parameters=call.arguments)
            for index, call in enumerate(result.tool_calls)
        ]
        return types.StreamingParseResult(normal_text=shown_content(result, text) or "", calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> Any:
        """Read the next piece of a stream."""
        if self._stream is None:
            self._stream = self._parser(tools).stream()
        return self._shown(self._stream.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> Any:
        """The stream is over; give what was held back."""
        if self._stream is None:
            self._stream = self._parser(tools).stream()
        return self._shown(self._stream.finish())

    def supports_structural_tag(self) -> bool:
        """Constrained decoding stays with SGLang's own detectors."""
        return False

    def structure_info(self) -> Any:
        """Not offered; see `supports_structural_tag`."""
        raise NotImplementedError("hermes-parsers reads output and does not constrain it")

    def build_ebnf(self, tools: Sequence[Any]) -> str:
        """Not offered; see `supports_structural_tag`."""
        raise NotImplementedError("hermes-parsers reads output and does not constrain it")

    def _shown(self, deltas: list[Delta]) -> Any:
        types = import_module(f"{_PACKAGE}.core_types")
        calls: list[Any] = []
        for piece in streamed_calls(deltas):
            if piece.name is not None:
                self.streamed_args_for_tool.append("")
                self.current_tool_id = piece.index
            self.streamed_args_for_tool[piece.index] += piece.arguments
            calls.append(
                types.ToolCallItem(tool_index=piece.index, name=piece.name, parameters=piece.arguments)
            )
        return types.StreamingParseResult(normal_text=streamed_content(deltas), calls=calls)

    def _parser(self, tools: Sequence[Any]) -> Parser:
        return get_parser(self.format_name, [plain_tool(tool) for tool in tools or ()], reasoning="off")


if find_spec("sglang") is not None:
    register()
