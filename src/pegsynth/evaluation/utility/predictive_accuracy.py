"""Train on synthetic rows, test on real rows: how well the model predicts.

Gradient-boosted trees predict a target from all other features. They are judged on real
rows by the area under the ROC curve, for more than two categories the mean over the
categories of one against the rest. The yardstick is the same model trained on as many real
rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.inference.formula import Term, read_response
from pegsynth.inference.model_matrix import truth
from pegsynth.inference.statistics import LEVEL, Estimate, placements, quantile
from pegsynth.kernels.arrays import Codes, Float64
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
