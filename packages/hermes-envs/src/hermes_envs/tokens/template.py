"""Rendering chat templates as model repositories ship them (Jinja, the Hugging Face conventions)."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .conversation import ChatTemplateError, Message, ToolDefinition, template_messages

_GENERATION = {"generation"}


class _GenerationBlock(Extension):
    """`{% generation %}` marks the assistant's text for trainers that re-render; here it renders its body."""

    tags = _GENERATION

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _refuse(message: str) -> str:
    raise ChatTemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: The Jinja text.
        variables: What the template may name besides the conversation: `bos_token`, `eos_token`, and
            switches such as `enable_thinking`.
    """

    def __init__(self, source: str, variables: Mapping[str, Any] | None = None) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        self.source = source
        self._variables = {"raise_exception": _refuse, "strftime_now": _strftime_now, **(variables or {})}
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ChatTemplateError(f"the chat template does not compile: {error}") from error

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text a model is shown for a conversation.

        Args:
            messages: OpenAI message dicts; JSON text in tool-call arguments is shown to the template decoded.
            tools: OpenAI tool dicts.
            add_generation_prompt: End with the header of the assistant's next turn.

        Raises:
            ChatTemplateError: The template refused the conversation.
        """
        try:
            return self._template.render(
                messages=template_messages(messages),
                tools=list(tools) if tools else None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._variables,
            )
        except (TemplateError, TypeError, AttributeError, KeyError) as error:
            raise ChatTemplateError(f"the chat template refused the conversation: {error}") from error
