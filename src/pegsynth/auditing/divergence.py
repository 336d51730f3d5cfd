"""The one form of an exact audit: outputs on two neighbours, against what the ledger claims.

A case is a tiny release whose outputs can be enumerated. Distributions go in as exact
probabilities of outcomes; the worst log-ratio and the worst Renyi divergence over all
neighbouring tables come out, and are compared with the price. What a case enumerates (blocks,
urns, recoded rows, folded people, parts that agree) is told by its `distribution` alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

Row = tuple[int, ...]
Table = tuple[Row, ...]
Distribution = Mapping[Hashable, Fraction | float]

ORDERS = (1.5, 2.0, 4.0, 8.0, 32.0)
ROUNDING = 1e-9
"""Floating logarithms of exact fractions are trusted to this relative error."""


@dataclass(frozen=True)
class Finding:
    """One audited claim.

    Parameters
    ----------
    method, name, kind
        What was audited, and how: "exact", "statistical" or "given".
    claimed, realised
        Pure epsilon of the ledger, and the worst that was found (statistical: proved);
        None where the claim is zCDP alone. Given answers: 1, and the largest
        change that one unit makes in a paid step, as a part of what its event prices.
    claimed_rho, realised_rho
        The same in zCDP; None where it was not computed.
    skipped
        Why nothing was audited; empty if something was.
    details
        What it takes to see again what was broken.
    """

    method: str
    name: str
    kind: str
    claimed: float | None
    realised: float | None
    claimed_rho: float | None
    realised_rho: float | None
    holds: bool
    skipped: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loss:
    """The worst over all neighbours, or what is claimed of it.

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

    def within(self, epsilon: float, rho: float) -> bool:
        """Say whether both figures stay within a claim."""
        slack = 1 + ROUNDING
        return self.epsilon <= epsilon * slack and self.rho <= rho * slack


def exactly(
    part: str, name: str, claimed: Loss, loss: Loss, *, holds: bool | None = None
) -> Finding:
    """Return what an exact audit found; a figure of the claim that is infinite is not claimed.

    Parameters
    ----------
    part
        The method, or the part of the program, that was audited.
    holds
        Whether the claim holds, where more than both figures decides that.
    """
    pure, zcdp = math.isfinite(claimed.epsilon), math.isfinite(claimed.rho)
    return Finding(
        part,
        name,
        "exact",
        claimed.epsilon if pure else None,
        loss.epsilon if pure else None,
        claimed.rho if zcdp else None,
        loss.rho if zcdp else None,
        loss.within(claimed.epsilon, claimed.rho) if holds is None else holds,
    )


class EnumeratedCase(ABC):
    """A tiny release whose every outcome is enumerated, on tables and their neighbours."""

    name: str

    @property
    @abstractmethod
    def claimed(self) -> Loss:
        """The price; infinite where nothing is claimed."""

    @abstractmethod
    def distribution(self, table: Table) -> Distribution:
        """Return the exact probability of every output for a table."""

    @abstractmethod
    def pairs(self) -> Iterable[tuple[Table, Table]]:
        """Return the neighbouring tables that are compared."""

    def loss(self) -> Loss:
        """Return the worst over all of them."""
        return worst_of(self.distribution, self.pairs())

    def finding(self, part: str) -> Finding:
        """Return what the audit of the case found."""
        return exactly(part, self.name, self.claimed, self.loss())


def all_rows(category_counts: tuple[int, ...]) -> list[Row]:
    """Return every row of a tiny domain."""
    return list(product(*(range(count) for count in category_counts)))


def all_tables(category_counts: tuple[int, ...], most_rows: int) -> Iterator[Table]:
    """Yield every table of at most `most_rows` rows, order of rows aside."""
    rows = all_rows(category_counts)
    for size in range(most_rows + 1):
        yield from combinations_with_replacement(rows, size)


def neighbours(
    category_counts: tuple[int, ...], most_rows: int, *, rows_per_unit: int = 1
) -> Iterator[tuple[Table, Table]]:
    """Yield all tables of up to `most_rows` rows with each of their neighbours.

    A neighbour has up to `rows_per_unit` rows more; the unit may hold any rows. The order of rows
    does not count.
    """
    units = [unit for unit in all_tables(category_counts, rows_per_unit) if unit]
    for table in all_tables(category_counts, most_rows):
        for unit in units:
            yield table, tuple(sorted(table + unit))


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


def worst_of(
    distribution: Callable[[Table], Distribution], pairs: Iterable[tuple[Table, Table]]
) -> Loss:
    """Return the worst figures over pairs of tables."""
    known, loss = cache(distribution), Loss()
    for table, neighbour in pairs:
        loss = loss.worse(divergence(known(table), known(neighbour)))
    return loss


def joined(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the joint distribution of independent outputs."""
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


def repeated(one: Mapping[Any, Any], times: int) -> dict[Any, Any]:
    """Return the joint distribution of independent repetitions."""
    joint: dict[Any, Any] = {(): Fraction(1)}
    for _ in range(times):
        joint = joined(joint, one)
    return joint
