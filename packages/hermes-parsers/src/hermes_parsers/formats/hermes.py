"""Hermes and its kin: JSON objects between tags."""

from typing import Any

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.grammars.skipped import BRACKETS, with_skipped


def _tagged(name: str, openers: tuple[str, ...], close: str, *, arrays: bool = False, **more: Any) -> Format:
    read = JsonBlock(openers, close, single="named" if arrays else "always")
    closers = (close,) if close else ()
    format = Format(
        name, openers=openers, read=read, closers=closers, special=(*openers, *closers), begins="{[", **more
    )
    return with_skipped(format, *BRACKETS)


_TAG, _END = "<tool_call>", "</tool_call>"
_ACTION = ("<|action_start|>",)
_PHI = ("functools", "<|tool_call|>")

FORMATS = {
    "hermes": _tagged(
        "hermes",
        (_TAG,),
        _END,
        thinking=(("<think>", "</think>"), ("<scratch_pad>", "</scratch_pad>")),
    ),
    "qwen": _tagged("qwen", (_TAG,), _END),
    "longcat": _tagged(
        "longcat",
        ("<longcat_tool_call>",),
        "</longcat_tool_call>",
        thinking=(("<longcat_think>", "</longcat_think>"), ("<think>", "</think>")),
    ),
    "granite": _tagged("granite", ("<|tool_call|>", _TAG), _END, arrays=True),
    "granite4": _tagged("granite4", (_TAG,), _END),
    "granite_20b_fc": _tagged("granite_20b_fc", ("<function_call>",), "</function_call>"),
    "jamba": _tagged("jamba", ("<tool_calls>",), "</tool_calls>", arrays=True),
    "hunyuan_a13b": _tagged(
        "hunyuan_a13b", ("<tool_calls>",), "</tool_calls>", arrays=True, dropped=("<answer>", "</answer>")
    ),
    "ernie45": _tagged("ernie45", (_TAG,), _END, dropped=("<response>", "</response>")),
    "internlm": with_skipped(
        Format(
            "internlm",
            openers=_ACTION,
            read=JsonBlock(_ACTION, "<|action_end|>", lead="<|plugin|>", key="parameters"),
            never_twice=True,
            closers=("<|action_end|>",),
            special=(*_ACTION, "<|plugin|>", "<|action_end|>"),
        ),
        *BRACKETS,
    ),
    "phi4_mini": Format(
        "phi4_mini",
        openers=_PHI,
        read=JsonBlock(_PHI, "<|/tool_call|>", single="lenient"),
        never_twice=True,
        closers=("<|/tool_call|>",),
        special=("<|tool_call|>", "<|/tool_call|>"),
        end_of_turn=(*END_OF_TURN, "<|user|>"),
    ),
}
