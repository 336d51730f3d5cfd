"""What every synthetic table is judged by, whoever made it.

`tvd1`, `tvd2` and `tvd3` are those of `pegsynth.evaluation`; `tvd3_drawn` is the same for
triples drawn by another rule. AUC: gradient boosting learns the target from the synthetic
rows and is tested on real rows that no synthesizer saw. `logit` is the mean absolute error of
logistic coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from checks.bench.distances import tvd1, tvd2, tvd3
from checks.bench.peers.tables import Codes, Table
from pegsynth.codec.tabulation import align, column_major, count_cells
from pegsynth.errors import DataError
from pegsynth.evaluation import total_variation
from pegsynth.evaluation.utility.distances import MOST_TRIPLES

Float64 = NDArray[np.float64]

TREES = 50
RAREST_CLASS = 0.01
NO_SKILL = 0.5
_MOST_PREDICTORS = 12
_NEWTON_STEPS = 30
_RIDGE = 1.0
LOGISTIC = (
    f"the upper half of the target on the {_MOST_PREDICTORS} columns that vary most, codes as "
    "numbers in standard deviations of the original, a ridge of one row"
)
DRAWN_RULE = "numpy.random.default_rng(0).choice of all triples in lexicographic order"
CLASSIFIER = (
    f"scikit-learn's HistGradientBoostingClassifier, {TREES} iterations without early stopping, "
    "codes as numbers, learned from all synthetic rows and tested on real rows that no tool saw; "
    "targets of more than two classes by the mean over classes, one against the rest, of those "
    "that hold at least 1 % of the test rows"
)


@dataclass(frozen=True)
class Scores:
    """Mean total variation of all one-ways, all pairs and twice 100 fixed triples; AUC; logit."""

    tvd1: float
    tvd2: float
    tvd3: float
    tvd3_drawn: float
    auc: float
    logit: float


def score(table: Table, synthetic: Codes, *, threads: int = 1) -> Scores:
    """Compare synthetic rows with the training rows, and learn from them.

    Raises
    ------
    DataError
        The rows hold a code outside the domain, or there are none.
    """
    if synthetic.ndim != 2 or synthetic.shape[1] != len(table.domain):
        raise DataError(f"{table.name}: a tool wrote a table of another width")
    levels = table.levels
    return Scores(
        tvd1(table.train, synthetic, levels),
        tvd2(table.train, synthetic, levels, threads=threads),
        tvd3(table.train, synthetic, levels, threads=threads),
        drawn_triples(table, synthetic),
        auc(table, synthetic),
        logit_error(table, synthetic),
    )


def drawn_triples(table: Table, synthetic: Codes) -> float:
    """Mean total variation over the triples of `DRAWN_RULE`."""
    every = list(combinations(range(len(table.levels)), 3))
    count = min(MOST_TRIPLES, len(every))
    chosen = np.random.default_rng(0).choice(len(every), count, replace=False)
    original = column_major(table.train, table.levels, what=table.name)
    other = column_major(synthetic, table.levels, what="synthetic table")
    distances = []
    for triple in (list(every[i]) for i in chosen):
        sizes = [table.levels[i] for i in triple]
        first, second = count_cells(original[triple], sizes), count_cells(other[triple], sizes)
        distances.append(total_variation(*align(first, second)[1:]))
    return float(np.mean(distances))


def auc(table: Table, learned_from: Codes) -> float:
    """Area under the curve on the test rows of a classifier that learned from other rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    position = list(table.domain).index(table.target)
    outcome = learned_from[:, position]
    real = table.test[:, position]
    if len(np.unique(outcome)) == 1:
        return NO_SKILL
    model = HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0)
    # More threads wait for each other when the machine is busy.
    with threadpool_limits(limits=1):
        model.fit(np.delete(learned_from, position, axis=1), outcome)
        chances = model.predict_proba(np.delete(table.test, position, axis=1))
    columns = dict(zip(model.classes_.tolist(), chances.T, strict=True))
    return _over_classes(real, columns)


def _over_classes(real: Codes, chances: Mapping[int, np.ndarray]) -> float:
    from sklearn.metrics import roc_auc_score

    codes, counts = np.unique(real, return_counts=True)
    judged = codes[counts >= RAREST_CLASS * len(real)]
    # Of two classes both give the same area.
    judged = judged[-1:] if len(codes) == 2 else judged
    nothing = np.zeros(len(real))
    areas = [roc_auc_score(real == code, chances.get(int(code), nothing)) for code in judged]
    return float(np.mean(areas))


def logit_error(table: Table, synthetic: Codes) -> float:
    """Mean absolute error of the coefficients of `logistic_coefficients`."""
    if table.name not in _TRUE:
        _TRUE[table.name] = logistic_coefficients(table, table.train)
    return float(np.abs(logistic_coefficients(table, synthetic) - _TRUE[table.name]).mean())


_TRUE: dict[str, Float64] = {}


def logistic_coefficients(table: Table, rows: Codes) -> Float64:
    """Logistic coefficients of the target's upper half on the columns that vary most.

    Codes are numbers here, in standard deviations of the original; a ridge of one row keeps
    them finite.
    """
    position = list(table.domain).index(table.target)
    original = table.train.astype(np.float64)
    spread = original.std(axis=0)
    often = np.array([np.bincount(column).max() / len(column) for column in table.train.T])
    others = [i for i in np.argsort(often, kind="stable").tolist() if i != position and spread[i]]
    chosen = sorted(others[:_MOST_PREDICTORS])
    values = (rows[:, chosen] - original[:, chosen].mean(axis=0)) / spread[chosen]
    design = np.column_stack([np.ones(len(values)), values])
    cut = max(float(np.median(original[:, position])), float(original[:, position].min()) + 1)
    outcome = (rows[:, position] >= cut).astype(np.float64)
    found = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        slope = design.T @ (outcome - chance) - _RIDGE * found
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + _RIDGE * np.eye(len(found))
        step = np.linalg.solve(bend, slope)
        found += np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-8:
            break
    return found[1:]
