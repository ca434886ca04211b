"""Mistral, old and new: both forms begin with the same marker and are told apart by what follows."""

from hermes_parsers.format import Format
from hermes_parsers.grammars.mistral import ARGS, CALL_ID, MARKER, mistral_id, read_mistral
from hermes_parsers.grammars.skipped import BRACKETS, with_skipped

FORMATS = {
    "mistral": with_skipped(
        Format(
            "mistral",
            openers=(MARKER,),
            read=read_mistral,
            never_twice=True,
            thinking=(("[THINK]", "[/THINK]"), ("<think>", "</think>")),
            special=(MARKER, ARGS, CALL_ID, "[THINK]", "[/THINK]"),
            new_id=mistral_id,
        ),
        *BRACKETS,
        names=True,
    )
}
