"""A small real language model: one causal transformer layer in numpy with random weights, seeded."""

from collections.abc import Sequence

import numpy as np


class TinyLM:
    """Gives the log-probabilities of every next token after every prefix.

    Args:
        vocabulary: Number of tokens V.
        width: Features of a position C.
        seed: Of the weights.
    """

    def __init__(self, vocabulary: int, width: int = 32, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)

        def weights(*shape: int) -> np.ndarray:
            return rng.normal(0, 1 / np.sqrt(shape[0]), shape).astype(np.float64)

        self.width = width
        self.embedding = rng.normal(0, 1, (vocabulary, width))
        self.query, self.key, self.value = weights(width, width), weights(width, width), weights(width, width)
        self.up, self.down, self.head = (
            weights(width, 4 * width),
            weights(4 * width, width),
            weights(width, vocabulary),
        )

    def logprobs(self, ids: Sequence[int]) -> np.ndarray:
        """Log-probabilities of the token after each position, shape (T, V)."""
        x = self.embedding[np.asarray(ids)] + self._positions(len(ids))
        scores = (x @ self.query) @ (x @ self.key).T / np.sqrt(self.width)
        scores = np.where(np.tri(len(ids), dtype=bool), scores, -np.inf)
        attention = np.exp(scores - scores.max(-1, keepdims=True))
        x = x + attention / attention.sum(-1, keepdims=True) @ (x @ self.value)
        x = x + np.maximum(x @ self.up, 0) @ self.down
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
        logits = x @ self.head
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def sample(
        self,
        ids: Sequence[int],
        count: int,
        stop: set[int],
        rng: np.random.Generator,
        forced: Sequence[int] = (),
    ) -> tuple[list[int], list[float]]:
        """Sample up to `count` tokens, the first ones forced; each with its log-probability."""
        seen, sampled, chosen = list(ids), [], []
        while len(sampled) < count and not (sampled and sampled[-1] in stop):
            last = self.logprobs(seen)[-1]
            token = (
                forced[len(sampled)]
                if len(sampled) < len(forced)
                else int(rng.choice(len(last), p=np.exp(last)))
            )
            seen.append(token)
            sampled.append(token)
            chosen.append(float(last[token]))
        return sampled, chosen

    def _positions(self, length: int) -> np.ndarray:
        """Sinusoidal positions (Vaswani et al. 2017, section 3.5)."""
        rates = np.arange(length)[:, None] / 10000 ** (np.arange(0, self.width, 2) / self.width)
        return np.concatenate([np.sin(rates), np.cos(rates)], axis=1)
