"""Chat templates with the habits that break re-rendering, and a real tokenizer trained for them."""

import functools
import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

_TOOLS = """{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}"""

_CALLS = """{% for call in message.tool_calls %}{% if message.content or not loop.first %}
{% endif %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}"""

_BODY = (
    """{%- for message in messages %}{% if message.role == 'system' and loop.first %}{% elif message.role == 'assistant' %}<|im_start|>assistant
CONTENT"""
    + _CALLS
    + """<|im_end|>
{% elif message.role == 'tool' %}{% if loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}

<tool_response>
{{ message.content }}
</tool_response>{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>
{% endif %}{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
)

CHATML = _TOOLS + _BODY.replace("CONTENT", "{{ message.content }}")
STRIPS_THINKING = _TOOLS + _BODY.replace(
    "CONTENT",
    "{% if '</think>' in message.content %}{{ message.content.split('</think>')[-1].lstrip('\\n') }}"
    "{% else %}{{ message.content }}{% endif %}",
)
TRIMS = CHATML.replace("{{ message.content }}", "{{ message.content | trim }}")
OPENS_THINKING = CHATML.replace(
    "{% if add_generation_prompt %}<|im_start|>assistant\n",
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n",
)
CLOCK = "<|im_start|>system\nIt is {{ strftime_now('%H:%M:%S.%f') }}.<|im_end|>\n" + CHATML.replace(
    _TOOLS, ""
)
REORDERS_JSON = CHATML.replace(
    "{{ call.function.arguments | tojson }}",
    "{{ call.function.arguments | tojson(sort_keys=true, indent=1) }}",
)
LLAMA = """{{- bos_token }}{% for message in messages %}<|start_header_id|>{{ 'ipython' if message.role == 'tool' else message.role }}<|end_header_id|>

{{ message.content | trim }}{% for call in message.tool_calls %}{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}{% endfor %}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""
MISTRAL = """{{- bos_token }}{% set ns = namespace(user=false) %}{% for message in messages %}{% if message.role == 'system' %}[INST] {{ message.content }} [/INST]{% elif message.role == 'user' %}[INST] {{ message.content }} [/INST]{% elif message.role == 'assistant' %}{% if message.tool_calls %}[TOOL_CALLS]{{ message.tool_calls | tojson }}{% else %} {{ message.content | trim }}{% endif %}</s>{% elif message.role == 'tool' %}{% if message.tool_call_id is not defined %}{{ raise_exception('tool results need their call id') }}{% endif %}[TOOL_RESULTS]{"content": {{ message.content | tojson }}, "call_id": "{{ message.tool_call_id }}"}[/TOOL_RESULTS]{% endif %}{% endfor %}"""
GLM = """{%- for message in messages %}{% if message.role == 'tool' %}{% if loop.previtem.role != 'tool' %}<|observation|>{% endif %}
<tool_response>
{{ message.content }}
</tool_response>{% elif message.role == 'assistant' %}<|assistant|>
{{ message.content | trim }}{% for call in message.tool_calls %}
<tool_call>{{ call.function.name }}
{{ call.function.arguments | tojson }}
</tool_call>{% endfor %}{% else %}<|{{ message.role }}|>
{{ message.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
PLAIN = """{%- for message in messages %}{{ message.role }}: {{ message.content }}{% for call in message.tool_calls %}CALL {{ call.function.arguments | tojson }}{% endfor %}

{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""

TEMPLATES = {
    "chatml": CHATML,
    "strips_thinking": STRIPS_THINKING,
    "trims": TRIMS,
    "opens_thinking": OPENS_THINKING,
    "clock": CLOCK,
    "reorders_json": REORDERS_JSON,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "glm": GLM,
    "plain": PLAIN,
}
END_OF = {"llama": "<|eot_id|>", "mistral": "</s>", "glm": "<|observation|>", "plain": ""}
"""What a policy samples at the end of a turn; `<|im_end|>` for the rest."""

_SPECIAL = {
    "chatml": ["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
    "llama": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "mistral": ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"],
    "glm": ["<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
    "plain": [],
}
_CORPUS = [
    CHATML,
    PLAIN,
    json.dumps({"name": "terminal", "arguments": {"command": "cat /tmp/answer.txt | grep -n hello"}}),
    "The quick brown fox writes a file, reads it back, and says what it found.\n\n" * 8,
    "<think>\nLet me look at the file first.\n</think>\n\n<tool_call>\n</tool_call><tool_response>\n</tool_response>\n",
    "assistant\nuser\nsystem\ntool\n\n\n  \t:: {} [] 0123456789",
]


@functools.cache
def backend(family: str) -> Tokenizer:
    """A byte-level BPE tokenizer with the special tokens of a template family."""
    tokenizer = Tokenizer(models.BPE())
    # One piece per line and no pre-splitting at punctuation, so that pieces merge across almost any boundary.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in _SPECIAL[family]]
    )
    return tokenizer


def write_tokenizer(folder: Path, name: str) -> Path:
    """Write a model folder: `tokenizer.json`, `tokenizer_config.json` and the template `name`."""
    family = name if name in _SPECIAL else "chatml"
    folder.mkdir(parents=True, exist_ok=True)
    backend(family).save(str(folder / "tokenizer.json"))
    special = _SPECIAL[family]
    config = {"bos_token": special[0], "eos_token": END_OF.get(name, "<|im_end|>")} if special else {}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(TEMPLATES[name])
    return folder
