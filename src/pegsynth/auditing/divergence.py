"""How far apart the outputs on neighbouring tables are, against what the ledger claims.

Distributions go in as exact probabilities of outcomes; the worst log-ratio and the worst
Renyi divergence over all neighbouring tables come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

Row = tuple[int, ...]
Table = tuple[Row, ...]
Distribution = Mapping[Hashable, Fraction | float]

ORDERS = (1.5, 2.0, 4.0, 8.0, 32.0)
ROUNDING = 1e-9
"""Floating logarithms of exact fractions are trusted to this relative error."""


@dataclass(frozen=True)
class Loss:
    """The worst over all neighbours.

    Parameters
    ----------
    epsilon
        Largest absolute log-ratio of an outcome's probabilities.
    rho
        Largest Renyi divergence of order lambda, divided by lambda, over `ORDERS`.
    """

    epsilon: float = 0.0
    rho: float = 0.0

    def worse(self, other: Loss) -> Loss:
        """Return the larger of each figure."""
        return Loss(max(self.epsilon, other.epsilon), max(self.rho, other.rho))

    def __add__(self, other: Loss) -> Loss:
        """Add the losses of two independent parts of one output."""
        return Loss(self.epsilon + other.epsilon, self.rho + other.rho)

    def within(self, epsilon: float, rho: float) -> bool:
        """Say whether both figures stay within a claim."""
        slack = 1 + ROUNDING
        return self.epsilon <= epsilon * slack and self.rho <= rho * slack


def all_rows(category_counts: tuple[int, ...]) -> list[Row]:
    """Return every row of a tiny domain."""
    return list(product(*(range(count) for count in category_counts)))


def all_tables(category_counts: tuple[int, ...], most_rows: int) -> Iterator[Table]:
    """Yield every table of at most `most_rows` rows, order of rows aside."""
    rows = all_rows(category_counts)
    for size in range(most_rows + 1):
        yield from combinations_with_replacement(rows, size)


def divergence(first: Distribution, second: Distribution) -> Loss:
    """Return the worst figures between two distributions, in both directions."""
    if {o for o, p in first.items() if p} != {o for o, p in second.items() if p}:
        return Loss(math.inf, math.inf)
    pairs = [(float(p), float(p / second[o])) for o, p in first.items() if p]
    epsilon = max((abs(math.log(ratio)) for _, ratio in pairs), default=0.0)
    rho = 0.0
    for order in ORDERS:
        forward = math.fsum(p * ratio ** (order - 1) for p, ratio in pairs)
        backward = math.fsum(p / ratio * ratio ** (1 - order) for p, ratio in pairs)
        for total in (forward, backward):
            rho = max(rho, math.log(total) / ((order - 1) * order))
    return Loss(epsilon, rho)


def worst_loss(
    distribution: Callable[[Table], Distribution],
    category_counts: tuple[int, ...],
    most_rows: int,
    *,
    rows_per_unit: int = 1,
) -> Loss:
    """Return the worst figures over all tables of up to `most_rows` rows and all neighbours.

    A neighbour has up to `rows_per_unit` rows more; the unit may hold any rows.
    """
    known: dict[Table, Distribution] = {}

    def of(table: Table) -> Distribution:
        key = tuple(sorted(table))
        if key not in known:
            known[key] = distribution(key)
        return known[key]

    loss = Loss()
    units = [unit for unit in all_tables(category_counts, rows_per_unit) if unit]
    for table in all_tables(category_counts, most_rows):
        for unit in units:
            loss = loss.worse(divergence(of(table), of(table + unit)))
    return loss
