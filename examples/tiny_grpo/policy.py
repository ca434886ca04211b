"""A small transformer in numpy: sampling with a key-value cache, log-probabilities, gradients by hand, Adam.

About 300,000 parameters. Pre-norm blocks (RMSNorm, causal attention, ReLU MLP) with learned positions.
"""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
_EPS = 1e-5


@dataclass(frozen=True)
class Shape:
    """Sizes of the model."""

    vocabulary: int
    width: int = 96
    heads: int = 4
    layers: int = 2
    context: int = 256


class Policy:
    """The model and its optimiser."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self.version = 0
        rng = np.random.default_rng(seed)
        width = shape.width
        self.weights: dict[str, Array] = {
            "tokens": rng.normal(0, 0.1, (shape.vocabulary, width)),
            "places": rng.normal(0, 0.1, (shape.context, width)),
            "norm": np.ones(width),
            "head": rng.normal(0, 0.02, (width, shape.vocabulary)),
        }
        for layer in range(shape.layers):
            for name, rows, columns in (
                ("qkv", width, 3 * width),
                ("out", width, width),
                ("up", width, 4 * width),
            ):
                self.weights[f"{name}{layer}"] = rng.normal(0, rows**-0.5, (rows, columns))
            self.weights[f"down{layer}"] = rng.normal(0, (8 * width) ** -0.5, (4 * width, width))
            self.weights[f"norm_a{layer}"], self.weights[f"norm_m{layer}"] = np.ones(width), np.ones(width)
        self.weights = {name: value.astype(np.float32) for name, value in self.weights.items()}
        self._first = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self._second = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self._steps = 0

    @property
    def parameters(self) -> int:
        return sum(value.size for value in self.weights.values())

    # Forward, and what backward needs of it.

    def forward(self, ids: Array) -> tuple[Array, list]:
        """Logits after each position, shape (B, T, V), for ids of shape (B, T)."""
        w, length = self.weights, ids.shape[1]
        x = w["tokens"][ids] + w["places"][:length]
        tape: list = [ids]
        for layer in range(self.shape.layers):
            x, kept = self._block(x, layer)
            tape.append(kept)
        normed, kept = _norm(x, w["norm"])
        tape.append((normed, kept))
        return normed @ w["head"], tape

    def _block(self, x: Array, layer: int) -> tuple[Array, tuple]:
        w = self.weights
        a, norm_a = _norm(x, w[f"norm_a{layer}"])
        q, k, v = (self._split(part) for part in np.split(a @ w[f"qkv{layer}"], 3, axis=-1))
        scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
        length = x.shape[1]
        scores = np.where(np.tri(length, dtype=bool), scores, np.float32(-1e9))
        attention = _softmax(scores)
        mixed = self._join(attention @ v)
        x = x + mixed @ w[f"out{layer}"]
        m, norm_m = _norm(x, w[f"norm_m{layer}"])
        hidden = np.maximum(m @ w[f"up{layer}"], 0)
        return x + hidden @ w[f"down{layer}"], (a, norm_a, q, k, v, attention, mixed, m, norm_m, hidden)

    def backward(self, d_logits: Array, tape: list) -> dict[str, Array]:
        """Gradients of every weight for a gradient of the logits."""
        w, grads = self.weights, {}
        normed, kept = tape[-1]
        grads["head"] = _outer(normed, d_logits)
        dx, grads["norm"] = _norm_back(d_logits @ w["head"].T, kept, w["norm"])
        for layer in reversed(range(self.shape.layers)):
            dx = self._block_back(dx, tape[layer + 1], layer, grads)
        ids = tape[0]
        grads["tokens"] = np.zeros_like(w["tokens"])
        np.add.at(grads["tokens"], ids, dx)
        grads["places"] = np.zeros_like(w["places"])
        grads["places"][: ids.shape[1]] = dx.sum(0)
        return grads

    def _block_back(self, dx: Array, kept: tuple, layer: int, grads: dict[str, Array]) -> Array:
        w = self.weights
        a, norm_a, q, k, v, attention, mixed, m, norm_m, hidden = kept
        grads[f"down{layer}"] = _outer(hidden, dx)
        d_hidden = (dx @ w[f"down{layer}"].T) * (hidden > 0)
        grads[f"up{layer}"] = _outer(m, d_hidden)
        back, grads[f"norm_m{layer}"] = _norm_back(d_hidden @ w[f"up{layer}"].T, norm_m, w[f"norm_m{layer}"])
        dx = dx + back
        grads[f"out{layer}"] = _outer(mixed, dx)
        d_mixed = self._split(dx @ w[f"out{layer}"].T)
        d_attention, dv = d_mixed @ v.swapaxes(-1, -2), attention.swapaxes(-1, -2) @ d_mixed
        d_scores = attention * (d_attention - (d_attention * attention).sum(-1, keepdims=True))
        d_scores /= np.float32(np.sqrt(q.shape[-1]))
        dq, dk = d_scores @ k, d_scores.swapaxes(-1, -2) @ q
        d_qkv = np.concatenate([self._join(part) for part in (dq, dk, dv)], axis=-1)
        grads[f"qkv{layer}"] = _outer(a, d_qkv)
        back, grads[f"norm_a{layer}"] = _norm_back(d_qkv @ w[f"qkv{layer}"].T, norm_a, w[f"norm_a{layer}"])
        return dx + back

    def _split(self, x: Array) -> Array:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.shape.heads, -1).swapaxes(1, 2)

    def _join(self, x: Array) -> Array:
        batch, heads, length, width = x.shape
        return x.swapaxes(1, 2).reshape(batch, length, heads * width)

    # Training.

    def step(self, grads: dict[str, Array], rate: float, clip: float = 1.0) -> None:
        """One step of Adam (Kingma and Ba 2015, algorithm 1), the gradient's norm clipped."""
        self._steps += 1
        self.version += 1
        norm = np.sqrt(sum(float((grad**2).sum()) for grad in grads.values()))
        scale = min(1.0, clip / (norm + 1e-9))
        for name, grad in grads.items():
            grad = grad * np.float32(scale)
            self._first[name] += 0.1 * (grad - self._first[name])
            self._second[name] += 0.02 * (grad**2 - self._second[name])
            first = self._first[name] / (1 - 0.9**self._steps)
            second = self._second[name] / (1 - 0.98**self._steps)
            self.weights[name] = self.weights[name] - np.float32(rate) * first / (np.sqrt(second) + 1e-8)

    # Sampling.

    def sample(
        self, prompt: list[int], count: int, stop: set[int], temperature: float, rng: np.random.Generator
    ) -> tuple[list[int], list[float]]:
        """Up to `count` tokens and their log-probabilities at this temperature."""
        cache: list[tuple[Array, Array]] = []
        count = min(count, self.shape.context - len(prompt))
        logits = self._extend(np.asarray(prompt), 0, cache)
        sampled: list[int] = []
        logprobs: list[float] = []
        for _ in range(max(0, count)):
            row = log_softmax(logits / np.float32(temperature))
            token = int(min(np.searchsorted(np.exp(row).cumsum(), rng.random()), len(row) - 1))
            sampled.append(token)
            logprobs.append(float(row[token]))
            if token in stop or len(sampled) == count:
                break
            logits = self._extend(np.asarray([token]), len(prompt) + len(sampled) - 1, cache)
        return sampled, logprobs

    def _extend(self, ids: Array, start: int, cache: list[tuple[Array, Array]]) -> Array:
        """Logits after the last of some new ids, whose keys and values join the cache."""
        w = self.weights
        x = (w["tokens"][ids] + w["places"][start : start + len(ids)])[None]
        for layer in range(self.shape.layers):
            a, _ = _norm(x, w[f"norm_a{layer}"])
            q, k, v = (self._split(part) for part in np.split(a @ w[f"qkv{layer}"], 3, axis=-1))
            if layer < len(cache):
                k, v = (
                    np.concatenate([old, new], axis=2) for old, new in zip(cache[layer], (k, v), strict=True)
                )
                cache[layer] = (k, v)
            else:
                cache.append((k, v))
            scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
            scores = np.where(np.tri(len(ids), k.shape[2], start, dtype=bool), scores, np.float32(-1e9))
            x = x + self._join(_softmax(scores) @ v) @ w[f"out{layer}"]
            m, _ = _norm(x, w[f"norm_m{layer}"])
            x = x + np.maximum(m @ w[f"up{layer}"], 0) @ w[f"down{layer}"]
        normed, _ = _norm(x[:, -1], w["norm"])
        return (normed @ w["head"])[0]


def log_softmax(logits: Array) -> Array:
    """Log-probabilities over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _norm(x: Array, gain: Array) -> tuple[Array, tuple[Array, Array]]:
    scale = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + np.float32(_EPS))
    unit = x * scale
    return unit * gain, (unit, scale)


def _norm_back(d: Array, kept: tuple[Array, Array], gain: Array) -> tuple[Array, Array]:
    unit, scale = kept
    d_unit = d * gain
    back = (d_unit - unit * (d_unit * unit).mean(-1, keepdims=True)) * scale
    return back, (d * unit).reshape(-1, len(gain)).sum(0)


def _outer(left: Array, right: Array) -> Array:
    """Gradient of a matrix between two batches of rows."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
