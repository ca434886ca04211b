"""Llama 3, xLAM and GigaChat 3: JSON objects with no tags, or after a marker without an end."""

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.bare_json import read_bare
from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.grammars.skipped import BRACKETS, with_skipped
from hermes_parsers.reading import literal, space
from hermes_parsers.scan import Scan, Steps

_PYTHON_TAG = "<|python_tag|>"
_FENCE = "```"
_XLAM_TAGS = ("<tool_call>", "[TOOL_CALLS]")
_XLAM_BLOCK = JsonBlock(_XLAM_TAGS, "</tool_call>")
_GIGACHAT = ("<|message_sep|>", "<|function_call|>", "function call<|role_sep|>")
_GIGACHAT_BLOCK = JsonBlock(_GIGACHAT)


def _read_llama(scan: Scan, marker: str) -> Steps:
    return (yield from read_bare(scan, marker, separator=";"))


def _read_xlam(scan: Scan, marker: str) -> Steps:
    src = scan.src
    if marker in _XLAM_TAGS:
        return (yield from _XLAM_BLOCK(scan, marker))
    if marker in ("[", "{"):
        return not scan.has_content and (yield from read_bare(scan, marker))
    yield from literal(src, "json")
    char = yield from space(src)
    if char not in ("[", "{"):
        return False
    found = len(scan.calls) + len(scan.errors)
    src.pos += 1
    if not (yield from read_bare(scan, char)):
        return False
    if len(scan.calls) + len(scan.errors) > found:
        after = src.at
        src.capture(src.pos)
        yield from space(src)
        if not (yield from literal(src, _FENCE)):
            src.rewind(after)
    return True


def _read_gigachat(scan: Scan, marker: str) -> Steps:
    src = scan.src
    if marker == "<|message_sep|>":
        if not (yield from space(src)):
            return True
        if not (yield from literal(src, "function call")) or not (yield from literal(src, "<|role_sep|>")):
            return False
    return (yield from _GIGACHAT_BLOCK(scan, marker))


FORMATS = {
    "llama3_json": Format(
        "llama3_json",
        openers=("{", "["),
        read=_read_llama,
        never_twice=True,
        dropped=(_PYTHON_TAG,),
        special=(_PYTHON_TAG,),
    ),
    "xlam": Format(
        "xlam",
        openers=(*_XLAM_TAGS, _FENCE, "[", "{"),
        read=_read_xlam,
        never_twice=True,
        closers=("</tool_call>",),
    ),
    "gigachat3": with_skipped(
        Format(
            "gigachat3",
            openers=_GIGACHAT,
            read=_read_gigachat,
            never_twice=True,
            special=("<|message_sep|>", "<|role_sep|>", "<|function_call|>"),
            end_of_turn=(*END_OF_TURN, "<|role_sep|>"),
        ),
        *BRACKETS,
    ),
}
