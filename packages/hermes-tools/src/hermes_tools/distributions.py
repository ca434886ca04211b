"""Named distributions over toolsets, and the rule they are sampled by.

The rule: for each toolset, in the order written, one number `rng.random()` is drawn, and the toolset is taken when
the number is below its probability. The draws are independent; the probabilities need not sum to one. When nothing
was taken, the toolset with the highest probability is (the first of several). The same distribution and the same state of
`rng` always give the same list.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hermes_tools.errors import ToolDefinitionError, UnknownToolsetError, nearest


@dataclass(frozen=True, slots=True)
class Distribution:
    """Probabilities of toolsets.

    Attributes:
        name: Its name.
        toolsets: Probability in 0..1 of each toolset.
        description: One line on what it is for.
    """

    name: str
    toolsets: Mapping[str, float]
    description: str = ""

    def __post_init__(self) -> None:
        if not self.toolsets:
            raise ToolDefinitionError(f"Distribution {self.name!r} names no toolset.")
        for toolset, probability in self.toolsets.items():
            if isinstance(probability, bool) or not isinstance(cast(Any, probability), int | float):
                raise ToolDefinitionError(f"{self.name}: the probability of {toolset!r} must be a number.")
            if not 0 <= probability <= 1:
                raise ToolDefinitionError(
                    f"{self.name}: the probability of {toolset!r} must be within 0 and 1, not {probability!r}."
                )
        if not any(self.toolsets.values()):
            raise ToolDefinitionError(f"Distribution {self.name!r} gives every toolset the probability 0.")

    def sample(self, rng: random.Random) -> list[str]:
        """Draw toolsets; at least one. See the module's rule."""
        drawn = [name for name, probability in self.toolsets.items() if rng.random() < probability]
        return drawn or [max(self.toolsets, key=lambda name: self.toolsets[name])]


def _built_in(name: str, description: str, **toolsets: float) -> Distribution:
    return Distribution(name, toolsets, description)


# The numbers are those of hermes-agent's distributions; its toolsets for making images and for asking several
# models, which have no meaning in a rollout, are left out.
DISTRIBUTIONS: Mapping[str, Distribution] = {
    item.name: item
    for item in (
        _built_in("default", "Everything, always.", web=1, vision=1, terminal=1, file=1, browser=1),
        _built_in("image_gen", "Work with pictures.", vision=0.9, web=0.55, terminal=0.45),
        _built_in("research", "Reading on the web.", web=0.9, browser=0.7, vision=0.5, terminal=0.1),
        _built_in(
            "science",
            "Reading and computing.",
            web=0.94,
            terminal=0.94,
            file=0.94,
            vision=0.65,
            browser=0.5,
        ),
        _built_in(
            "development", "Programming, now and then a look-up.", terminal=0.8, file=0.8, web=0.3, vision=0.1
        ),
        _built_in("safe", "No terminal.", web=0.8, browser=0.7, vision=0.6),
        _built_in("balanced", "Each as likely.", web=0.5, vision=0.5, terminal=0.5, file=0.5, browser=0.5),
        _built_in("minimal", "The web alone.", web=1),
        _built_in("terminal_only", "Terminal and files.", terminal=1, file=1),
        _built_in("terminal_web", "Terminal, files and the web.", terminal=1, file=1, web=1),
        _built_in("creative", "Looking at pictures.", vision=0.9, web=0.3),
        _built_in("reasoning", "Hardly any tools.", web=0.3, terminal=0.2),
        _built_in("browser_use", "The browser with helpers.", browser=1, web=0.8, vision=0.7),
        _built_in("browser_only", "The browser alone.", browser=1),
        _built_in("browser_tasks", "Tasks on web pages.", browser=0.97, vision=0.12, terminal=0.15),
        _built_in(
            "terminal_tasks",
            "Tasks in a terminal.",
            terminal=0.97,
            file=0.97,
            web=0.97,
            browser=0.75,
            vision=0.5,
        ),
        _built_in(
            "mixed_tasks",
            "Tasks in browser and terminal.",
            browser=0.92,
            terminal=0.92,
            file=0.92,
            web=0.35,
            vision=0.15,
        ),
    )
}


def get_distribution(name: str) -> Distribution:
    """The built-in distribution of this name.

    Raises:
        UnknownToolsetError: There is none; it names the nearest.
    """
    if name not in DISTRIBUTIONS:
        raise UnknownToolsetError(f"There is no distribution {name!r}. {nearest(name, DISTRIBUTIONS)}")
    return DISTRIBUTIONS[name]


def sample_toolsets_from_distribution(
    distribution: str | Distribution | Mapping[str, float], rng: random.Random
) -> list[str]:
    """Draw toolset names; at least one. The module's docstring gives the exact rule.

    Args:
        distribution: A built-in name, a distribution, or probabilities by toolset.
        rng: The source of randomness; seed it to repeat a draw.
    """
    if isinstance(distribution, str):
        distribution = get_distribution(distribution)
    elif not isinstance(distribution, Distribution):
        distribution = Distribution("custom", distribution)
    return distribution.sample(rng)


def load_distributions(path: str | Path) -> dict[str, Distribution]:
    """Distributions from a YAML (or JSON) file.

        my_mix:
          description: what it is for        # optional
          toolsets: {terminal: 0.9, web: 0.25}

    Args:
        path: The file. YAML needs PyYAML, `pip install "hermes-tools[yaml]"`.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        import json

        data: Any = json.loads(text)
    else:
        try:
            import yaml
        except ImportError:
            raise ToolDefinitionError('Reading YAML needs PyYAML: pip install "hermes-tools[yaml]"') from None
        data = yaml.safe_load(text)
    if not isinstance(data, dict):
        raise ToolDefinitionError(f"{path} must map names to distributions.")
    return {str(name): _from_data(str(name), item) for name, item in cast(dict[Any, Any], data).items()}


def _from_data(name: str, item: Any) -> Distribution:
    fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    toolsets = fields.get("toolsets")
    unknown = set(fields) - {"toolsets", "description"}
    if unknown or not isinstance(toolsets, dict):
        raise ToolDefinitionError(
            f"{name}: write `toolsets: {{NAME: PROBABILITY}}` and, if you like, `description`."
        )
    return Distribution(name, cast("dict[str, float]", toolsets), str(fields.get("description", "")))
