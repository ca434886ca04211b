"""Finding objects by name, and names by what was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module


def load_object(reference: str) -> object:
    """The object that `module:qualified.name` names."""
    module, _, name = reference.partition(":")
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def reference_of(cls: type) -> str:
    """The `module:qualified.name` of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing where no known name is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
