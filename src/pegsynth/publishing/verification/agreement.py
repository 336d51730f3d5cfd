"""How many parts of the original agree with a release, with exact noise (R32).

Goes in: a question that was settled without the original, the original, a budget. Comes
out: a noisy count for every coefficient, and the event that pays for them. What a part
answers depends on the rows of that part alone; a part that gives no estimate answers no, for
whatever reason. No error and no warning says more of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import escaped
from pegsynth.inference.model_matrix import sample_of
from pegsynth.inference.regression_fit import fit
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms import answers
from pegsynth.mechanisms.noise import Below
from pegsynth.privacy import AgreementCounts, Allowance
from pegsynth.publishing.verification.regions import Asked, Rows
from pegsynth.random import RandomStream
from pegsynth.runtime import in_silence
from pegsynth.schema import Schema

Answers = NDArray[np.int64]
Deal = Callable[..., Int64]


def dealt(units: Int64 | None, rows: int, parts: int, words: Below) -> Int64:
    """Return the part of every row.

    Every unit gets an exact uniform integer of its own and takes all its rows along. Parts
    of equal size would not do: one unit more would move others to another part.

    Parameters
    ----------
    units
        For every row the number of its unit, from 0; None: every row is a unit.
    words
        A source of exact uniform integers.
    """
    count = rows if units is None else (int(units.max()) + 1 if len(units) else 0)
    drawn = np.array([words.below(parts) for _ in range(count)], dtype=np.int64)
    found: Int64 = drawn if units is None else drawn[units]
    return found


@dataclass(frozen=True)
class Agreement:
    """What was paid for.

    Parameters
    ----------
    counts
        Parts that agree, with noise, for every coefficient of the question.
    event
        The noise, and what it costs.
    """

    counts: Int64
    event: AgreementCounts

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise."""
        scale = self.event.scale_numerator / self.event.scale_denominator
        if self.event.mechanism == "discrete-gaussian":
            return math.sqrt(scale)
        return math.sqrt(2.0) * scale


def agreement_event(asked: Asked, allowance: Allowance) -> AgreementCounts:
    """Return the event that a whole allowance pays for: the least noise it buys."""
    terms = tuple(escaped(region.term) for region in asked.regions)
    about: dict[str, Any] = {
        "formula": escaped(asked.formula.text),
        "terms": terms,
        "parts": asked.parts,
    }
    # Prices are rounded up in the last of many digits: the noise is larger by a hair.
    amount, count = float(allowance.amount) * (1 - _SLACK), len(terms)
    if allowance.route == "pure":
        return AgreementCounts.laplace(count / amount, **about)
    deviation = math.sqrt(count / (2 * amount))
    return AgreementCounts.gaussian(Fraction(deviation), **about)


_SLACK = 1e-12


def agrees(asked: Asked, rows: Rows, schema: Schema) -> Answers:
    """Return 1 for every coefficient of one part that agrees; 0 where there is no estimate.

    A fit that fails, in whatever way, is an answer. Warnings are held back and cannot become
    errors: whether there is one depends on the rows.
    """
    try:
        with in_silence():
            return np.array(part_answers(asked, rows, schema), dtype=np.int64)
    except Exception:  # noqa: BLE001 (whether and how a fit fails depends on the rows)
        return np.zeros(len(asked.regions), dtype=np.int64)


def part_answers(asked: Asked, rows: Rows, schema: Schema) -> list[bool]:
    """Fit one part and compare; a part that cannot be fitted may raise."""
    sample = sample_of(asked.formula, rows.codes, schema, rows.values)
    found = fit(sample, asked.columns, asked.formula.kind).estimates
    return [
        region.term in found and region.holds(found[region.term].value) for region in asked.regions
    ]


def measured(
    asked: Asked,
    rows: Rows,
    schema: Schema,
    event: AgreementCounts,
    stream: RandomStream,
    *,
    deal: Deal = dealt,
) -> Agreement:
    """Deal the original to parts, ask each of them, and count those that agree, with noise.

    What `event` records is to be charged before.
    """
    parts = deal(rows.units, len(rows), asked.parts, stream.substream())
    counts = counted(asked, rows, schema, parts)
    return Agreement(answers.noisy(counts, event, stream), event)


def counted(asked: Asked, rows: Rows, schema: Schema, parts: Int64) -> Int64:
    """Count the parts that agree, exactly: confidential until noise is added.

    A part without rows does not agree.
    """
    order = np.argsort(parts, kind="stable")
    counts = np.zeros(len(asked.regions), dtype=np.int64)
    for kept in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1):
        # In the order of the table: what a part answers is a function of its own rows.
        counts += agrees(asked, rows.some(kept), schema)
    return counts
