"""Declarations: their markers can be told apart, and names and models lead to them."""

import pytest
from hermes_parsers import catalog, get_parser, list_parsers, parser_for_model
from hermes_parsers.testing import load_cases


@pytest.mark.parametrize("name", list_parsers())
def test_no_marker_hides_inside_another(name):
    format = catalog.load(name)
    ends = [word for pair in format.thinking for word in pair]
    words = {*format.openers, *format.lenient_openers, *format.closers, *format.end_of_turn, *ends}
    for word in words:
        for other in words - {word}:
            assert word not in other[1:-1], (word, other)


def test_names():
    eleven = (
        "hermes mistral llama3_json qwen qwen3_coder deepseek_v3 deepseek_v3_1 kimi_k2 longcat glm45 glm47"
    )
    more = (
        "deepseek_v3_2 deepseek_v4 deepseek_v4_1 pythonic llama4_pythonic olmo3 lfm2 granite granite4 granite_20b_fc "
        "gpt_oss minimax_m2 step3 internlm jamba hunyuan_a13b hunyuan_v3 phi4_mini xlam qwen3_xml seed_oss ernie45 "
        "gigachat3 nemotron mimo gemma4 functiongemma"
    )
    assert list_parsers() == sorted((eleven + " " + more).split())
    for alias, name in catalog.ALIASES.items():
        assert get_parser(alias).name == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen"),
        ("Qwen/Qwen3.5-397B", "qwen3_coder"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen"),
        ("Qwen/QwQ-32B", "qwen"),
        ("NousResearch/Hermes-4-405B", "hermes"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json"),
        ("meta-llama/Llama-3.2-3B-Instruct", "pythonic"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral"),
        ("mistralai/Devstral-Small-2507", "mistral"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "hermes"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v3_1"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v3_1"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v3_2"),
        ("deepseek-ai/DeepSeek-V4", "deepseek_v4"),
        ("deepseek-ai/DeepSeek-V4.1", "deepseek_v4_1"),
        ("moonshotai/Kimi-K2-Thinking", "kimi_k2"),
        ("zai-org/GLM-4.5-Air", "glm45"),
        ("zai-org/GLM-4.6", "glm45"),
        ("zai-org/GLM-4.7", "glm47"),
        ("zai-org/GLM-5", "glm47"),
        ("meituan-longcat/LongCat-Flash-Chat", "longcat"),
        ("openai/gpt-oss-120b", "gpt_oss"),
        ("MiniMaxAI/MiniMax-M2", "minimax_m2"),
        ("stepfun-ai/step3", "step3"),
        ("stepfun-ai/Step-3.5-Flash", "qwen3_coder"),
        ("internlm/internlm2_5-7b-chat", "internlm"),
        ("internlm/Intern-S1", "internlm"),
        ("ai21labs/AI21-Jamba-Mini-1.6", "jamba"),
        ("tencent/Hunyuan-A13B-Instruct", "hunyuan_a13b"),
        ("microsoft/Phi-4-mini-instruct", "phi4_mini"),
        ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss"),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45"),
        ("ai-sage/GigaChat3-10B-A1.8B", "gigachat3"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nemotron"),
        ("XiaomiMiMo/MiMo-V2-Flash", "mimo"),
        ("google/gemma-4-27b-it", "gemma4"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("ibm-granite/granite-3.1-8b-instruct", "granite"),
        ("ibm-granite/granite-4.0-h-small", "granite4"),
        ("ibm-granite/granite-20b-functioncalling", "granite_20b_fc"),
        ("allenai/Olmo-3-7B-Instruct", "olmo3"),
        ("LiquidAI/LFM2-1.2B", "lfm2"),
        ("Team-ACE/ToolACE-8B", "pythonic"),
        ("/models/qwen3-coder-30b/", "qwen3_coder"),
        ("some/unknown-model", None),
    ],
)
def test_models(model, name):
    assert parser_for_model(model) == name


def test_new_ids_and_native_ids():
    text = '<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "f"}</tool_call>'
    ids = iter(["one", "two"])
    calls = get_parser("hermes", new_id=lambda: next(ids)).extract_tool_calls(text)
    assert [call.id for call in calls] == ["one", "two"]
    invented = [call.id for call in get_parser("hermes").extract_tool_calls(text)]
    assert len(set(invented)) == 2 and all(id.startswith("call_") for id in invented)
    mistral = get_parser("mistral").extract_tool_calls("[TOOL_CALLS]f[ARGS]{}")[0].id
    assert len(mistral) == 9 and mistral.isalnum()


def test_the_handed_corpus_is_whole():
    handed = [case for case in load_cases() if not case.id.startswith("own-")]
    assert len(handed) == 186
