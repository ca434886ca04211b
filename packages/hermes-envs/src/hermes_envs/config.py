"""Configuration: defaults, overridden by a YAML file, overridden by the command line.

One function serves environments and benchmarks. Keys on the command line are dotted (`env.max_agent_turns`);
lists and dicts are JSON, lists may also be separated by commas.
"""

from __future__ import annotations

import difflib
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from hermes_envs.outcome import EnvsError

if typing.TYPE_CHECKING:
    from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound="BaseModel")


class ConfigError(EnvsError, ValueError):
    """A configuration that cannot be used; the message names the file or flag and the key."""


def load_config(
    cls: type[ModelT],
    yaml_path: str | Path | None = None,
    dotted: Mapping[str, Any] | None = None,
    *,
    defaults: ModelT | Mapping[str, Any] | None = None,
) -> ModelT:
    """Read a configuration.

    Args:
        cls: The pydantic model; nested models are sections.
        yaml_path: A YAML file, None for none.
        dotted: Overrides by dotted key. Text is read by the field's type: numbers, booleans, JSON, or a list
            separated by commas. Values of other types are taken as they are.
        defaults: Lowest layer, over the model's own defaults.

    Raises:
        ConfigError: A file that is missing or no YAML mapping, an unknown key (the nearest is named), a value that
            does not fit.
    """
    layers: dict[str, Any] = {}
    if defaults is not None:
        base = defaults if isinstance(defaults, Mapping) else defaults.model_dump(exclude_unset=True)
        _merge(layers, base)
    if yaml_path is not None:
        content = read_yaml(yaml_path)
        check_keys(cls, content, str(yaml_path))
        _merge(layers, content)
    for key, value in (dotted or {}).items():
        _set(cls, layers, key, value)
    return _validated(cls, layers, yaml_path)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; an empty file is an empty one.

    Raises:
        ConfigError: It cannot be read, or holds something else.
    """
    import yaml

    try:
        content: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a mapping of sections, not a {type(content).__name__}")
    return cast("dict[str, Any]", content)


def check_keys(cls: type[BaseModel], content: Any, where: str, prefix: str = "") -> None:
    """Refuse what is no mapping, and keys that the model does not have.

    Raises:
        ConfigError: Names the nearest key for an unknown one.
    """
    names = _names(cls)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{prefix.rstrip('.')} in {where} must be a mapping, not {content!r}")
    for key, value in cast("Mapping[str, Any]", content).items():
        if key not in names:
            raise _unknown(f"{prefix}{key}", [prefix + name for name in names], where)
        inner = _model(names[key])
        if inner is not None and isinstance(value, Mapping):
            check_keys(inner, value, where, f"{prefix}{key}.")


def dotted_keys(cls: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Every dotted key of a model and its type's annotation."""
    keys: dict[str, Any] = {}
    for name, annotation in _names(cls).items():
        inner = _model(annotation)
        if inner is None:
            keys[prefix + name] = annotation
        else:
            keys |= dotted_keys(inner, f"{prefix}{name}.")
    return keys


def _set(cls: type[BaseModel], layers: dict[str, Any], key: str, value: Any) -> None:
    """Set one dotted key; below a plain dict field any key goes."""
    model: type[BaseModel] | None = cls
    target = layers
    parts = key.split(".")
    annotation: Any = Any
    for depth, part in enumerate(parts):
        if model is not None:
            names = _names(model)
            if part not in names:
                raise _unknown(key, list(dotted_keys(cls)), "the command line")
            annotation = names[part]
            model = _model(annotation)
            if model is None and depth < len(parts) - 1 and not _accepts(annotation, dict):
                raise _unknown(key, list(dotted_keys(cls)), "the command line")
        else:
            annotation = Any
        if depth == len(parts) - 1:
            target[part] = _read(value, annotation, key)
        else:
            inner = target.get(part)
            target[part] = target = (
                dict(cast("Mapping[str, Any]", inner)) if isinstance(inner, Mapping) else {}
            )


def _read(value: Any, annotation: Any, key: str) -> Any:
    """The value of a text from the command line, by the field's type."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (
        text.lower() in ("null", "none")
        and _accepts(annotation, type(None))
        and text not in _words(annotation)
    ):
        return None
    collection = next((kind for kind in (list, tuple, set, dict) if _accepts(annotation, kind)), None)
    if collection is not None and (text[:1] in "[{" or not _accepts(annotation, str)):
        return _read_collection(text, collection, key)
    if annotation is Any:
        try:
            return json.loads(text)
        except ValueError:
            return value
    return value


def _read_collection(text: str, collection: type, key: str) -> Any:
    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(f"{key}: not valid JSON: {error}") from None
    if collection is dict:
        raise ConfigError(f'{key} takes a JSON object, such as \'{{"name": "value"}}\', not {text!r}')
    return [item.strip() for item in text.split(",") if item.strip()]


def _validated(cls: type[ModelT], layers: Mapping[str, Any], yaml_path: str | Path | None) -> ModelT:
    import pydantic

    try:
        return cls.model_validate(layers)
    except pydantic.ValidationError as error:
        lines = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        where = f" (from {yaml_path} and the command line)" if yaml_path else ""
        raise ConfigError(f"the configuration does not fit{where}: " + "; ".join(lines)) from error


def _merge(target: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        old = target.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            _merge(cast("dict[str, Any]", old), cast("Mapping[str, Any]", value))
        else:
            target[key] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


def _names(cls: type[BaseModel]) -> dict[str, Any]:
    """Field names and aliases of a model, with their annotations."""
    names: dict[str, Any] = {}
    for name, info in cls.model_fields.items():
        names[name] = info.annotation
        if info.alias:
            names[info.alias] = info.annotation
    return names


def _options(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation itself; `Annotated` is looked through."""
    if get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(option for member in get_args(annotation) for option in _options(member))
    return (annotation,)


def _accepts(annotation: Any, kind: type) -> bool:
    return any((get_origin(option) or option) in _like(kind) for option in _options(annotation))


def _words(annotation: Any) -> set[Any]:
    """The values that the literals among an annotation's options allow."""
    literals = [option for option in _options(annotation) if get_origin(option) is typing.Literal]
    return {word for literal in literals for word in get_args(literal)}


def _like(kind: type) -> tuple[Any, ...]:
    import collections.abc as abc

    if kind is list:
        return (list, abc.Sequence, abc.MutableSequence)
    if kind is set:
        return (set, frozenset)
    return (dict, abc.Mapping, abc.MutableMapping) if kind is dict else (kind,)


def _model(annotation: Any) -> type[BaseModel] | None:
    """The pydantic model among the options of an annotation."""
    from pydantic import BaseModel

    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def _unknown(key: str, known: list[str], where: str) -> ConfigError:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
    if not near:
        tails = {name.rsplit(".", 1)[-1]: name for name in known}
        near = [tails[tail] for tail in difflib.get_close_matches(key.rsplit(".", 1)[-1], list(tails), n=1)]
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"
    return ConfigError(f"unknown key {key!r} in {where}{hint}")
