"""gpt-oss."""

from hermes_parsers.format import Format
from hermes_parsers.grammars.harmony import CHANNEL, CONSTRAIN, ENDS, MESSAGE, START, read_harmony

FORMATS = {
    "gpt_oss": Format(
        "gpt_oss", run=read_harmony, thinking=(), special=(START, CHANNEL, CONSTRAIN, MESSAGE, *ENDS)
    )
}
