"""Exact audit of verification: parts dealt by every draw, asked, counted with noise (R32).

Tiny tables are dealt to two parts in every way that the shipped dealing can take. Each part
answers by the shipped regression, and the law of the noisy counts follows from that of the
noise. It is compared between neighbouring tables, a unit with all its rows being one more. An
error is an outcome like others: whoever asks sees it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from pegsynth.auditing.divergence import (
    Distribution,
    EnumeratedCase,
    Loss,
    Table,
    all_tables,
)
from pegsynth.auditing.exact_laws import enumerate_integers, noise_law
from pegsynth.inference.formula import read_formula
from pegsynth.inference.model_matrix import Column
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.noise import noise_of
from pegsynth.privacy import AgreementCounts
from pegsynth.publishing.agreement import Asked, Region, Rows, counted, dealt
from pegsynth.schema import Feature, Schema

VERIFICATION = "verification"
PARTS = 2
_LARGEST = float(np.finfo(np.float64).max)
_REACH = 6
"""Noisy counts beyond this are put together: that is post-processing."""


@dataclass(frozen=True)
class Tiny:
    """A question about tables of a few different rows.

    Parameters
    ----------
    kinds
        The rows there can be, as numbers by feature.
    """

    schema: Schema
    asked: Asked
    kinds: tuple[tuple[float, ...], ...]


def _mean(terms: int) -> Tiny:
    """Ask whether the mean of a part is about 1, once or more often."""
    schema = Schema((Feature("y", categories=("0", "1", "2"), kind="ordinal"),), reviewed=True)
    regions = tuple(Region("Intercept", 1.0, 0.0, 0.1 + 0.2 * each) for each in range(terms))
    asked = Asked(read_formula("y ~ 1", schema), (), regions, PARTS)
    return Tiny(schema, asked, ((0.0,), (1.0,), (2.0,)))


def _slope() -> Tiny:
    """Ask for a slope where two rows together are too large for the arithmetic of a fit."""
    edges = (0.0, 0.3, 0.6, 1.0)
    features = [Feature(name, kind="numeric", edges=edges) for name in ("y", "x")]
    schema = Schema(tuple(features), reviewed=True)
    columns = (Column("x", 1, np.array([0.15, 0.45, 0.8])),)
    asked = Asked(read_formula("y ~ x", schema), columns, (Region("x", 1.0, 0.0, 0.2),), PARTS)
    return Tiny(schema, asked, ((0.0, 0.0), (0.5, 0.4), (0.9, 1.0), (0.5, -_LARGEST)))


@dataclass(frozen=True)
class VerificationCase(EnumeratedCase):
    """One tiny question.

    Parameters
    ----------
    event
        What is claimed.
    about
        What is asked, of which rows.
    rows_of_unit
        The rows of the unit that a neighbour has more.
    most_rows
        Rows of the table without it.
    deal
        How units are dealt to parts.
    noise
        The law of the noise; None takes that of the event.
    """

    name: str
    event: AgreementCounts
    about: Tiny
    rows_of_unit: int = 1
    most_rows: int = 3
    deal: Callable[..., Int64] = dealt
    noise: dict[int, Fraction] | None = None

    @property
    def claimed(self) -> Loss:
        """The prices that the accountants name; a pure one may be missing."""
        pure = self.event.price("pure", rows_per_unit=self.rows_of_unit)
        rho = self.event.price("zcdp", rows_per_unit=self.rows_of_unit)
        return Loss(math.inf if pure is None else float(pure), float(rho or 0))

    def distribution(self, table: Table) -> Distribution:
        """Return the law of the noisy counts of a table, given unit by unit."""
        rows, about = self._rows(table), self.about

        def counts(words: object) -> Hashable:
            parts = self.deal(rows.units, len(rows), PARTS, words)
            try:
                return tuple(counted(about.asked, rows, about.schema, parts).tolist())
            except Exception as error:  # noqa: BLE001 (that there is one is what is audited)
                return type(error).__name__

        exact = enumerate_integers(counts, len(rows))
        found: dict[Hashable, Fraction] = defaultdict(Fraction)
        for count, share in exact.items():
            noisy = self._noisy(count) if isinstance(count, tuple) else {count: Fraction(1)}
            for outcome, chance in noisy.items():
                found[outcome] += share * chance
        return found

    def _rows(self, units: Table) -> Rows:
        names = self.about.schema.names
        kinds = [self.about.kinds[value] for unit in units for value in unit]
        numbers = np.array(kinds, dtype=np.float64).reshape(-1, len(names)).T
        owners = np.array([n for n, unit in enumerate(units) for _ in unit], dtype=np.int64)
        # Categories are numbered by their value; what is measured as a number needs no code.
        codes = np.clip(numbers, 0, 2).astype(np.uint8)
        values = TableValues(dict(zip(names, numbers, strict=True)))
        return Rows(codes, values, owners if self.rows_of_unit > 1 else None)

    def _noisy(self, counts: tuple[int, ...]) -> dict[Hashable, Fraction]:
        lines = [
            _bounded_law(self.event, count) if self.noise is None else _bounded(self.noise, count)
            for count in counts
        ]
        return {
            tuple(outcome for outcome, _ in each): math.prod(
                (share for _, share in each), start=Fraction(1)
            )
            for each in product(*(line.items() for line in lines))
        }

    def pairs(self) -> Iterator[tuple[Table, Table]]:
        """Return all small tables of units of one row, and one unit more with all its rows."""
        kinds = range(len(self.about.kinds))
        more = list(combinations_with_replacement(kinds, self.rows_of_unit))
        for table in all_tables((len(kinds),), self.most_rows):
            for unit in more:
                yield table, (*table, unit)


@lru_cache(maxsize=64)
def _bounded_law(event: AgreementCounts, count: int) -> dict[int, Fraction]:
    sizes = noise_law(noise_of(event))
    return _bounded({sign * k: p for k, p in sizes.items() for sign in (1, -1)}, count)


def _bounded(law: Mapping[int, Fraction], count: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = defaultdict(Fraction)
    for noise, chance in law.items():
        found[min(max(count + noise, -_REACH), _REACH)] += chance
    return dict(found)


def verification_cases() -> list[VerificationCase]:
    """Return cases of both kinds of noise, several coefficients, units, and fits that fail."""
    about: dict[str, Any] = {"formula": "y ~ 1", "terms": ("a",), "parts": PARTS}
    laplace = AgreementCounts.laplace(1.0, **about)
    gaussian = AgreementCounts.gaussian(1.0, **about)
    two = AgreementCounts.laplace(2.0, formula="y ~ 1", terms=("a", "b"), parts=PARTS)
    slope = AgreementCounts.laplace(1.0, formula="y ~ x", terms=("x",), parts=PARTS)
    return [
        VerificationCase("one coefficient", laplace, _mean(1)),
        VerificationCase("one coefficient, approximate", gaussian, _mean(1)),
        VerificationCase("two coefficients", two, _mean(2), most_rows=2),
        VerificationCase("two rows per unit", laplace, _mean(1), rows_of_unit=2, most_rows=2),
        VerificationCase("fits that fail", slope, _slope()),
    ]
