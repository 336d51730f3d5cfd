"""Exact audit of everything together: noisy marginals, private heads, and the draws.

For a tiny table and its neighbour, and for several noisy outcomes y of the marginals, the
probability of every choice of heads and of every output row is exact: noise and choices
from the tables that the shipped code decides by, on its own scores and scales, draws by
enumeration of the kernel. The three log-ratios add up along a path; the worst path must
stay within the ledger's total.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.auditing.cases import SCALE, Case, tiny_schema
from pegsynth.auditing.divergence import Loss, Table, all_rows, all_tables
from pegsynth.auditing.noise_laws import choice_law, noise_probability
from pegsynth.hashing import count_pairs
from pegsynth.hashing.private_order import pair_scores
from pegsynth.mechanisms.marginals import marginals_from_noisy
from pegsynth.mechanisms.noise import noise_of
from pegsynth.methods.method_options import PegsOptions
from pegsynth.methods.pegs import PEGS
from pegsynth.options import PriorKind
from pegsynth.privacy import Budget, NoisyCounts, Selection

Heads = tuple[tuple[int, ...], ...]

NOISES = ((0, 0), (3, -1), (-4, 2))
"""Noise on the first and on every other category; far tails give the same ratios."""


def private_case(*, epsilon: float = 9.0, prior: PriorKind = "uniform") -> Case:
    """Settle a release that pays for marginals, order and draws."""
    schema = tiny_schema((2, 2, 2))
    options = PegsOptions(
        rows=1, prior=prior, seed_pool="marginal", heads=1, tail_bits=0, order="private"
    )
    plan = PEGS.settle(schema, Budget(epsilon=epsilon), options, scale=SCALE)
    return Case(f"private order, {prior} prior", schema, plan, None, most_rows=1)


def worst_path(case: Case) -> Loss:
    """Return the worst log-ratio over tables, neighbours, noise, heads and rows."""
    counts = case.schema.category_counts
    worst = 0.0
    for table in all_tables(counts, case.most_rows):
        for row in all_rows(counts):
            for loss in _paths(case, table, (*table, row)):
                worst = max(worst, loss)
    return Loss(worst, 0.0)


def _paths(case: Case, table: Table, neighbour: Table) -> Iterator[float]:
    counts = case.schema.category_counts
    ours, theirs = _one_way(table, counts), _one_way(neighbour, counts)
    for first, rest in NOISES:
        noisy = [line + np.array([first] + [rest] * (len(line) - 1)) for line in ours]
        noise = noise_ratio(case.plan.marginals, ours, theirs, noisy)
        for heads in _all_heads(len(counts), case.plan.keys.heads):
            choice = math.log(
                choice_probability(case.plan.choice, table, counts, noisy, heads)
                / choice_probability(case.plan.choice, neighbour, counts, noisy, heads)
            )
            draws = _draw_ratios(case, table, neighbour, noisy, heads)
            # Both directions: the largest and the smallest log-ratio of any output.
            yield max(abs(noise + choice + ratio) for ratio in draws)


def noise_ratio(
    event: NoisyCounts | None, ours: list[Int64], theirs: list[Int64], noisy: list[Int64]
) -> float:
    """Return the log-ratio of a noisy outcome under discrete Laplace noise."""
    if event is None or event.mechanism != "discrete-laplace":
        return 0.0
    noise = noise_of(event)
    total = 0.0
    for a, b, y in zip(ours, theirs, noisy, strict=True):
        for here, there in zip((y - a).tolist(), (y - b).tolist(), strict=True):
            first, second = noise_probability(noise, here), noise_probability(noise, there)
            total += math.log(first / second) if first and second else math.inf
    return total


def choice_probability(
    event: Selection | None,
    table: Table,
    counts: tuple[int, ...],
    noisy: list[Int64],
    heads: Heads,
) -> float:
    """Return the probability that these heads are chosen, from the shipped scores."""
    if event is None:
        return 1.0
    codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
    marginals = marginals_from_noisy(noisy)
    scores = pair_scores(count_pairs([codes], counts), marginals.shares, marginals.total)
    epsilon = Fraction(event.epsilon_numerator, event.epsilon_denominator)
    probability = 1.0
    for target, chosen in enumerate(heads):
        others = [i for i in range(len(counts)) if i != target]
        for head in chosen:
            law = choice_law([int(scores[target, i]) for i in others], epsilon)
            probability *= float(law[others.index(head)])
            others.remove(head)
    return probability


def _draw_ratios(
    case: Case, table: Table, neighbour: Table, noisy: list[Int64], heads: Heads
) -> tuple[float, float]:
    shares = tuple(tuple(line.tolist()) for line in marginals_from_noisy(noisy).shares)
    fixed = replace(case, shares=shares)
    first, second = (dict(fixed.distribution(each, heads=heads)) for each in (table, neighbour))
    ratios = [math.log(Fraction(share) / Fraction(second[o])) for o, share in first.items()]
    return min(ratios), max(ratios)


def _one_way(table: Table, counts: tuple[int, ...]) -> list[Int64]:
    lines = [np.zeros(count, dtype=np.int64) for count in counts]
    for row in table:
        for feature, code in enumerate(row):
            lines[feature][code] += 1
    return lines


def _all_heads(features: int, heads: int) -> Iterator[Heads]:
    choices = [
        list(permutations([i for i in range(features) if i != target], heads))
        for target in range(features)
    ]
    yield from product(*choices)


__all__ = ["choice_probability", "noise_ratio", "private_case", "worst_path"]
