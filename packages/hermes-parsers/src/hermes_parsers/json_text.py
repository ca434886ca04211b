"""Decoding and checking JSON text without surprises: strict, bounded, and never raising anything but ValueError."""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 128
"""Deepest nesting of arrays and objects that arguments may have.

Python's decoder recurses and fails at a depth that depends on its caller, so the limit is ours."""


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    # Python refuses to convert more than 4,300 digits at once.
    return int(digits) if len(digits) < 4000 else float(digits)


_STRICT = json.JSONDecoder(parse_constant=_constant)
_LONG = json.JSONDecoder(parse_constant=_constant, parse_int=_integer)


def decode(text: str) -> Any:
    """The value of JSON `text`.

    Raises:
        ValueError: It is not JSON (`NaN` and `Infinity` are not), or it is nested too deeply to decode.
    """
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        if "is not JSON" in str(error):
            raise
        return _LONG.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode(value: Any) -> str:
    """JSON text of `value`, with text as it is rather than escaped."""
    return json.dumps(value, ensure_ascii=False)


def decode_string(text: str) -> str | None:
    """The value of the JSON string `text`, quotes included; None when it is none."""
    inside = text[1:-1]
    if text[:1] == '"' == text[-1:] and inside.isprintable() and "\\" not in inside and '"' not in inside:
        return inside
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
