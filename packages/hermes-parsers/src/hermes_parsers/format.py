"""What a format is: a declaration over one of the grammars, and the options of one parser."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes_parsers.scan import Scan, Steps

END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<|end|>",
)


def call_id() -> str:
    """An id in OpenAI's style, unique per call."""
    return f"call_{os.urandom(12).hex()}"


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller asked of a parser.

    Attributes:
        tools: JSON Schema of the arguments by tool name; None when no tools were given.
        reasoning: `auto` reads reasoning blocks, `open` also starts inside one, `off` leaves them in the text.
        untyped: What a value without a schema becomes in tagged formats: text as it is, or read as JSON if it is.
        lenient: Read also what only damaged output contains; see `ParseResult.recovered`.
        new_id: Makes an id for a call that has none on the wire.
        known_only: Where no marker begins a call, only the names in `tools` are calls.
    """

    tools: Mapping[str, Mapping[str, Any]] | None = None
    reasoning: Literal["auto", "open", "off"] = "auto"
    untyped: Literal["string", "json"] = "string"
    lenient: bool = False
    new_id: Callable[[], str] = call_id
    known_only: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """A wire format.

    Attributes:
        name: Name of the format.
        openers: Text that may begin a block of calls.
        read: Reads the block after an opener; returns False, having shown nothing, when it is none.
        closers: End tags that `read` may leave behind.
        thinking: Start and end tags of reasoning blocks; the first pair is the one a template opens.
        think_ends_at_call: A call inside an open reasoning block ends the block.
        dropped: Tags around content that are not content.
        end_of_turn: Special tokens that may end the text and are not content.
        special: Markers that are special tokens: a server must not skip them.
        run: Replaces the text loop, for formats whose whole output is structured.
        new_id: Makes ids as the format wants them.
        begins: What may follow an opener, after white space, if it is to be one; "" for anything.
        never_twice: An opener right before itself begins nothing.
        lenient_openers: Further openers under `lenient`.
        bare_names: Under `lenient` the name of a tool before `{` begins a block too.
    """

    name: str
    openers: tuple[str, ...] = ()
    read: Callable[[Scan, str], Steps] | None = None
    closers: tuple[str, ...] = ()
    thinking: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    think_ends_at_call: bool = False
    dropped: tuple[str, ...] = ()
    end_of_turn: tuple[str, ...] = END_OF_TURN
    special: tuple[str, ...] = ()
    run: Callable[[Scan], Any] | None = None
    new_id: Callable[[], str] = call_id
    begins: str = ""
    never_twice: bool = False
    lenient_openers: tuple[str, ...] = field(default=())
    bare_names: bool = False
