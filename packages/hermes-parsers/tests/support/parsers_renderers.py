"""How each format writes calls: our reading of the models' chat templates, for round trips.

A renderer takes `(name, arguments)` pairs and returns the wire text. `TEXT_VALUES` names the formats whose wire has no
escaping, so that a value must not contain the format's own tags.
"""

import json
from collections.abc import Callable
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def objects(calls: Calls, key: str = "arguments") -> list[str]:
    return [dump({"name": name, key: arguments}) for name, arguments in calls]


def tagged_json(start: str, end: str, between: str = "\n") -> Callable[[Calls], str]:
    return lambda calls: between.join(f"{start}\n{each}\n{end}" for each in objects(calls))


def array(start: str, end: str) -> Callable[[Calls], str]:
    return lambda calls: f"{start}[{', '.join(objects(calls))}]{end}"


def mistral(calls: Calls) -> str:
    return "".join(f"[TOOL_CALLS]{name}[ARGS]{dump(arguments)}" for name, arguments in calls)


def deepseek_v3(calls: Calls) -> str:
    parts = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{dump(arguments)}\n```<｜tool▁call▁end｜>"
        for name, arguments in calls
    ]
    return "<｜tool▁calls▁begin｜>" + "\n".join(parts) + "<｜tool▁calls▁end｜>"


def deepseek_v3_1(calls: Calls) -> str:
    parts = [
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{dump(arguments)}<｜tool▁call▁end｜>"
        for name, arguments in calls
    ]
    return "<｜tool▁calls▁begin｜>" + "".join(parts) + "<｜tool▁calls▁end｜>"


def kimi(calls: Calls) -> str:
    parts = [
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{dump(arguments)}<|tool_call_end|>"
        for index, (name, arguments) in enumerate(calls)
    ]
    return "<|tool_calls_section_begin|>" + "".join(parts) + "<|tool_calls_section_end|>"


def harmony(calls: Calls) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dump(arguments)}<|call|>"
        for name, arguments in calls
    )


def plain(value: Any) -> str:
    return value if isinstance(value, str) else dump(value)


def qwen3_coder(start: str = "<tool_call>", end: str = "</tool_call>") -> Callable[[Calls], str]:
    def render(calls: Calls) -> str:
        blocks: list[str] = []
        for name, arguments in calls:
            parameters = "".join(
                f"<parameter={key}>\n{plain(value)}\n</parameter>\n" for key, value in arguments.items()
            )
            blocks.append(f"{start}\n<function={name}>\n{parameters}</function>\n{end}")
        return "\n".join(blocks)

    return render


def glm(gap: str) -> Callable[[Calls], str]:
    def render(calls: Calls) -> str:
        blocks: list[str] = []
        for name, arguments in calls:
            pairs = "".join(
                f"<arg_key>{key}</arg_key>{gap}<arg_value>{plain(value)}</arg_value>{gap}"
                for key, value in arguments.items()
            )
            blocks.append(f"<tool_call>{name}{gap}{pairs}</tool_call>")
        return gap.join(blocks)

    return render


def hunyuan_v3(calls: Calls) -> str:
    blocks: list[str] = []
    for name, arguments in calls:
        pairs = "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{plain(value)}</arg_value>\n"
            for key, value in arguments.items()
        )
        blocks.append(f"<tool_call>{name}<tool_sep>\n{pairs}</tool_call>\n")
    return "<tool_calls>\n" + "".join(blocks) + "</tool_calls>"


def minimax(calls: Calls) -> str:
    blocks: list[str] = []
    for name, arguments in calls:
        parameters = "\n".join(
            f'<parameter name="{key}">{plain(value)}</parameter>' for key, value in arguments.items()
        )
        blocks.append(f'<invoke name="{name}">\n{parameters}\n</invoke>\n')
    return "<minimax:tool_call>\n" + "".join(blocks) + "</minimax:tool_call>"


def dsml(token: str, wrapper: str) -> Callable[[Calls], str]:
    def render(calls: Calls) -> str:
        blocks: list[str] = []
        for name, arguments in calls:
            parameters = "".join(
                f'<{token}parameter name="{key}" string="{dump(isinstance(value, str))}">{plain(value)}'
                f"</{token}parameter>\n"
                for key, value in arguments.items()
            )
            blocks.append(f'<{token}invoke name="{name}">\n{parameters}</{token}invoke>\n')
        return f"<{token}{wrapper}>\n" + "".join(blocks) + f"</{token}{wrapper}>"

    return render


def step3(calls: Calls) -> str:
    blocks: list[str] = []
    for name, arguments in calls:
        parameters = "".join(
            f'<steptml:parameter name="{key}">{plain(value)}</steptml:parameter>'
            for key, value in arguments.items()
        )
        blocks.append(
            f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{parameters}'
            "</steptml:invoke><｜tool_call_end｜>"
        )
    return "<｜tool_calls_begin｜>" + "".join(blocks) + "<｜tool_calls_end｜>"


def python_calls(calls: Calls, between: str) -> str:
    return between.join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    )


def gemma(quote: str) -> Callable[[Any], str]:
    def value(item: Any) -> str:
        if isinstance(item, str):
            return f"{quote}{item}{quote}"
        if isinstance(item, dict):
            return "{" + ",".join(f"{key}:{value(each)}" for key, each in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ",".join(map(value, item)) + "]"
        return dump(item)

    return value


def gemma_calls(start: str, end: str, quote: str) -> Callable[[Calls], str]:
    value = gemma(quote)
    return lambda calls: "".join(f"{start}call:{name}{value(arguments)}{end}" for name, arguments in calls)


_QWEN = tagged_json("<tool_call>", "</tool_call>")

RENDERERS: dict[str, Callable[[Calls], str]] = {
    "hermes": _QWEN,
    "qwen": _QWEN,
    "granite4": _QWEN,
    "ernie45": _QWEN,
    "longcat": tagged_json("<longcat_tool_call>", "</longcat_tool_call>"),
    "granite": array("<|tool_call|>", ""),
    "granite_20b_fc": lambda calls: "".join(f"<function_call> {each}" for each in objects(calls)),
    "jamba": array("<tool_calls>", "</tool_calls>"),
    "hunyuan_a13b": array("<tool_calls>", "</tool_calls>"),
    "nemotron": array("<TOOLCALL>", "</TOOLCALL>"),
    "phi4_mini": array("functools", ""),
    "xlam": array("", ""),
    "internlm": lambda calls: "".join(
        f"<|action_start|><|plugin|>{each}<|action_end|>" for each in objects(calls, "parameters")
    ),
    "llama3_json": lambda calls: "<|python_tag|>" + "; ".join(objects(calls, "parameters")),
    "gigachat3": lambda calls: "".join(f"<|function_call|>{each}" for each in objects(calls)),
    "mistral": mistral,
    "deepseek_v3": deepseek_v3,
    "deepseek_v3_1": deepseek_v3_1,
    "kimi_k2": kimi,
    "gpt_oss": harmony,
    "qwen3_coder": qwen3_coder(),
    "qwen3_xml": qwen3_coder(),
    "mimo": qwen3_coder(),
    "seed_oss": qwen3_coder("<seed:tool_call>", "</seed:tool_call>"),
    "glm45": glm("\n"),
    "glm47": glm(""),
    "hunyuan_v3": hunyuan_v3,
    "minimax_m2": minimax,
    "deepseek_v3_2": dsml("｜DSML｜", "function_calls"),
    "deepseek_v4": dsml("｜DSML｜", "tool_calls"),
    "deepseek_v4_1": dsml("｜DSML｜ ", "calls"),
    "step3": step3,
    "pythonic": lambda calls: f"[{python_calls(calls, ', ')}]",
    "llama4_pythonic": lambda calls: f"<|python_start|>[{python_calls(calls, ', ')}]<|python_end|>",
    "olmo3": lambda calls: f"<function_calls>{python_calls(calls, chr(10))}</function_calls>",
    "lfm2": lambda calls: f"<|tool_call_start|>[{python_calls(calls, ', ')}]<|tool_call_end|>",
    "gemma4": gemma_calls("<|tool_call>", "<tool_call|>", '<|"|>'),
    "functiongemma": gemma_calls("<start_function_call>", "<end_function_call>", "<escape>"),
}
"""The wire text of calls, by format."""

TEXT_VALUES = frozenset(
    [
        "qwen3_coder",
        "qwen3_xml",
        "mimo",
        "seed_oss",
        "glm45",
        "glm47",
        "hunyuan_v3",
        "minimax_m2",
        "deepseek_v3_2",
        "deepseek_v4",
        "deepseek_v4_1",
        "step3",
        "gemma4",
        "functiongemma",
    ]
)
