"""Token-exact rollouts: what the policy sampled is what a trainer trains on.

`Segment` and `TokenSession` need no third-party library; tokenizers and chat templates need the extra `tokens`.
"""

from typing import TYPE_CHECKING, Any

from .conversation import ChatTemplateError
from .segment import MASKED_LABEL, MASKED_LOGPROB, Segment, Span
from .session import History, TokenSession

if TYPE_CHECKING:
    from .template import ChatTemplate
    from .tokenizer import FolderTokenizer, Tokenizer, TransformersTokenizer, load_tokenizer

__all__ = [
    "MASKED_LABEL",
    "MASKED_LOGPROB",
    "ChatTemplate",
    "ChatTemplateError",
    "FolderTokenizer",
    "History",
    "Segment",
    "Span",
    "TokenSession",
    "Tokenizer",
    "TransformersTokenizer",
    "load_tokenizer",
]


def __getattr__(name: str) -> Any:
    """Load what needs the extra `tokens` on first use."""
    from importlib import import_module

    if name == "ChatTemplate":
        return import_module(".template", __name__).ChatTemplate
    if name in __all__:
        return getattr(import_module(".tokenizer", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
