"""Gemma 4 and FunctionGemma."""

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.gemma import Gemma
from hermes_parsers.grammars.skipped import with_skipped

_FOUR = Gemma("<|tool_call>", "<tool_call|>", '<|"|>', guess=False)
_FUNCTION = Gemma("<start_function_call>", "<end_function_call>", "<escape>", guess=True)


def _gemma(name: str, tags: Gemma, thinking: tuple[tuple[str, str], ...]) -> Format:
    format = Format(
        name,
        openers=(tags.opener,),
        read=tags,
        never_twice=True,
        closers=(tags.close,),
        thinking=thinking,
        special=(tags.opener, tags.close, tags.quote),
        end_of_turn=(*END_OF_TURN, "<turn|>", "<|tool_response>", "<start_function_response>"),
    )
    return with_skipped(format, again=("call:",))


_THINK = ("<think>", "</think>")

FORMATS = {
    "gemma4": _gemma("gemma4", _FOUR, (("<|channel>thought", "<channel|>"), _THINK)),
    "functiongemma": _gemma("functiongemma", _FUNCTION, (_THINK,)),
}
