"""Tokenizers with a chat template: from a folder on disk, or around an object that already is one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from .conversation import ChatTemplateError, Message, ToolDefinition, template_messages

END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<|observation|>",
    "<|user|>",
    "</s>",
    "[EOS]",
    "[e~[",
)
"""Tokens that end an assistant's turn in known formats; GLM stops at the next role's own token."""


@runtime_checkable
class Tokenizer(Protocol):
    """What `TokenSession` and `TokenClient` need to turn conversations into token ids."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in which special tokens are written out; none are added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens written out."""
        ...

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text shown to the model for a conversation."""
        ...

    @property
    def end_tokens(self) -> Mapping[str, int]:
        """The tokens that end an assistant's turn, and their ids."""
        ...


class FolderTokenizer:
    """A tokenizer read from `tokenizer.json`, `tokenizer_config.json` and the chat template beside them.

    Args:
        folder: A model's folder.
        chat_template: Jinja text to use instead of the folder's own.
        variables: Switches the template reads, such as `enable_thinking`.

    Raises:
        FileNotFoundError: The folder has no `tokenizer.json`.
        ChatTemplateError: No chat template is there and none was given.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        chat_template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        from tokenizers import Tokenizer as Backend

        from .template import ChatTemplate

        folder = Path(folder)
        model = folder / "tokenizer.json"
        if not model.is_file():
            raise FileNotFoundError(f"{model} is missing: name a folder that holds tokenizer.json")
        self._backend = Backend.from_file(str(model))
        config = _read_json(folder / "tokenizer_config.json")
        source = chat_template or _template_source(folder, config)
        if source is None:
            raise ChatTemplateError(
                f"{folder} has no chat template: give chat_template=, or add chat_template.jinja"
            )
        special = {
            name: _token_text(config.get(name))
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
        }
        self._template = ChatTemplate(source, {**special, **(variables or {})})
        self.end_tokens = _end_tokens(self._backend.token_to_id, [special["eos_token"], *END_OF_TURN])

    def __len__(self) -> int:
        """Size of the vocabulary, added tokens included."""
        return int(self._backend.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in which special tokens are written out; none are added."""
        return self._backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens written out."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text shown to the model for a conversation."""
        return self._template.render(messages, tools, add_generation_prompt=add_generation_prompt)


class TransformersTokenizer:
    """A tokenizer of the `transformers` kind: `encode`, `decode`, `apply_chat_template`."""

    def __init__(self, tokenizer: Any, variables: Mapping[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self._variables = dict(variables or {})
        vocabulary = cast("Mapping[str, int]", tokenizer.get_vocab())
        self.end_tokens = _end_tokens(vocabulary.get, [getattr(tokenizer, "eos_token", None), *END_OF_TURN])

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in which special tokens are written out; none are added."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens written out."""
        return str(
            self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text shown to the model for a conversation."""
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    template_messages(messages),
                    tools=list(tools) if tools else None,
                    tokenize=False,
                    add_generation_prompt=add_generation_prompt,
                    **self._variables,
                )
            )
        except Exception as error:  # whatever the template raises: jinja2's errors, TypeError, KeyError
            raise ChatTemplateError(f"the chat template refused the conversation: {error}") from error


def load_tokenizer(source: Any, **options: Any) -> Tokenizer:
    """A tokenizer from a folder, from a `transformers` tokenizer, or from an object that already is one.

    Args:
        source: A folder with `tokenizer.json`, or an object.
        **options: `chat_template` (folders only) and `variables`.

    Raises:
        TypeError: The object can neither render a conversation nor apply a chat template.
    """
    if isinstance(source, str | Path):
        return FolderTokenizer(source, **options)
    if isinstance(source, Tokenizer):
        return source
    if all(hasattr(source, name) for name in ("encode", "decode", "apply_chat_template", "get_vocab")):
        return TransformersTokenizer(source, **options)
    raise TypeError(
        f"{type(source).__name__} is no tokenizer: give a folder, a transformers tokenizer, "
        "or an object with encode, decode, render and end_tokens"
    )


def _end_tokens(lookup: Any, candidates: Iterable[str | None]) -> dict[str, int]:
    found = {text: lookup(text) for text in candidates if text}
    return {text: index for text, index in found.items() if index is not None}


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _token_text(value: Any) -> str | None:
    """Special tokens are written as text or as a dict with their `content`."""
    return cast("dict[str, str]", value).get("content") if isinstance(value, dict) else value


def _template_source(folder: Path, config: Mapping[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    source = config.get("chat_template")
    if isinstance(source, list):  # older repositories list several by name
        named = {entry["name"]: entry["template"] for entry in cast("list[dict[str, str]]", source)}
        return named.get("tool_use") or named.get("default")
    return source
