"""Configurations without their secrets, for printing and for files."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

_SECRET = re.compile(
    r"(^|[_-])keys?$|(api|access|private|secret).?key|token([_-]?id)?$|secret|pass(word|wd|phrase)?$|credential"
    r"|auth$|auth[_-]|authorization|bearer|cookie|signature$|^sig$",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#\s]+)=([^&;#\s]+)")
_HIDDEN = "***"


def redacted(value: Any, *, name: str = "") -> Any:
    """Plain data in which everything below a name like a secret's is hidden, and what URLs carry of the kind.

    Environment variables are hidden whatever they are called: they are how secrets reach sandboxes.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if _SECRET.search(name) or (name.endswith("env") and isinstance(value, Mapping)):
        return _hidden(value)
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        return {key: redacted(entry, name=str(key)) for key, entry in inner.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [redacted(entry, name=name) for entry in cast("Sequence[Any]", value)]
    return _PARAMETER.sub(_parameter, _LOGIN.sub(f"{_HIDDEN}@", value)) if isinstance(value, str) else value


def _hidden(value: Any) -> Any:
    """The same shape with nothing in it; what is empty, and truth values, say nothing."""
    if isinstance(value, Mapping):
        return {key: _hidden(entry) for key, entry in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_hidden(entry) for entry in cast("Sequence[Any]", value)]
    return _HIDDEN if value and not isinstance(value, bool) else value


def _parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={_HIDDEN}" if _SECRET.search(found[1]) else found[0]
