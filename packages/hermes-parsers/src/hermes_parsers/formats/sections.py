"""DeepSeek V3 and V3.1, and Kimi K2: calls between special tokens inside a section."""

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.section import Section
from hermes_parsers.grammars.skipped import with_skipped
from hermes_parsers.grammars.spelling import Spelling, tag

_DEEPSEEK = Section(
    begin=tag("<｜tool▁calls▁begin｜>"),
    call=tag("<｜tool▁call▁begin｜>"),
    separator=tag("<｜tool▁sep｜>"),
    call_end=tag("<｜tool▁call▁end｜>"),
    end=tag("<｜tool▁calls▁end｜>"),
)
_KIMI = Section(
    begin=Spelling(("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")),
    call=Spelling(("<|tool_call_begin|>",)),
    separator=Spelling(("<|tool_call_argument_begin|>",)),
    call_end=Spelling(("<|tool_call_end|>",)),
    end=Spelling(("<|tool_calls_section_end|>", "<|tool_call_section_end|>")),
    numbered=True,
)


def _section(
    name: str,
    grammar: Section,
    end_of_turn: tuple[str, ...],
    head: str,
    *,
    think_ends_at_call: bool = False,
    bare_names: bool = False,
) -> Format:
    parts = (grammar.begin, grammar.call, grammar.separator, grammar.call_end, grammar.end)
    format = Format(
        name,
        openers=(*grammar.begin.strict, *grammar.call.strict),
        lenient_openers=(*grammar.begin.loose, *grammar.call.loose),
        read=grammar,
        never_twice=True,
        closers=(*grammar.call_end.every, *grammar.end.every),
        special=tuple(word for part in parts for word in part.strict),
        end_of_turn=end_of_turn,
        think_ends_at_call=think_ends_at_call,
    )
    return with_skipped(format, head, names=bare_names)


_DEEPSEEK_END = (*END_OF_TURN, "<｜end▁of▁sentence｜>")

FORMATS = {
    "deepseek_v3": _section("deepseek_v3", _DEEPSEEK, _DEEPSEEK_END, "function"),
    "deepseek_v3_1": _section("deepseek_v3_1", _DEEPSEEK, _DEEPSEEK_END, "function", bare_names=True),
    "kimi_k2": _section(
        "kimi_k2", _KIMI, (*END_OF_TURN, "<|im_user|>"), "functions.", think_ends_at_call=True
    ),
}
