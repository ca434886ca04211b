"""Formats whose arguments are plain text between tags."""

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.grammars.spelling import Spelling, tag
from hermes_parsers.grammars.tagged import Tagged
from hermes_parsers.scan import Scan, Steps


def _tagged(name: str, tags: Tagged, **more: object) -> Format:
    parts = (tags.block, tags.call, tags.param, tags.param_end, tags.call_end, tags.block_end)
    values: dict[str, object] = {
        "openers": tuple(dict.fromkeys((*tags.block.strict, *tags.call.strict))),
        "lenient_openers": (*tags.block.loose, *tags.call.loose),
        "read": tags,
        "never_twice": True,
        "closers": tags.block_end.every,
        "special": tuple(word for part in parts for word in part.strict),
        **more,
    }
    return Format(name, **values)  # pyright: ignore[reportArgumentType]


def _functions(block: str, block_end: str) -> Tagged:
    return Tagged(
        block=Spelling((block,)),
        block_end=Spelling((block_end,)),
        call=Spelling(("<function=",)),
        call_end=Spelling(("</function>",)),
        param=Spelling(("<parameter=",)),
        param_end=Spelling(("</parameter>",)),
        trim=True,
        bare="line",
    )


def _dsml(name: str, starts: tuple[str, ...], blocks: tuple[str, ...], loose: tuple[str, ...]) -> Format:
    """DeepSeek's markup: `starts` are what stands between `<` or `</` and a tag's name."""

    def words(*names: str, close: str = "", end: str = ">") -> Spelling:
        def spell(starts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(f"<{close}{start}{word}{end}" for start in starts for word in names)

        return Spelling(spell(starts), spell(loose))

    tags = Tagged(
        block=words(*blocks),
        block_end=words(*blocks, close="/"),
        call=words("invoke", end=" name="),
        call_end=words("invoke", close="/"),
        param=words("parameter", end=" name="),
        param_end=words("parameter", close="/"),
    )
    return _tagged(
        name, tags, end_of_turn=(*END_OF_TURN, "<｜end▁of▁sentence｜>"), special=(f"{starts[0].strip()}",)
    )


_QWEN = _functions("<tool_call>", "</tool_call>")
_SEED = _functions("<seed:tool_call>", "</seed:tool_call>")
_GLM = Tagged(
    call=Spelling(("<tool_call>",)),
    call_end=Spelling(("</tool_call>",)),
    param=Spelling(("<arg_key>",)),
    param_end=Spelling(("</arg_value>",)),
    line_name=True,
    key_end=("</arg_key>",),
    value=("<arg_value>",),
)
_GLM_END = (*END_OF_TURN, "<|user|>", "<|observation|>", "<|assistant|>")
_MINIMAX = Tagged(
    block=Spelling(("<minimax:tool_call>",)),
    block_end=Spelling(("</minimax:tool_call>",)),
    call=Spelling(("<invoke name=",)),
    call_end=Spelling(("</invoke>",)),
    param=Spelling(("<parameter name=",)),
    param_end=Spelling(("</parameter>",)),
    bare="line",
)
_STEP = Tagged(
    block=tag("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>"),
    block_end=tag("<｜tool_calls_end｜>"),
    call=Spelling(("<steptml:invoke name=",)),
    call_end=Spelling(("</steptml:invoke>",)),
    param=Spelling(("<steptml:parameter name=",)),
    param_end=Spelling(("</steptml:parameter>",)),
    filler=(
        *tag("<｜tool_call_begin｜>").every,
        *tag("<｜tool_sep｜>").every,
        *tag("<｜tool_call_end｜>").every,
        "function",
    ),
)


def _suffixed(*words: str) -> tuple[str, ...]:
    """Hunyuan's tags, and the same as its open tokenizer spells them."""
    return (*words, *(word[:-1] + ":opensource>" for word in words))


_HUNYUAN = Tagged(
    block=Spelling(_suffixed("<tool_calls>")),
    block_end=Spelling(_suffixed("</tool_calls>")),
    call=Spelling(_suffixed("<tool_call>")),
    call_end=Spelling(_suffixed("</tool_call>")),
    param=Spelling(_suffixed("<arg_key>")),
    param_end=Spelling(_suffixed("</arg_value>")),
    line_name=True,
    key_end=_suffixed("</arg_key>"),
    value=_suffixed("<arg_value>"),
    name_end=_suffixed("<tool_sep>"),
)
_TOOLCALL, _TOOLCALL_END = "<TOOLCALL>", "</TOOLCALL>"
_NEMOTRON_2 = JsonBlock((_TOOLCALL,), _TOOLCALL_END)


def _read_nemotron(scan: Scan, marker: str) -> Steps:
    return (yield from (_NEMOTRON_2 if marker == _TOOLCALL else _QWEN)(scan, marker))


_BAR = "｜DSML｜"
_BLANK = "｜DSML｜ "
_LOOSE = ("|DSML|", "|DSML| ", "| DSML |", "| DSML | ", " | DSML | ", " | DSML |", "", " ")
_BLOCKS = ("function_calls", "tool_calls", "calls")

FORMATS = {
    "qwen3_coder": _tagged("qwen3_coder", _QWEN, think_ends_at_call=True),
    "qwen3_xml": _tagged("qwen3_xml", _QWEN, think_ends_at_call=True),
    "mimo": _tagged("mimo", _QWEN, think_ends_at_call=True),
    "seed_oss": _tagged(
        "seed_oss",
        _SEED,
        think_ends_at_call=True,
        thinking=(("<seed:think>", "</seed:think>"), ("<think>", "</think>")),
        end_of_turn=(*END_OF_TURN, "<seed:eos>"),
    ),
    "glm45": _tagged("glm45", _GLM, think_ends_at_call=True, end_of_turn=_GLM_END),
    "glm47": _tagged("glm47", _GLM, think_ends_at_call=True, end_of_turn=_GLM_END),
    "deepseek_v3_2": _dsml("deepseek_v3_2", (_BAR, _BLANK), _BLOCKS, _LOOSE),
    "deepseek_v4": _dsml("deepseek_v4", (_BAR, _BLANK), _BLOCKS, _LOOSE),
    "deepseek_v4_1": _dsml("deepseek_v4_1", (_BLANK,), ("calls",), (_BAR, *_LOOSE)),
    "step3": _tagged("step3", _STEP),
    "hunyuan_v3": _tagged(
        "hunyuan_v3",
        _HUNYUAN,
        thinking=tuple(zip(_suffixed("<think>"), _suffixed("</think>"), strict=True)),
    ),
    "nemotron": _tagged(
        "nemotron",
        _QWEN,
        think_ends_at_call=True,
        read=_read_nemotron,
        openers=(_TOOLCALL, "<tool_call>", "<function="),
        closers=(_TOOLCALL_END, "</tool_call>"),
    ),
    "minimax_m2": _tagged("minimax_m2", _MINIMAX, end_of_turn=(*END_OF_TURN, "[e~[")),
}
