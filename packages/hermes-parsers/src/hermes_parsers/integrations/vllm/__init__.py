"""vLLM plug-in: `vllm serve … --tool-parser-plugin PATH_OF_THIS_FILE --tool-call-parser hermes_parsers_qwen3_coder`.

Loading this module where vLLM is installed registers every format under the name `hermes_parsers_NAME`. Elsewhere
it can be imported too, and `register` raises ImportError.

vLLM splits off the reasoning before it calls a tool parser, so these leave reasoning blocks in the text. It does not
tell a parser that a stream has ended: what a parser holds back then, at most the beginning of a marker, is lost.

vLLM loads a plug-in as the module that its file is named after. This file is an `__init__.py` for that reason: loaded
from a `vllm.py` it would take the place of vLLM itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hermes_parsers.integrations.bridge import plain_tool, shown_content, streamed_calls, streamed_content
from hermes_parsers.parser import Parser, ParserStream
from hermes_parsers.registry import get_parser, list_parsers
from hermes_parsers.types import ToolCallDelta

PREFIX = "hermes_parsers_"
_BASES = (
    "vllm.tool_parsers.abstract_tool_parser",
    "vllm.entrypoints.openai.tool_parsers.abstract_tool_parser",
)
_PROTOCOLS = ("vllm.entrypoints.openai.engine.protocol", "vllm.entrypoints.openai.protocol")


def register(names: Iterable[str] | None = None, *, prefix: str = PREFIX) -> list[str]:
    """Register formats with vLLM.

    Args:
        names: The formats; all of them by default.
        prefix: What to put before their names. With "" they replace vLLM's own parsers of those names.

    Returns:
        The names registered.

    Raises:
        ImportError: vLLM is not installed, or has moved what this needs.
    """
    manager = _first(_BASES).ToolParserManager
    done: list[str] = []
    for name in names if names is not None else list_parsers():
        manager.register_module(prefix + name, force=True, module=tool_parser(name))
        done.append(prefix + name)
    return done


def tool_parser(name: str) -> type[Any]:
    """A vLLM `ToolParser` class for a format.

    Raises:
        ImportError: vLLM is not installed, or has moved what this needs.
        UnknownParserError: No such format.
    """
    get_parser(name)
    return type(f"HermesParsers_{name}", (_Bridge, _first(_BASES).ToolParser), {"format_name": name})


class _Bridge:
    """The methods of a vLLM tool parser; vLLM makes one object per request."""

    format_name = ""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)  # pyright: ignore[reportCallIssue]  # vLLM's base class
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.streamed_args_for_tool: list[str] = []
        self._stream: ParserStream | None = None

    def adjust_request(self, request: Any) -> Any:
        """Have vLLM keep the special tokens, which are the markers of many formats."""
        base: Any = super()
        adjusted: Any = base.adjust_request(request)
        if adjusted.tools and adjusted.tool_choice != "none":
            adjusted.skip_special_tokens = False
        return adjusted

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Read a whole output."""
        protocol = _first(_PROTOCOLS)
        result = self._parser(request).parse(model_output)
        calls = [
            protocol.ToolCall(
                id=call.id,
                type="function",
                function=protocol.FunctionCall(name=call.name, arguments=call.arguments),
            )
            for call in result.tool_calls
        ]
        return protocol.ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content=shown_content(result, model_output)
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        """Read the next piece of a stream; None when nothing became known."""
        if self._stream is None:
            self._stream = self._parser(request).stream()
        protocol = _first(_PROTOCOLS)
        deltas = self._stream.feed(delta_text)
        content = streamed_content(deltas)
        calls = [self._call(protocol, piece) for piece in streamed_calls(deltas)]
        if not content and not calls:
            return None
        fields: dict[str, Any] = {"content": content} if content else {}
        if calls:
            fields["tool_calls"] = calls
        return protocol.DeltaMessage(**fields)

    def _call(self, protocol: Any, piece: ToolCallDelta) -> Any:
        if piece.name is not None:
            self.prev_tool_call_arr.append({"name": piece.name, "arguments": ""})
            self.streamed_args_for_tool.append("")
        # At the end vLLM sends whatever `prev_tool_call_arr` has beyond `streamed_args_for_tool`.
        self.streamed_args_for_tool[piece.index] += piece.arguments
        self.prev_tool_call_arr[piece.index]["arguments"] = self.streamed_args_for_tool[piece.index]
        if piece.name is None:
            function = protocol.DeltaFunctionCall(arguments=piece.arguments)
            return protocol.DeltaToolCall(index=piece.index, function=function)
        function = protocol.DeltaFunctionCall(name=piece.name, arguments=piece.arguments)
        return protocol.DeltaToolCall(index=piece.index, id=piece.id, type="function", function=function)

    def _parser(self, request: Any) -> Parser:
        tools: Any = getattr(request, "tools", None) or []
        return get_parser(self.format_name, [plain_tool(tool) for tool in tools], reasoning="off")


def _first(paths: Sequence[str]) -> Any:
    """The first of these modules that there is."""
    missing: ImportError | None = None
    for path in paths:
        try:
            return import_module(path)
        except ImportError as error:
            missing = error
    raise ImportError(f"none of {', '.join(paths)} can be imported; is vLLM installed here?") from missing


if find_spec("vllm") is not None:
    register()
