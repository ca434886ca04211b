"""YC-Bench's score, as published and as it should be.

The published composite is 0.5 x survival + 0.5 x normalised funds. It reads survival from the latest
scheduled terminal event; since the horizon's event is scheduled when the world is made, a company that
never lets time pass counts as a survivor and scores 0.575. The headline here is the same formula with
survival only where simulated time really reached the horizon with funds of at least 0 and no bankruptcy on
the way, and is taken after an unfinished run was resumed idle to its end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

INITIAL_FUNDS = 25_000_000
"""Cents. One times this is 0.15 of the funds' half, a hundred times is all of it."""


def normalised_funds(funds_cents: int) -> float:
    """The funds' share of the composite, in 0..1: min(ln(1 + funds / 25,000,000) / ln(101), 1), and 0 below 0."""
    if funds_cents <= 0:
        return 0.0
    return min(math.log1p(funds_cents / INITIAL_FUNDS) / math.log(101), 1.0)


def composite(*, survived: bool, funds_cents: int) -> float:
    """0.5 x survival + 0.5 x normalised funds, in 0..1."""
    return 0.5 * survived + 0.5 * normalised_funds(funds_cents)


@dataclass(frozen=True, slots=True)
class Score:
    """What one run is worth.

    Attributes:
        composite: The headline, in 0..1, after the simulation ended.
        reference_composite: The published formula on the state in which the agent left the simulation.
        survived: Whether the company lived to the horizon.
        incomplete: Whether the agent stopped before the simulation had ended.
        funds_cents: At the end of the simulation.
        funds_cents_left: When the agent stopped.
        sim_time: Simulated time when the agent stopped.
        tasks: Tasks of the company by status.
        commands: Simulator commands that the agent ran.
    """

    composite: float
    reference_composite: float
    survived: bool
    incomplete: bool
    funds_cents: int
    funds_cents_left: int
    sim_time: str
    tasks: Mapping[str, int]
    commands: int

    def to_dict(self) -> dict[str, Any]:
        """As kept in a trial's `info`."""
        return asdict(self)


def score(final: Mapping[str, Any]) -> Score:
    """The score of a finished simulation.

    Args:
        final: The server's answer to `finish`: the state at the end, and under `before` the one in which the
            agent left it.
    """
    before = final["before"]
    survived = bool(final["horizon_reached"]) and not final["bankrupt"] and final["funds_cents"] >= 0
    reference_survived = before["funds_cents"] >= 0 and before["last_terminal_event"] != "bankruptcy"
    # A company that went bankrupt keeps nothing, also where it was kept running afterwards.
    kept = 0 if final["bankrupt"] else int(final["funds_cents"])
    return Score(
        composite=composite(survived=survived, funds_cents=kept),
        reference_composite=composite(survived=reference_survived, funds_cents=int(before["funds_cents"])),
        survived=survived,
        incomplete=not (before["horizon_reached"] or before["bankrupt"]),
        funds_cents=int(final["funds_cents"]),
        funds_cents_left=int(before["funds_cents"]),
        sim_time=str(before["sim_time"]),
        tasks=dict(final["tasks"]),
        commands=int(final["commands"]),
    )
