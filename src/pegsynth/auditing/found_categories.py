"""Exact audit of private categories: noise, threshold, delta' and the published list (R29).

The shipped search runs on tables of a few texts, once for every value that the noise can take,
which tells how likely every text is to be found; and once for every set of texts that can be
found, which tells what is published then. Neighbours are compared by these exact laws:

- what is published under one table and cannot be under the other has no more than delta';
- the rest is no further apart than rho says;
- at the epsilon that the ledger claims, the two are apart by no more than the stated delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

import polars as pl

from pegsynth.auditing.divergence import ROUNDING, Finding, Loss, divergence, exactly
from pegsynth.auditing.exact_laws import noise_law
from pegsynth.auditing.paths import Answer, Output, WatchedFilter
from pegsynth.codec.finding_categories import (
    Part,
    counted_values,
    find_categories,
    plan_categories,
)
from pegsynth.mechanisms.noise import noise_of
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.privacy import Allowance, CategoriesFound, Ledger, UnitBound
from pegsynth.privacy.recorded import delta_taken
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

CATEGORIES = "categories"
FEATURE = Feature("x", private_categories=True)

Texts = tuple[str, ...]
Law = Mapping[Hashable, Fraction]
_FAR = 10**6


@dataclass(frozen=True)
class Claim:
    """What is said of one release: its own figures, and those at the stated delta."""

    delta_taken: float
    rho: float
    epsilon: float
    delta: float


def claimed_by(ledger: Ledger) -> Claim:
    """Return what a ledger claims."""
    guarantee = ledger.guarantee
    unit = guarantee.rows_per_unit
    return Claim(
        float(delta_taken(ledger.events, rows_per_unit=unit)),
        math.inf if guarantee.rho is None else guarantee.rho,
        math.inf if guarantee.epsilon is None else guarantee.epsilon,
        guarantee.delta or 0.0,
    )


@dataclass(frozen=True)
class Worst:
    """The worst over all pairs of a case, and what is claimed.

    Parameters
    ----------
    lost
        Largest mass of what cannot be published under the neighbour.
    loss
        Largest divergence of the rest.
    apart
        Largest delta at the claimed epsilon.
    """

    lost: float
    loss: Loss
    apart: float
    claim: Claim

    @property
    def holds(self) -> bool:
        """Whether all that must hold does."""
        slack = 1 + ROUNDING
        return (
            self.lost <= self.claim.delta_taken * slack
            and self.loss.rho <= self.claim.rho * slack
            and self.apart <= self.claim.delta * slack
        )


def counted(table: Texts) -> list[Part]:
    """Count a table as it is counted when it is read."""
    frame = pl.DataFrame({FEATURE.name: list(table)}, schema={FEATURE.name: pl.String})
    return list(counted_values(lambda: iter([frame]), (FEATURE,)))


@dataclass(frozen=True)
class CategoriesCase:
    """One tiny search.

    Parameters
    ----------
    amount
        The rho that the search costs.
    delta, delta_share
        The stated delta, and the part of it that the search may take.
    pairs
        Tables of texts, each with the rows of the unit that its neighbour has more.
    count, budget_filter, find, claim
        What is audited.
    """

    name: str
    amount: Fraction
    delta: float
    pairs: tuple[tuple[Texts, Texts], ...]
    rows_per_unit: int = 1
    delta_share: Fraction = Fraction(1, 2)
    count: Callable[[Texts], list[Part]] = counted
    budget_filter: type[WatchedFilter] = WatchedFilter
    find: Callable[..., dict[str, tuple[str, ...]]] = find_categories
    claim: Callable[[Ledger], Claim] = claimed_by

    def run(self, parts: list[Part], answer: Answer) -> tuple[Texts, Ledger]:
        """Search a counted table with given noise; return what is published."""
        schema = Schema((FEATURE,))
        allowance = Allowance("zcdp", self.amount)
        price = Price(allowance, self.rows_per_unit)
        plan = plan_categories(schema, price, 0.9, delta=Fraction(self.delta) * self.delta_share)
        budget_filter = self.budget_filter(
            allowance, RandomStream("audit"), rows_per_unit=self.rows_per_unit, answer=answer
        )
        found = self.find(schema, plan, parts, budget_filter)
        bound = (UnitBound(rows_per_unit=self.rows_per_unit),) if self.rows_per_unit > 1 else ()
        return found["x"], Ledger((*bound, *budget_filter.done), delta=self.delta)

    def finding(self, part: str) -> Finding:
        """Return what the audit of the case found."""
        worst = audit_categories(self)
        name = f"{self.name}; delta' {worst.lost:.3g} of {worst.claim.delta_taken:.3g}"
        return exactly(part, name, Loss(math.inf, worst.claim.rho), worst.loss, holds=worst.holds)

    def law(self, table: Texts) -> tuple[Law, Ledger]:
        """Return the exact law of what is published, and the ledger."""
        parts = self.count(table)
        texts = [text for part in parts for text in part.texts]
        _, ledger = self.run(parts, partial(_everywhere, 0))
        event = next(each for each in ledger.events if isinstance(each, CategoriesFound))
        shares = dict.fromkeys(texts, Fraction(0))
        sizes = noise_law(noise_of(event.noise))
        for value in range(-max(sizes), max(sizes) + 1):
            published, _ = self.run(parts, partial(_everywhere, value))
            for text in published:
                shares[text] += sizes.get(abs(value), Fraction(0))
        law: dict[Hashable, Fraction] = {}
        for taken in product((False, True), repeat=len(texts)):
            chance = math.prod(
                (shares[t] if yes else 1 - shares[t] for t, yes in zip(texts, taken, strict=True)),
                start=Fraction(1),
            )
            if chance > 0:
                pattern = [_FAR if yes else -_FAR for yes in taken]
                published, _ = self.run(parts, partial(_taken, pattern))
                law[published] = law.get(published, Fraction(0)) + chance
        return law, ledger


def _everywhere(value: int, _: object, counts: Output) -> Output:
    return tuple(count + value for count in counts)


def _taken(offsets: Sequence[int], _: object, counts: Output) -> Output:
    return tuple(count + offset for count, offset in zip(counts, offsets, strict=False))


def audit_categories(case: CategoriesCase) -> Worst:
    """Compare every table of a case with its neighbour."""
    lost, loss, apart = 0.0, Loss(), 0.0
    claim = Claim(math.inf, math.inf, 0.0, 1.0)
    known: dict[Texts, tuple[Law, Ledger]] = {}
    # Rows come in any order, and the unit's may come first.
    pairs = ((table, other) for table, more in case.pairs for other in (table + more, more + table))
    for table, neighbour in pairs:
        for each in (table, neighbour):
            if each not in known:
                known[each] = case.law(each)
        (first, ledger), (second, _) = known[table], known[neighbour]
        claim = case.claim(ledger)
        for ours, other in ((first, second), (second, first)):
            lost = max(lost, float(sum(p for o, p in ours.items() if o not in other)))
            apart = max(apart, _apart(ours, other, claim.epsilon))
        if first.keys() & second.keys():
            loss = loss.worse(divergence(_shared(first, second), _shared(second, first)))
    return Worst(lost, loss, apart, claim)


def _shared(ours: Law, other: Law) -> Law:
    """Return the law given that what is published can be published under both."""
    kept = {outcome: chance for outcome, chance in ours.items() if outcome in other}
    total = sum(kept.values())
    return {outcome: chance / total for outcome, chance in kept.items()}


def _apart(ours: Law, other: Law, epsilon: float) -> float:
    """Return the smallest delta with which one law is within `epsilon` of the other."""
    factor = math.exp(min(epsilon, 700.0))
    gaps = (float(p) - factor * float(other.get(o, Fraction(0))) for o, p in ours.items())
    return math.fsum(max(gap, 0.0) for gap in gaps)


def categories_case(
    name: str, amount: Fraction, delta: float, units: tuple[Texts, ...]
) -> CategoriesCase:
    """Make a case: tables of one text, or two, at and below the threshold, and these units."""
    case = CategoriesCase(name, amount, delta, (), max(map(len, units)))
    _, ledger = case.run([], partial(_everywhere, 0))
    (event,) = (each for each in ledger.events if isinstance(each, CategoriesFound))
    full = ("b",) * event.threshold
    tables = ((), ("b",), full, full + ("a",) * event.threshold)
    return replace(case, pairs=tuple((table, unit) for table in tables for unit in units))


def categories_cases() -> list[CategoriesCase]:
    """Return a case for every way in which a unit may change the counts.

    Noise is small, so that a threshold of a few rows is enough and a table can reach it.
    """
    one: tuple[Texts, ...] = (("a",), ("b",), ("c",))
    two: tuple[Texts, ...] = (("a", "a"), ("a", "c"), ("b", "b"), ("b", "c"))
    return [
        categories_case("one row", Fraction(1), 1e-3, one),
        categories_case("one row, more noise", Fraction(1, 8), 1e-2, one),
        categories_case("two rows per unit, worst apart", Fraction(1, 16), 0.2, two),
        categories_case("two rows per unit, worst together", Fraction(4), 1e-3, two),
    ]
