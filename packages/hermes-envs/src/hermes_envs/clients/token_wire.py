"""The token-in, token-out requests of the servers that policies are sampled from.

Each wire names its path, writes a request from ids and sampling parameters, and reads the answer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from hermes_envs.clients.errors import BadResponse, ProviderUnavailable


@dataclass(frozen=True, slots=True)
class Sample:
    """What a server sampled: ids, one log-probability each, and why it stopped."""

    ids: list[int]
    logprobs: list[float]
    finish_reason: str
    weight_version: str | None = None


class TokenWire(Protocol):
    """One server's way of being asked."""

    @property
    def path(self) -> str:
        """Path of the route, from the server's root."""
        ...

    def request(self, model: str, ids: Sequence[int], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON body that asks for one sample."""
        ...

    def read(self, answer: Any) -> Sample:
        """The sample in the server's answer; KeyError, IndexError, TypeError or ValueError where it has none."""
        ...


class VllmWire:
    """vLLM's own `POST /inference/v1/generate` (`vllm serve`, since its disaggregated serving API)."""

    path = "/inference/v1/generate"

    def request(self, model: str, ids: Sequence[int], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON body that asks for one sample."""
        parameters = {"logprobs": 0, "skip_special_tokens": False, **sampling, "n": 1}
        return {"model": model, "token_ids": list(ids), "sampling_params": parameters, "stream": False}

    def read(self, answer: Any) -> Sample:
        """The sample in the server's answer."""
        choice = answer["choices"][0]
        entries = choice["logprobs"]["content"]
        return Sample(
            [int(token) for token in choice["token_ids"]],
            [float(entry["logprob"]) for entry in entries],
            _finish(choice.get("finish_reason")),
            _version(answer),
        )


class AtroposWire:
    """The `POST /generate` of Atropos' example vLLM server, and of servers written after it."""

    path = "/generate"

    def request(self, model: str, ids: Sequence[int], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON body that asks for one sample."""
        return {"prompt": {"prompt_token_ids": list(ids)}, "logprobs": 0, **sampling, "n": 1}

    def read(self, answer: Any) -> Sample:
        """The sample in the server's answer: each position is `[{"<id>": logprob}]`."""
        sampled: list[int] = []
        logprobs: list[float] = []
        for position in answer["logprobs"][0]:
            ((token, logprob),) = _first(position).items()
            sampled.append(int(token))
            logprobs.append(float(logprob))
        return Sample(sampled, logprobs, _finish(answer["finish_reasons"][0]), _version(answer))


class SglangWire:
    """SGLang's `POST /generate`."""

    path = "/generate"

    def request(self, model: str, ids: Sequence[int], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON body that asks for one sample."""
        parameters = {"skip_special_tokens": False, **sampling}
        if "max_tokens" in parameters:
            parameters["max_new_tokens"] = parameters.pop("max_tokens")
        if "seed" in parameters:
            parameters["sampling_seed"] = parameters.pop("seed")
        return {"input_ids": list(ids), "sampling_params": parameters, "return_logprob": True}

    def read(self, answer: Any) -> Sample:
        """The sample in the server's answer: each position is `[logprob, id, text]`."""
        meta = _first(answer)["meta_info"]
        entries = meta["output_token_logprobs"]
        return Sample(
            [int(entry[1]) for entry in entries],
            [float(entry[0]) for entry in entries],
            _finish(meta.get("finish_reason")),
            _version(meta),
        )


WIRES: Mapping[str, type[TokenWire]] = {"vllm": VllmWire, "atropos": AtroposWire, "sglang": SglangWire}
"""The wires by name."""


def read_sample(wire: TokenWire, answer: Any) -> Sample:
    """Read an answer and hold it to what a trainer relies on.

    Raises:
        BadResponse: It is not of the expected form, ids and logprobs do not align, or a logprob is no number.
        ProviderUnavailable: The server gave up (an aborted request).
    """
    try:
        sample = wire.read(answer)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise BadResponse(f"the answer of {wire.path} has no sampled ids with logprobs: {error!r}") from error
    if sample.finish_reason == "abort":
        raise ProviderUnavailable("the server aborted the request")
    if len(sample.ids) != len(sample.logprobs):
        raise BadResponse(f"{len(sample.ids)} sampled ids but {len(sample.logprobs)} logprobs in the answer")
    if not all(map(math.isfinite, sample.logprobs)):
        raise BadResponse("a logprob in the answer is not finite: the policy's weights may hold NaN")
    return sample


def _first(value: Any) -> Any:
    """Servers answer with one entry, or with a list of one."""
    return cast("list[Any]", value)[0] if isinstance(value, list) else value


def _finish(reason: Any) -> str:
    """SGLang gives a dict with a type, the others a word."""
    word = cast("dict[str, Any]", reason).get("type") if isinstance(reason, dict) else reason
    return str(word) if word else "stop"


def _version(answer: Mapping[str, Any]) -> str | None:
    version = answer.get("weight_version")
    return None if version is None else str(version)
