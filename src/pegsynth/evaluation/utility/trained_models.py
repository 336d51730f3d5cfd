"""Models trained on rows: how well they predict, and whether one tells synthetic rows from real.

Train on synthetic rows, test on real rows: gradient-boosted trees predict a target from all other
features. They are judged on real rows by the area under the ROC curve, for more than two categories
the mean over the categories of one against the rest. The yardstick is the same model trained on as
many real rows.

Propensity scores: all rows are put together and a logistic regression on the main effects of all
features predicts which are synthetic. With c the share of synthetic rows among all N and p_i the
fitted chance of row i::

    pMSE = (1/N) sum_i (p_i - c)^2

A bootstrap of the original has an expectation of (k - 1)(1 - c)^2 c / N, k being the number
of coefficients with the intercept. The ratio of the two is about 1 for a table that this
regression cannot tell from such a bootstrap.

Notes
-----
Snoke, Raab, Nowok, Dibben and Slavkovic (2018), General and specific utility measures for
synthetic data, Journal of the Royal Statistical Society: Series A 181(3), 663-688,
doi:10.1111/rssa.12358.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import one_way
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.inference.formula import Term, read_response
from pegsynth.inference.model_matrix import truth
from pegsynth.inference.newton import Rows, maximise, rank_of, starts_of
from pegsynth.inference.statistics import LEVEL, Estimate, placements, quantile, spread
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.kernels.binomial import squared_deviation
from pegsynth.schema import Schema

Labels = NDArray[np.int64]

NAMES = ("auc_synthetic", "auc_real")
MOST_TRAINING_ROWS = 50_000
TEST_EVERY = 5
_TREES_OF_TWO, _TREES_OF_MORE = 100, 20
_MOST_CATEGORIES = 255
_NO_LABEL = -1


@dataclass(frozen=True)
class Area:
    """An area under the curve, and how much each test row moves it (DeLong's components)."""

    value: float
    influence: Float64


@dataclass(frozen=True)
class _Task:
    """What is to be predicted, and by which features."""

    labels: Labels
    target: int
    others: tuple[int, ...]
    nominal: tuple[bool, ...]
    classes: int

    def part(self, table: Codes, within: NDArray[np.bool_] | None = None) -> _Part:
        """Return the rows of a table that have a label."""
        known = self.labels[table[self.target]] != _NO_LABEL
        return _Part(self, table, np.flatnonzero(known if within is None else known & within))


@dataclass(frozen=True)
class _Part:
    """Some rows of a table."""

    task: _Task
    table: Codes
    rows: Labels

    @property
    def labels(self) -> Labels:
        return np.asarray(self.task.labels[self.table[self.task.target, self.rows]])

    @property
    def inputs(self) -> Float64:
        codes = self.table[np.ix_(np.array(self.task.others), self.rows)]
        return np.asarray(codes.T, dtype=np.float64)

    def spaced(self, n: int) -> _Part:
        """Return `n` of the rows, evenly spaced."""
        return _Part(self.task, self.table, self.rows[np.arange(n) * len(self.rows) // n])


def prediction_records(
    target: str,
    original: Codes,
    synthetic: Sequence[Codes],
    schema: Schema,
    *,
    holdout: Codes | None = None,
) -> list[Record]:
    """Return ``auc_synthetic`` and ``auc_real`` for a target.

    Parameters
    ----------
    target
        Name of a feature, or a comparison such as ``I(charge > 25000)``.
    original, synthetic, holdout
        Codes, one feature a line. The test rows are those of the hold-out, or else every
        fifth row of the original, which the real training rows then leave out.
    schema
        The codebook.
    """
    task = _task(read_response(target, schema), schema)
    rows = np.arange(original.shape[1])
    tested = rows % TEST_EVERY == TEST_EVERY - 1
    test = task.part(original, tested) if holdout is None else task.part(holdout)
    real = task.part(original, ~tested) if holdout is None else task.part(original)
    tables = [task.part(table) for table in synthetic]
    n = min([MOST_TRAINING_ROWS, len(real.rows), *(len(part.rows) for part in tables)])
    where = (
        "the rows of the hold-out"
        if holdout is not None
        else "every fifth row of the original (there is no hold-out, so that the synthetic rows "
        "were made from them too)"
    )
    reason = _impossible(test, [real, *tables], n)
    if reason:
        return [not_computed(name, target, reason) for name in NAMES]
    areas = [_trained(part.spaced(n), test) for part in (real, *tables)]
    best = _estimate([areas[0]])
    found = _estimate(areas[1:])
    trees = _TREES_OF_TWO if task.classes == 2 else _TREES_OF_MORE
    note = (
        f"area under the ROC curve of gradient-boosted trees ({trees} rounds, all other features) "
        f"trained on {n} rows, evenly spaced, tested on {len(test.rows)}: {where}"
        + ("" if task.classes == 2 else "; mean over the categories, one against the rest")
        + "; interval: DeLong's"
    )
    pooled = "" if len(tables) == 1 else ", the variance between tables over K added"
    synthetic_note = f"{note}{pooled}; baseline: trained on as many original rows"
    real_note = f"{note}; trained on original rows; baseline: guessing"
    return [
        measured(NAMES[0], target, found, baseline=best.value, n=n, note=synthetic_note),
        measured(NAMES[1], target, best, baseline=0.5, n=n, note=real_note),
    ]


def area(scores: Float64, hit: NDArray[np.bool_]) -> Area:
    """Area under the ROC curve: chance that a hit scores above another row, ties half.

    Parameters
    ----------
    scores
        One for each row.
    hit
        Which rows are hits; there must be some of either.
    """
    inside, outside = np.sort(scores[hit]), np.sort(scores[~hit])
    below = placements(scores[hit], outside)
    above = 1 - placements(scores[~hit], inside)
    value = float(below.mean())
    influence = np.empty(len(scores))
    influence[hit] = (below - value) / len(inside)
    influence[~hit] = (above - value) / len(outside)
    return Area(value, influence)


def mean_area(chances: Float64, labels: Labels) -> Area:
    """Mean of the areas of every category against the rest, where both occur."""
    parts = [
        area(chances[:, label], labels == label)
        for label in range(chances.shape[1])
        if 0 < np.count_nonzero(labels == label) < len(labels)
    ]
    if chances.shape[1] == 2:
        # Both categories give the same area; one is enough.
        parts = parts[1:]
    return Area(
        float(np.mean([part.value for part in parts])),
        np.mean([part.influence for part in parts], axis=0),
    )


def _task(target: Term, schema: Schema) -> _Task:
    position = schema.index(target.feature)
    feature = schema.features[position]
    labels = np.full(feature.category_count, _NO_LABEL, dtype=np.int64)
    labels[: feature.bin_count] = np.arange(feature.bin_count)
    if target.sign:
        answers = truth(target, feature)
        labels = np.where(np.isnan(answers), _NO_LABEL, np.nan_to_num(answers)).astype(np.int64)
    others = tuple(i for i in range(len(schema.features)) if i != position)
    nominal = tuple(
        schema.features[i].kind == "nominal" and schema.category_counts[i] <= _MOST_CATEGORIES
        for i in others
    )
    return _Task(labels, position, others, nominal, 2 if target.sign else feature.bin_count)


def _impossible(test: _Part, parts: Sequence[_Part], n: int) -> str:
    if not test.task.others:
        return "there is no other feature to predict from"
    if n < 2:
        return "there are fewer than 2 rows with a known target to train on"
    if len(np.unique(test.labels)) < 2:
        return "the target has a single value in the test rows"
    for number, part in enumerate(parts):
        if len(np.unique(part.spaced(n).labels)) < 2:
            where = f"synthetic table {number}" if number else "the original"
            return f"the target has a single value in the training rows of {where}"
    return ""


def _trained(part: _Part, test: _Part) -> Area:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    task = part.task
    model = HistGradientBoostingClassifier(
        max_iter=_TREES_OF_TWO if task.classes == 2 else _TREES_OF_MORE,
        categorical_features=np.array(task.nominal),
        early_stopping=False,
        random_state=0,
    )
    # A category that the training rows lack is never predicted: its rows all tie.
    chances = np.zeros((len(test.rows), task.classes))
    # Its threads wait for each other in a spin, which on a busy machine takes many times longer.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(part.inputs, part.labels)
        chances[:, model.classes_] = model.predict_proba(test.inputs)
    return mean_area(chances, test.labels)


def _estimate(areas: Sequence[Area]) -> Estimate:
    """Mean of areas on the same test rows, with an interval."""
    values = np.array([each.value for each in areas])
    influence = np.mean([each.influence for each in areas], axis=0)
    variance = float(np.square(influence).sum())
    if len(areas) > 1:
        variance += float(values.var(ddof=1)) / len(areas)
    value = float(values.mean())
    if variance == 0:
        return Estimate(value)
    half = quantile(LEVEL) * math.sqrt(variance)
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0))


MOST_COEFFICIENTS = 1000
MOST_ADDITIONS = 1 << 31
_NORMAL = 1.959963984540054
_NOTE = (
    "mean squared difference between the chance of being synthetic, fitted by a logistic "
    "regression on the main effects of all features ({coefficients} coefficients), and the share c "
    "of synthetic rows; main effects see the marginal distributions, not how features go together"
)
_EXPECTED = "a bootstrap of the original, (k-1)(1-c)^2 c/N (Snoke et al. 2018)"
_SEVERAL = "mean over the synthetic tables; low and high: smallest and largest"
_ONE = "low and high: 95 % interval by a noncentral chi-squared approximation"


@dataclass(frozen=True)
class Propensity:
    """The propensity score of one synthetic table.

    Parameters
    ----------
    value, expected
        pMSE and its expectation for a bootstrap.
    coefficients
        Coefficients that the rows determine, with the intercept (k).
    rows
        Rows of both tables that were used.
    """

    value: float
    expected: float
    coefficients: int
    rows: int

    @property
    def ratio(self) -> float:
        """The pMSE as a multiple of its expectation; NaN when nothing can differ."""
        return self.value / self.expected if self.expected > 0 else math.nan

    @property
    def ratio_error(self) -> float:
        """Standard error of the ratio: d times it is noncentral chi-squared, d = k - 1."""
        freedom = self.coefficients - 1
        beyond = max(self.ratio - 1, 0.0) * freedom
        return math.sqrt(2 * freedom + 4 * beyond) / freedom


def groups_of(sizes: Sequence[int], most: int = MOST_COEFFICIENTS) -> tuple[int, ...]:
    """Return with how many groups of categories each feature enters.

    All categories where that takes no more than `most` coefficients. Otherwise the largest
    limit that does: a feature with more categories has them merged, in the order of the
    schema, into that many runs of about equal number. Of more than `most` features the
    first ones enter.
    """
    limit, beyond = 2, max(2, *sizes) + 1
    while beyond - limit > 1:
        middle = (limit + beyond) // 2
        fits = 1 + sum(min(size, middle) - 1 for size in sizes) <= most
        limit, beyond = (middle, beyond) if fits else (limit, middle)
    groups, left = [], most - 1
    for size in sizes:
        wanted = min(size, limit)
        groups.append(wanted if wanted - 1 <= left else 1)
        left -= groups[-1] - 1
    return tuple(groups)


def propensity(
    original: Codes, synthetic: Codes, sizes: Sequence[int], *, threads: int = 1
) -> Propensity | None:
    """Return the propensity score of a synthetic table; None when the fit came to no end.

    Parameters
    ----------
    original, synthetic
        Codes, one feature a line.
    sizes
        Number of categories of each feature.
    threads
        Parts of the rows worked on at a time.
    """
    groups = groups_of(sizes)
    tables = [_grouped(_thinned(table), sizes, groups) for table in (original, synthetic)]
    rows = sum(table.shape[1] for table in tables)
    share = tables[1].shape[1] / rows
    telling = _telling(tables, groups)
    unclear = [table[:, ~_has(table, telling)] for table in tables]
    clear = [table.shape[1] - part.shape[1] for table, part in zip(tables, unclear, strict=True)]
    if not all(part.shape[1] for part in unclear):
        clear, unclear = [table.shape[1] for table in tables], []
    squares = clear[0] * share**2 + clear[1] * (1 - share) ** 2
    coefficients = 0
    if unclear:
        found = maximise(_rows(unclear), groups, threads=threads)
        if not found.settled:
            return None
        coefficients = found.rank
        starts, scores = starts_of(groups), found.scores
        for part in unclear:
            squares += squared_deviation(part, starts, scores[:-1], float(scores[-1]), share)
    if any(clear):
        coefficients = rank_of(_rows(tables), groups)
    expected = (coefficients - 1) * (1 - share) ** 2 * share / rows
    return Propensity(float(squares / rows), expected, coefficients, rows)


def propensity_records(
    original: Codes, synthetic: Sequence[Codes], sizes: Sequence[int], *, threads: int = 1
) -> list[Record]:
    """Return ``pmse`` and ``pmse_ratio`` of one or more synthetic tables."""
    found = [propensity(original, table, sizes, threads=threads) for table in synthetic]
    if any(each is None for each in found):
        return _not_computed("the logistic regression did not converge")
    scores = [each for each in found if each is not None]
    if any(math.isnan(score.ratio) for score in scores):
        return _not_computed("every feature has a single value, so nothing can differ")
    note = "; ".join([_NOTE.format(coefficients=scores[0].coefficients), *_remarks(sizes, scores)])
    n = min(score.rows for score in scores)
    expected = float(np.mean([score.expected for score in scores]))
    ratios = [score.ratio for score in scores]
    if len(scores) == 1:
        half, how = _NORMAL * scores[0].ratio_error, _ONE
        ratio = Estimate(ratios[0], max(ratios[0] - half, 0.0), ratios[0] + half, n)
        pmse = Estimate(scores[0].value, ratio.low * expected, ratio.high * expected, n)
    else:
        how, ratio = _SEVERAL, spread(ratios, n=n)
        pmse = spread([score.value for score in scores], n=n)
    note = f"{note}; {how}; baseline: {_EXPECTED}; n: rows of both tables"
    other = f"pmse over what is expected of {_EXPECTED}; {how}; baseline: 1, such a bootstrap"
    return [
        measured("pmse", "", pmse, baseline=expected, note=note),
        measured("pmse_ratio", "", ratio, baseline=1.0, note=other),
    ]


def _not_computed(reason: str) -> list[Record]:
    return [not_computed(name, "", reason) for name in ("pmse", "pmse_ratio")]


def _remarks(sizes: Sequence[int], scores: Sequence[Propensity]) -> list[str]:
    groups = groups_of(sizes)
    remarks = []
    if any(1 < group < size for group, size in zip(groups, sizes, strict=True)):
        remarks.append(
            f"features of more than {max(groups)} categories have these merged, in the order of "
            f"the schema, into {max(groups)} runs of equal number"
        )
    if left_out := sum(group == 1 < size for group, size in zip(groups, sizes, strict=True)):
        remarks.append(f"the last {left_out} features are left out")
    most = _most_rows(len(sizes))
    if any(score.rows >= most for score in scores):
        remarks.append(f"of a table with more than {most} rows that many, evenly spaced, are used")
    return remarks


def _most_rows(features: int) -> int:
    """Return the most rows of a table that are used; 13 features allow 11 million."""
    return max(MOST_ADDITIONS // (features * (features + 1)), 1)


def _thinned(table: Codes) -> Codes:
    most, rows = _most_rows(len(table)), table.shape[1]
    return table if rows <= most else table[:, np.arange(most) * rows // most]


def _grouped(table: Codes, sizes: Sequence[int], groups: Sequence[int]) -> Codes:
    if tuple(sizes) == tuple(groups):
        return table
    pairs = zip(table, sizes, groups, strict=True)
    dtype = np.min_scalar_type(max(groups))
    return np.stack([(c.astype(np.int64) * g // s).astype(dtype) for c, s, g in pairs])


def _telling(tables: Sequence[Codes], groups: Sequence[int]) -> list[NDArray[np.bool_]]:
    """Mark the categories that occur in one table only: their rows are told apart for certain.

    Their coefficients are infinite and their rows say nothing about the others.
    """
    seen = [[one_way(t[i], g) > 0 for i, g in enumerate(groups)] for t in tables]
    return [first != second for first, second in zip(*seen, strict=True)]


def _has(table: Codes, marked: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    hit = np.zeros(table.shape[1], dtype=np.bool_)
    for column, marks in zip(table, marked, strict=True):
        if marks.any():
            hit |= marks[column]
    return hit


def _rows(tables: Sequence[Codes]) -> list[Rows]:
    """Return both tables with what is to be predicted: 0 original, 1 synthetic."""
    return [
        Rows(table, np.ones(table.shape[1]), np.full(table.shape[1], float(number)))
        for number, table in enumerate(tables)
    ]
