"""Draws of the product with their exact law, each beside a broken twin.

Every check draws with fresh secure randomness and returns the p-value of Pearson's
chi-square against the law. A sound draw has p-values that are uniform but for the
approximation; a twin makes a mistake that people make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.pool_loops import shuffled
from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.noise import choose, fill
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, sample_rows
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior, uniform_weights
from pegsynth.methods.seed_rows import WeightedPool
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Draw = Callable[[], Int64]

LEAST_EXPECTED = 10


@dataclass(frozen=True)
class Check:
    """One draw of the product.

    Parameters
    ----------
    name
        What is drawn.
    law
        Probability of every outcome.
    sound, broken
        Draw many outcomes, as the product does and with a mistake.
    mistake
        What the twin does wrong.
    """

    name: str
    law: Mapping[int, float]
    sound: Draw
    broken: Draw
    mistake: str

    def p_value(self, drawn: Int64) -> float:
        """Return how surprising the outcomes are under the law; 0 for impossible ones."""
        from scipy.stats import chisquare

        keys = np.array(sorted(self.law))
        shares = np.array([self.law[key] for key in keys.tolist()])
        places = np.searchsorted(keys, drawn)
        if (keys[np.minimum(places, len(keys) - 1)] != drawn).any():
            return 0.0
        counts = np.bincount(places, minlength=len(keys)).astype(np.float64)
        counts, expected = _pooled(counts, len(drawn) * shares / shares.sum())
        return float(chisquare(counts, expected).pvalue)


def _pooled(counts: Float64, expected: Float64) -> tuple[Float64, Float64]:
    """Put rare outcomes into one cell, with the next rarest until it too expects enough."""
    order = np.argsort(expected, kind="stable")
    counts, expected = counts[order], expected[order]
    rare = int(np.searchsorted(expected, LEAST_EXPECTED))
    enough = int(np.searchsorted(np.cumsum(expected), LEAST_EXPECTED)) + 1
    pool = max(rare, enough)
    return (
        np.append(counts[pool:], counts[:pool].sum()),
        np.append(expected[pool:], expected[:pool].sum()),
    )


def _fresh() -> np.random.Generator:
    """Return a generator for twins, keyed by the operating system."""
    return np.random.default_rng()


def integers(count: int = 40_000, bound: int = 11) -> Check:
    """Uniform integers by rejection.

    Of 40,000 integers the twin escapes a check at 1e-6 with a chance of 3e-12 (noncentral
    chi-square, 176 at 10 degrees of freedom); fewer would let it go now and then.
    """

    def sound() -> Int64:
        words = RandomStream().substream()
        return np.array([words.below(bound) for _ in range(count)], dtype=np.int64)

    def broken() -> Int64:
        return (RandomStream().substream().take(count) % np.uint64(64)).astype(np.int64) % bound

    law = dict.fromkeys(range(bound), 1 / bound)
    return Check("uniform integers", law, sound, broken, "six bits taken modulo 11")


def noise(which: str, size: float, count: int = 200_000) -> Check:
    """Exact discrete noise from certified bins."""
    drawn = (
        Noise.laplace(Fraction(size)) if which == "Laplace" else Noise.gaussian(Fraction(size) ** 2)
    )

    def sound() -> Int64:
        found = np.empty(count, dtype=np.int64)
        fill(found, drawn, RandomStream().substream())
        return found

    def broken() -> Int64:
        draw = _fresh().laplace if which == "Laplace" else _fresh().normal
        return np.rint(draw(0, size, count)).astype(np.int64)

    law = _laplace_law(size) if which == "Laplace" else _gaussian_law(size)
    mistake = "continuous noise, rounded"
    return Check(f"discrete {which} noise", law, sound, broken, mistake)


def _laplace_law(scale: float) -> dict[int, float]:
    ratio = math.exp(-1 / scale)
    return {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-200, 201)}


def _gaussian_law(sigma: float) -> dict[int, float]:
    weights = {k: math.exp(-(k**2) / (2 * sigma**2)) for k in range(-30, 31)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def choices(count: int = 4_000) -> Check:
    """Choices by the exponential mechanism."""
    scores, epsilon = (0, 1, 3, 3, 7), Fraction(1, 2)

    def draw(epsilon: Fraction) -> Int64:
        words = RandomStream().substream()
        return np.array([choose(scores, epsilon, words) for _ in range(count)], dtype=np.int64)

    weights = [math.exp(float(epsilon) * score / 2) for score in scores]
    law = {index: weight / sum(weights) for index, weight in enumerate(weights)}
    return Check(
        "exponential mechanism",
        law,
        lambda: draw(epsilon),
        lambda: draw(2 * epsilon),
        "the factor 2 of the sensitivity forgotten",
    )


def rows(count: int = 50_000) -> Check:
    """Rows of `pegs`, by the compiled sampler: one feature, counts plus alpha."""
    counts, numerator, scale = (5, 0, 2, 1), 3, 4
    schema = Schema((Feature("f", categories=tuple("abcd")),), reviewed=True)
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)[:, None]
    spec = HashSpec(schema.names, (len(counts),), public_heads(schema, 0), 0)
    rules = rule_tables((), (len(counts),))
    tables = disintegrate([codes], spec).tables

    def draw(numerator: int) -> Int64:
        prior = Prior(uniform_weights((len(counts),)), (numerator,), scale)
        machine = Machine(spec.tables, tables, prior.tables, rules, np.zeros(1, dtype=np.int64))
        pool = WeightedPool(spec.tables.category_start, prior.tables.weight_cumulative, rules)
        parts = sample_rows(machine, pool, Schedule(1, 1, 0), count, RandomStream())
        return np.concatenate(list(parts))[:, 0].astype(np.int64)

    alpha = Fraction(numerator, scale)
    weights = [each + alpha for each in counts]
    law = {code: float(weight / sum(weights)) for code, weight in enumerate(weights)}
    return Check(
        "rows of pegs", law, lambda: draw(3), lambda: draw(2), "an alpha that is too small"
    )


def permutations(count: int = 24_000) -> Check:
    """Random orders of four rows."""

    def code(order: Int64) -> int:
        return int(order @ np.array([64, 16, 4, 1]))

    def sound() -> Int64:
        words = RandomStream().substream()
        return np.array([code(shuffled(words.take(4))) for _ in range(count)], dtype=np.int64)

    def broken() -> Int64:
        found = np.tile(np.arange(4), (count, 1))
        others = _fresh().integers(0, 4, (count, 4))
        lines = np.arange(count)
        for place in range(4):
            other = others[:, place]
            held = found[lines, place].copy()
            found[lines, place] = found[lines, other]
            found[lines, other] = held
        return found @ np.array([64, 16, 4, 1])

    from itertools import permutations as orders

    law = {code(np.array(order)): 1 / 24 for order in orders(range(4))}
    return Check("random order", law, sound, broken, "swaps with any place, not those left")


def all_checks() -> tuple[Check, ...]:
    """Return every check."""
    return (
        integers(),
        noise("Laplace", 1.5),
        noise("Gaussian", 1.0),
        choices(),
        rows(),
        permutations(),
    )
