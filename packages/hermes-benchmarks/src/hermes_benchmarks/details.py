"""What a reward function keeps with its reward, checked before anything of it is written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias

from hermes_envs import Failure, Outcome, Rollout
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

from hermes_benchmarks.record import TestDetail

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_SERIES: TypeAdapter[dict[str, list[tuple[Number, Number]]]] = TypeAdapter(
    dict[str, list[tuple[Number, Number]]]
)
_FIGURES: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class RewardDetails(BaseModel):
    """The keys of a reward's details that land in the trial; the others explain its verdict."""

    tests: list[TestDetail] = []
    files: dict[str, bytes | str] = {}
    info: dict[str, Any] = {}

    @field_validator("info")
    @classmethod
    def _plain(cls, info: dict[str, Any]) -> dict[str, Any]:
        """Only what JSON can hold, and curves that can be drawn."""
        if "series" in info:
            info = {**info, "series": _SERIES.validate_python(info["series"])}
        return _FIGURES.dump_python(info, mode="json")

    @field_validator("files")
    @classmethod
    def _side_by_side(cls, files: dict[str, bytes | str]) -> dict[str, bytes | str]:
        """Only names that files can have at the same time."""
        for name in files:
            path = PurePosixPath(name)
            inside = any(str(parent) in files for parent in path.parents)
            if not path.name or "\0" in name or inside or len(os.fsencode(path.name)) > 255:
                raise ValueError(f"{name!r} cannot be a file beside the others")
        return files


def checked(rollout: Rollout) -> Rollout:
    """The rollout with its reward's details in their plain form.

    Details that cannot be kept are a fault of the reward function: there is no reward then, and the run goes on.
    """
    if not rollout.reward_details:
        return rollout
    known = {name: rollout.reward_details.get(name) for name in RewardDetails.model_fields}
    try:
        found = RewardDetails.model_validate({name: value for name, value in known.items() if value})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        failure = Failure("verifier", "InvalidDetails", f"the reward's details: {where}: {first['msg']}")
        return replace(rollout, outcome=Outcome.infra_failed, reward=None, failure=failure, reward_details={})
    return replace(rollout, reward_details={**rollout.reward_details, **found.model_dump(mode="python")})
