"""Which formats there are, in which module each is declared, and which models write it. Nothing is imported here."""

from __future__ import annotations

import re
from importlib import import_module

from hermes_parsers.format import Format

_MODULES: dict[str, str] = {
    "hermes": "hermes qwen longcat granite granite4 granite_20b_fc jamba hunyuan_a13b ernie45 internlm phi4_mini",
    "mistral": "mistral",
    "sections": "deepseek_v3 deepseek_v3_1 kimi_k2",
    "bare": "llama3_json xlam gigachat3",
    "tagged": "qwen3_coder qwen3_xml mimo seed_oss glm45 glm47 minimax_m2 step3 hunyuan_v3 nemotron "
    "deepseek_v3_2 deepseek_v4 deepseek_v4_1",
    "pythonic": "pythonic llama4_pythonic olmo3 lfm2",
    "harmony": "gpt_oss",
    "gemma": "gemma4 functiongemma",
}

FORMATS: dict[str, str] = {name: module for module, names in _MODULES.items() for name in names.split()}
"""Module in `hermes_parsers.formats` that declares each format."""

ALIASES: dict[str, str] = {
    "llama4_json": "llama3_json",
    "llama3": "llama3_json",
    "qwen25": "qwen",
    "qwen2_5": "qwen",
    "qwen3": "qwen",
    "qwen3_json": "qwen",
    "qwen3_5": "qwen3_coder",
    "step3p5": "qwen3_coder",
    "deepseek_v31": "deepseek_v3_1",
    "deepseekv3": "deepseek_v3",
    "deepseekv31": "deepseek_v3_1",
    "deepseek_r1": "deepseek_v3",
    "deepseek_v32": "deepseek_v3_2",
    "deepseekv32": "deepseek_v3_2",
    "deepseek_v41": "deepseek_v4_1",
    "glm": "glm45",
    "glm46": "glm45",
    "glm4_moe": "glm45",
    "glm5": "glm47",
    "openai": "gpt_oss",
    "harmony": "gpt_oss",
    "granite-20b-fc": "granite_20b_fc",
    "phi4_mini_json": "phi4_mini",
    "minimax": "minimax_m2",
    "minimax-m2": "minimax_m2",
    "internlm2": "internlm",
    "interns1": "internlm",
    "llama4": "llama4_pythonic",
    "llama3_pythonic": "pythonic",
    "toolace": "pythonic",
    "kimi": "kimi_k2",
    "nemotron_json": "nemotron",
    "hunyuan": "hunyuan_a13b",
    "gigachat": "gigachat3",
    "ernie": "ernie45",
}
"""Other names of formats, mostly those that inference servers use."""

_MODELS: tuple[tuple[str, str], ...] = (
    (r"gpt-?oss", "gpt_oss"),
    (r"hermes-?[23]|hermes-4|nous-hermes|deephermes", "hermes"),
    (r"longcat", "longcat"),
    (r"nemotron", "nemotron"),
    (r"seed-?oss", "seed_oss"),
    (r"mimo", "mimo"),
    (r"qwen-?3?-?coder|qwen3-coder|qwen3\.[5-9]|qwen-?3-next-coder|step-?3[.p-]?5|step-?5", "qwen3_coder"),
    (r"qwen2\.5-coder", "hermes"),
    (r"step-?3", "step3"),
    (r"deepseek-?v?4[.-]1", "deepseek_v4_1"),
    (r"deepseek-?v?4", "deepseek_v4"),
    (r"deepseek-?v?3[.-]2-exp", "deepseek_v3_1"),
    (r"deepseek-?v?3[.-]2", "deepseek_v3_2"),
    (r"deepseek-?v?3[.-]1", "deepseek_v3_1"),
    (r"deepseek.*qwen|deepseek.*distill", "hermes"),
    (r"deepseek-?(v?3|r1)", "deepseek_v3"),
    (r"kimi", "kimi_k2"),
    (r"glm-?(4\.[7-9]|[5-9])", "glm47"),
    (r"glm-?4\.[56]", "glm45"),
    (r"minimax", "minimax_m2"),
    (r"granite-20b-functioncalling", "granite_20b_fc"),
    (r"granite-?4", "granite4"),
    (r"granite", "granite"),
    (r"xlam", "xlam"),
    (r"toolace", "pythonic"),
    (r"llama-?4", "llama4_pythonic"),
    (r"llama-?3[.-]2-[13]b", "pythonic"),
    (r"llama-?3", "llama3_json"),
    (r"olmo-?3", "olmo3"),
    (r"lfm-?2", "lfm2"),
    (r"internlm|intern-s1", "internlm"),
    (r"jamba", "jamba"),
    (r"(hunyuan|hy)-?(v?3)", "hunyuan_v3"),
    (r"hunyuan", "hunyuan_a13b"),
    (r"phi-?4-mini", "phi4_mini"),
    (r"ernie-?4\.5|ernie", "ernie45"),
    (r"gigachat-?3|gigachat", "gigachat3"),
    (r"functiongemma", "functiongemma"),
    (r"gemma-?4", "gemma4"),
    (r"qwen3|qwen2\.5|qwq|qwen", "qwen"),
    (r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral|voxtral", "mistral"),
)
"""Rules over a model's name in lower case with `_` as `-`; the first that matches decides."""


def load(name: str) -> Format:
    """The declaration of a built-in format."""
    return import_module(f"hermes_parsers.formats.{FORMATS[name]}").FORMATS[name]


def format_of(model: str) -> str | None:
    """The format of the first rule that matches the model's name."""
    path = model.strip().lower().replace("_", "-").rstrip("/")
    for name in (path.rpartition("/")[2], path):
        for pattern, format in _MODELS:
            if re.search(pattern, name):
                return format
    return None
