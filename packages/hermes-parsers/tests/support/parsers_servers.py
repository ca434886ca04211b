"""Stand-ins for the parts of vLLM and SGLang that the plug-ins touch, after their published interfaces."""

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import ClassVar


@dataclass
class Record:
    """A protocol object: keeps what it was given."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class ToolParser:
    def __init__(self, tokenizer, tools=None):
        self.prev_tool_call_arr = []
        self.current_tool_id = -1
        self.streamed_args_for_tool = []
        self.model_tokenizer = tokenizer
        self.tools = tools

    def adjust_request(self, request):
        return request


class ToolParserManager:
    tool_parsers: ClassVar[dict] = {}

    @classmethod
    def register_module(cls, name=None, force=True, module=None):
        if not issubclass(module, ToolParser):
            raise TypeError("module must be subclass of ToolParser")
        cls.tool_parsers[name] = module
        return module

    @classmethod
    def get_tool_parser(cls, name):
        return cls.tool_parsers[name]

    @classmethod
    def import_tool_parser(cls, plugin_path):
        """As vLLM does it: the file's own name becomes the module's."""
        name = Path(plugin_path).stem
        spec = importlib.util.spec_from_file_location(name, plugin_path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


class BaseFormatDetector:
    def __init__(self):
        self._buffer = ""
        self.prev_tool_call_arr = []
        self.current_tool_id = -1
        self.streamed_args_for_tool = []


@dataclass
class ToolCallItem:
    tool_index: int
    name: str | None = None
    parameters: str = ""


@dataclass
class StreamingParseResult:
    normal_text: str = ""
    calls: list = field(default_factory=list)


class FunctionCallParser:
    ToolCallParserEnum: ClassVar[dict] = {}


def install(monkeypatch):
    """Make the stand-ins importable under the servers' own names."""
    names = [
        "ToolCall",
        "FunctionCall",
        "ExtractedToolCallInformation",
        "DeltaMessage",
        "DeltaToolCall",
        "DeltaFunctionCall",
    ]
    modules = {
        "vllm.tool_parsers.abstract_tool_parser": {
            "ToolParser": ToolParser,
            "ToolParserManager": ToolParserManager,
        },
        "vllm.entrypoints.openai.engine.protocol": {name: type(name, (Record,), {}) for name in names},
        "sglang.srt.function_call.base_format_detector": {"BaseFormatDetector": BaseFormatDetector},
        "sglang.srt.function_call.core_types": {
            "ToolCallItem": ToolCallItem,
            "StreamingParseResult": StreamingParseResult,
        },
        "sglang.srt.function_call.function_call_parser": {"FunctionCallParser": FunctionCallParser},
    }
    for path in modules:
        parts = path.split(".")
        for depth in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), ModuleType(".".join(parts[:depth])))
    for path, members in modules.items():
        module = ModuleType(path)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, path, module)
