"""Configurations without their secrets, for printing and for files."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

_SECRET = re.compile(r"api_?key|token$|secret|password|passwd|credential|authorization|bearer", re.IGNORECASE)
_HIDDEN = "***"


def redacted(value: Any, *, name: str = "") -> Any:
    """Plain data in which the value of everything named like a secret is hidden.

    Environment variables are hidden whatever they are called: they are how secrets reach sandboxes; so are keys.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        if name.endswith("env") or name == "keys":
            return dict.fromkeys(inner, _HIDDEN)
        return {key: redacted(entry, name=str(key)) for key, entry in inner.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [redacted(entry, name=name) for entry in cast("Sequence[Any]", value)]
    if isinstance(value, str) and value:
        if _SECRET.search(name):
            return _HIDDEN
        return re.sub(r"(?<=://)[^/@\s]+@", f"{_HIDDEN}@", value)
    return value
