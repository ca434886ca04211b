"""What tokens cost."""

from dataclasses import dataclass

from hermes_envs.clients.turn import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens.

    Attributes:
        prompt: For tokens read.
        completion: For tokens sampled.
        cached: For tokens read from the provider's cache; None is the same as `prompt`.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """The dollars that a usage costs."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - usage.cached_tokens
        return (
            fresh * self.prompt + usage.cached_tokens * cached + usage.completion_tokens * self.completion
        ) / _MILLION
