"""The task and the policy's language: read a sign, then open the door that it names."""

import json
from pathlib import Path

from hermes_envs.tokens import FolderTokenizer

DOORS = ("red", "green", "blue", "black")
ASK = "Open the door named on the sign."
ASK_SIGN = "What does the sign say?"
TEMPLATE = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SPECIAL = ["<|im_start|>", "<|im_end|>"]


def call(name: str, **arguments: str) -> str:
    """A tool call as the policy writes it."""
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def conversation(sign: str, door: str) -> list[tuple[str, str]]:
    """Who says what when the policy knows the form of the task; whether it opens the right door is another matter."""
    return [
        ("user", ASK),
        ("assistant", call("read_sign")),
        ("tool", json.dumps({"result": sign})),
        ("assistant", call("open_door", color=door)),
        ("tool", json.dumps({"result": "open"})),
        ("assistant", "Done."),
    ]


def sign_conversation(sign: str) -> list[tuple[str, str]]:
    """A skill that the warm start teaches beside the form of the task: saying what was read."""
    return [
        ("user", ASK_SIGN),
        ("assistant", call("read_sign")),
        ("tool", json.dumps({"result": sign})),
        ("assistant", f"It says {sign}."),
    ]


def text(spoken: list[tuple[str, str]]) -> str:
    """The conversation as the template writes it."""
    return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in spoken)


def write_tokenizer(folder: Path) -> FolderTokenizer:
    """Train a byte-level BPE on the task's conversations and write a model folder."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    # No split at spaces: the fixed parts of a call become single tokens, and a rollout some ten of them.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=350, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    spoken = [content for sign in DOORS for door in DOORS for _, content in conversation(sign, door)]
    spoken += [content for sign in DOORS for _, content in sign_conversation(sign)]
    tokenizer.train_from_iterator([*spoken, "assistant\n", "user\n", "tool\n"] * 4, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return FolderTokenizer(folder)
