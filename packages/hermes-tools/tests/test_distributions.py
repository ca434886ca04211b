"""Distributions over toolsets."""

import math
import random

import pytest
from hermes_tools import (
    DISTRIBUTIONS,
    Distribution,
    ToolDefinitionError,
    UnknownToolsetError,
    default_registry,
    load_distributions,
    sample_toolsets_from_distribution,
)


def test_the_seventeen_names():
    assert set(DISTRIBUTIONS) == {
        "default",
        "image_gen",
        "research",
        "science",
        "development",
        "safe",
        "balanced",
        "minimal",
        "terminal_only",
        "terminal_web",
        "creative",
        "reasoning",
        "browser_use",
        "browser_only",
        "browser_tasks",
        "terminal_tasks",
        "mixed_tasks",
    }
    for distribution in DISTRIBUTIONS.values():
        assert set(distribution.toolsets) <= set(default_registry().toolsets)
    assert DISTRIBUTIONS["development"].toolsets == {"terminal": 0.8, "file": 0.8, "web": 0.3, "vision": 0.1}


def test_a_seed_repeats_a_draw():
    draws = [sample_toolsets_from_distribution("balanced", random.Random(seed)) for seed in range(50)]
    assert draws == [sample_toolsets_from_distribution("balanced", random.Random(seed)) for seed in range(50)]
    assert len({tuple(draw) for draw in draws}) > 5


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_frequencies_are_the_probabilities_written(name):
    toolsets = DISTRIBUTIONS[name].toolsets
    rng = random.Random(7)
    draws = [sample_toolsets_from_distribution(name, rng) for _ in range(4_000)]
    assert all(draws)
    best = max(toolsets, key=toolsets.__getitem__)
    nothing = math.prod(1 - p for p in toolsets.values())
    for toolset, probability in toolsets.items():
        expected = probability + (nothing if toolset == best else 0)
        seen = sum(toolset in draw for draw in draws) / len(draws)
        assert abs(seen - expected) < 0.03, toolset


def test_own_distributions(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("mix:\n  description: mine\n  toolsets: {terminal: 1, web: 0}\n")
    mine = load_distributions(path)
    assert mine == {"mix": Distribution("mix", {"terminal": 1, "web": 0}, "mine")}
    assert mine["mix"].sample(random.Random(0)) == ["terminal"]
    assert sample_toolsets_from_distribution({"file": 0.001}, random.Random(0)) == ["file"]


@pytest.mark.parametrize(
    "wrong", [{}, {"web": 80}, {"web": -1}, {"web": "x"}, {"web": 0}, {"web": True}, {"web": math.nan}]
)
def test_wrong_probabilities_are_refused(wrong):
    with pytest.raises(ToolDefinitionError):
        Distribution("x", wrong)


def test_a_wrong_file_and_a_wrong_name_are_refused(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"mix": {"tools": {"web": 1}}}')
    with pytest.raises(ToolDefinitionError, match="mix"):
        load_distributions(path)
    with pytest.raises(UnknownToolsetError, match="Did you mean 'balanced'"):
        sample_toolsets_from_distribution("balancd", random.Random(0))
