"""How far off a release will be: a public formula, fitted on measured releases of many tables.

Goes in: numbers of categories, the price of the budget, stated rows. Comes out: the total variation
that columns and pairs of columns are expected to have from the original, drawing included. The
logarithm of each is a sum of a few logarithms with the coefficients in ``plan_model.json``:

    noise          error of one-way counts if the whole budget went there
    pair noise     error of pair tables if all of them shared the whole budget
    drawing        error of one-way tables of as many rows drawn from the truth
    pair drawing   the same of pair tables
    columns        how many there are
    no delta       2 where no delta is stated, else 1: noise of parts of a pure budget is larger

A coefficient of noise or drawing is never negative: more budget and more rows never raise a
prediction. ``python -m checks.bench.plan_accuracy --fit`` makes the file anew from the cells that
``python -m checks.bench.plan_cells`` has measured. No figure in it is of anybody's data: the tables
are public or invented.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.privacy import UnitBound

if TYPE_CHECKING:
    from pegsynth.kernels.arrays import Float64
    from pegsynth.methods.base import Plan
    from pegsynth.schema import Schema

FILE = "plan_model.json"
TERMS = ("one", "noise", "pair noise", "drawing", "pair drawing", "columns", "no delta")
"""What coefficients belong to, in order; the first is the constant."""
_LEAST, _MOST = 1e-5, 0.9
_SMALL = 1e-9
_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class PublicFigures:
    """What a schema, a budget and stated numbers of rows tell about errors.

    Parameters
    ----------
    noise, pair_noise, drawing, pair_drawing
        Expected errors of single causes, as shares of rows out of place; see the module.
    columns
        Number of features.
    pure
        Whether no delta is stated.
    """

    noise: float
    pair_noise: float
    drawing: float
    pair_drawing: float
    columns: int
    pure: bool

    @classmethod
    def of(
        cls,
        category_counts: Sequence[int],
        price: Price,
        *,
        rows_in: int,
        rows: int,
        public: Sequence[Float64 | None] = (),
    ) -> PublicFigures:
        """Work them out; `public` are the shares of features that need no measuring."""
        counts, width = np.asarray(category_counts, dtype=np.float64), len(category_counts)
        noise = margin_error(
            price, rows_in, category_counts, margin_weights(category_counts, public)
        )
        cells, roots = (_mean_product(line) for line in (counts, np.sqrt(counts)))
        half, pairs = _MEAN_ABSOLUTE_NORMAL / 2, max(width * (width - 1) / 2, 1)
        return cls(
            noise=noise,
            pair_noise=half * cells * price.deviation(1 / pairs) / rows_in,
            drawing=half * float(np.sqrt(counts - 1).mean()) / math.sqrt(rows),
            pair_drawing=half * roots / math.sqrt(rows),
            columns=width,
            pure=price.allowance.route == "pure",
        )

    @property
    def logarithms(self) -> tuple[float, ...]:
        """What the coefficients are multiplied with; noise cannot do more than drown a table."""
        drowned = (x / (1 + x) for x in (self.noise, self.pair_noise))
        parts = (*drowned, self.drawing, self.pair_drawing, float(self.columns), 1.0 + self.pure)
        return (1.0, *(math.log(max(each, _SMALL)) for each in parts))


def margin_weights(
    category_counts: Sequence[int], public: Sequence[Float64 | None] = ()
) -> Float64:
    """Return how the budget of the one-way counts is split: wide features get more."""
    weights = np.array([count ** (2 / 3) for count in category_counts])
    for feature, known in enumerate(public):
        if known is not None:
            weights[feature] = 0.0
    whole = weights.sum()
    shared: Float64 = weights / whole if whole > 0 else weights
    return shared


def margin_error(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    weights: Float64,
    *,
    given_total: bool = False,
) -> float:
    """Return the error of one-way tables if the whole budget went there.

    It is smaller once the number of rows is given, which all tables together tell well.
    """
    errors = [
        _MEAN_ABSOLUTE_NORMAL
        * (math.sqrt(count * (count - 1)) if given_total else count)
        * price.deviation(float(weight))
        / (2 * total)
        for count, weight in zip(category_counts, weights, strict=True)
        if weight > 0
    ]
    return float(np.sum(errors)) / len(category_counts)


def figures_of(schema: Schema, plan: Plan) -> PublicFigures:
    """Return the figures of a settled release."""
    options, budget = plan.options, plan.budget
    units = [event.rows_per_unit for event in plan.events if isinstance(event, UnitBound)]
    price = Price(budget.whole("pure" if budget.delta is None else "zcdp"), max(units, default=1))
    rows = options.rows or 1
    public = [np.array(each.shares) if each.shares else None for each in schema.features]
    return PublicFigures.of(
        schema.category_counts, price, rows_in=options.rows_in or rows, rows=rows, public=public
    )


def _mean_product(values: Float64) -> float:
    """Return the mean over pairs of different positions of the product of their values."""
    width = len(values)
    if width < 2:
        return float(values.sum())
    return float(values.sum() ** 2 - (values**2).sum()) / (width * (width - 1))


@dataclass(frozen=True)
class Expected:
    """Expected shares of rows out of place.

    Parameters
    ----------
    columns, pairs
        Of one-way tables and of pair tables, mean of all.
    """

    columns: float
    pairs: float


def expected(
    method: str, figures: PublicFigures, model: Mapping[str, Any] | None = None
) -> Expected:
    """Return what the formula says of a method that was measured."""
    fitted = (model or stored_model())["methods"][method]
    return Expected(*(_value(fitted[name], figures) for name in ("columns", "pairs")))


def _value(coefficients: Sequence[float], figures: PublicFigures) -> float:
    log = math.fsum(a * b for a, b in zip(coefficients, figures.logarithms, strict=True))
    return min(max(math.exp(min(log, 0.0)), _LEAST), _MOST)


def beaten(method: str, others: Sequence[str], figures: PublicFigures) -> bool:
    """Whether another method measured better in pair tables of cells with as much noise."""
    like = stored_model()["like"]
    place = int(np.searchsorted(like["bounds"], figures.noise))
    ratios: Mapping[str, float] = like["ratios"][place]
    own = ratios.get(method)
    return own is not None and any(ratios.get(each, math.inf) < own for each in others)


@cache
def stored_model() -> dict[str, Any]:
    """Return coefficients and comparisons as they were fitted."""
    text = files("pegsynth.methods").joinpath(FILE).read_text(encoding="utf-8")
    model: dict[str, Any] = json.loads(text)
    return model
