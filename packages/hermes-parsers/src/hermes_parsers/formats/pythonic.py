"""Formats that write Python calls."""

from hermes_parsers.format import END_OF_TURN, Format
from hermes_parsers.grammars.pythonic import Pythonic
from hermes_parsers.grammars.skipped import with_skipped
from hermes_parsers.scan import Scan, Steps

_START, _END = "<|python_start|>", "<|python_end|>"
_LFM, _LFM_END = "<|tool_call_start|>", "<|tool_call_end|>"
_OLMO, _OLMO_END = "<function_calls>", "</function_calls>"
_BARE = Pythonic()
_TAGGED = Pythonic(_END)


def _read_llama4(scan: Scan, marker: str) -> Steps:
    return (yield from (_BARE if marker == "[" else _TAGGED)(scan, marker))


FORMATS = {
    "pythonic": Format(
        "pythonic",
        openers=("[",),
        read=_BARE,
        never_twice=True,
        end_of_turn=(*END_OF_TURN, "<|python_end|>"),
    ),
    "llama4_pythonic": Format(
        "llama4_pythonic",
        openers=(_START, "["),
        read=_read_llama4,
        never_twice=True,
        closers=(_END,),
        special=(_START, _END),
        end_of_turn=(*END_OF_TURN, "<|eot|>", "<|eom|>"),
    ),
    "olmo3": Format(
        "olmo3", openers=(_OLMO,), read=Pythonic(_OLMO_END), never_twice=True, closers=(_OLMO_END,)
    ),
    "lfm2": with_skipped(
        Format(
            "lfm2",
            openers=(_LFM,),
            read=Pythonic(_LFM_END),
            never_twice=True,
            closers=(_LFM_END,),
            special=(_LFM, _LFM_END),
        ),
        "[",
        bare=_BARE,
    ),
}
