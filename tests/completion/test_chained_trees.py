"""Missing values are drawn from the synthetic rows, as uncertainly as these are few (R23)."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pegsynth import Feature, Rule, Schema
from pegsynth.methods import completion as chained_trees
from pegsynth.methods.baselines.target_fits import RowsToFit
from pegsynth.methods.baselines.trees import CART_TREE, fit_trees
from pegsynth.methods.completion import completed_frames, fill, missing_cells
from pegsynth.random import RandomStream
from significance import ALPHA, fits

X = Feature("x", categories=("a", "b"))
Y = Feature("y", categories=("0", "1"), missing=("",))
BOOK = Schema((X, Y))
MISSING = Y.missing_code
LOST = 40
IMPUTATIONS = 1500


def pair_codes(ones=(6, 24), of=(30, 40), lost=(0, LOST)):
    """Rows of two groups: so many ones among those seen, so many lost."""
    lines = []
    for x in (0, 1):
        lines += [(x, 1)] * ones[x] + [(x, 0)] * (of[x] - ones[x]) + [(x, MISSING)] * lost[x]
    return np.array(lines, dtype=np.uint8)


def ones_drawn(codes):
    """How many ones every imputation drew."""
    hole = codes[:, 1] == MISSING
    filled = fill(codes, BOOK, RandomStream(), imputations=IMPUTATIONS, threads=2)
    return [int(each.codes[hole, 1].sum()) for each in filled]


def follows(counts, ones, seen):
    """Whether counts follow the exact law: a share drawn from Beta(ones, zeros), then ones."""
    law = stats.betabinom(LOST, ones, seen - ones).pmf(np.arange(LOST + 1))
    tally = Counter(counts)
    return fits([tally[k] for k in range(LOST + 1)], law / law.sum())


def test_ones_follow_the_law_of_a_proper_imputation():
    """Redrawn weights of 40 rows make the share of their ones Beta(24, 16), exactly."""
    assert follows(ones_drawn(pair_codes()), 24, 40)


def test_twin_whose_weights_are_not_redrawn(monkeypatch):
    monkeypatch.setattr(chained_trees, "bayesian_bootstrap", lambda rows, words: np.ones(rows))
    assert not follows(ones_drawn(pair_codes()), 24, 40)


def test_twin_that_is_fitted_to_other_rows_than_the_synthetic_ones():
    """What an imputer draws that has seen the original instead."""
    assert not follows(ones_drawn(pair_codes(ones=(6, 16))), 24, 40)


def numeric_book(*rules):
    return Schema(
        (
            Feature("group", categories=("a", "b", "c"), missing=("-9",)),
            Feature("pay", "numeric", edges=(0, 1, 10, 100), missing=("",)),
            Feature("grade", "ordinal", ("low", "high"), not_applicable=("-",), missing=("",)),
        ),
        rules=rules,
    )


def table(rows=400, seed=1):
    random = np.random.default_rng(seed)
    group = random.integers(0, 3, rows)
    pay = np.where(random.random(rows) < 0.3, 0.0, np.round(random.exponential(8 * (group + 1)), 2))
    grade = np.array(["low", "high", "-"])[(random.random(rows) * (group + 1)).astype(int)]
    frame = pl.DataFrame(
        {"group": np.array(["a", "b", "c"])[group], "pay": np.minimum(pay, 99.0), "grade": grade}
    )
    return frame.with_columns(
        pl.when(pl.Series(random.random(rows) < 0.25))
        .then(None)
        .otherwise(pl.col(name))
        .alias(name)
        for name in frame.columns
    )


def test_seen_values_stay_and_drawn_ones_are_values_of_the_table():
    frame = table()
    for completed in completed_frames(frame, numeric_book(), RandomStream(3), imputations=3):
        assert completed.schema == frame.schema
        assert sum(completed.null_count().row(0)) == 0
        for name in frame.columns:
            seen = frame[name].is_not_null()
            assert completed[name].filter(seen).to_list() == frame[name].drop_nulls().to_list()
            assert set(completed[name]) <= set(frame[name].drop_nulls())


def test_zeros_and_shapes_inside_bins_are_those_of_the_synthetic_values():
    """30 % of the values are 0; uniform values inside a bin would have next to none."""
    frame = table(4000)
    hole = frame["pay"].is_null()
    (completed,) = completed_frames(frame, numeric_book(), RandomStream(4))
    zeros = (completed["pay"].filter(hole) == 0).sum()
    assert stats.binomtest(int(zeros), int(hole.sum()), 0.3).pvalue > ALPHA


def test_values_follow_the_rest_of_their_row():
    """Lost where they are large: complete cases are off by much, completed ones by little."""
    random = np.random.default_rng(7)
    group = random.integers(0, 3, 6000)
    pay = np.minimum(random.exponential(4.0 * (group + 1)), 99.0)
    lost = random.random(6000) < np.array([0.0, 0.2, 0.7])[group]
    frame = pl.DataFrame({"group": np.array(["a", "b", "c"])[group], "pay": pay, "grade": "low"})
    holed = frame.with_columns(pl.when(pl.Series(lost)).then(None).otherwise("pay").alias("pay"))
    (completed,) = completed_frames(holed, numeric_book(), RandomStream(8))
    assert holed["pay"].mean() < 0.85 * frame["pay"].mean()
    assert completed["pay"].mean() == pytest.approx(frame["pay"].mean(), rel=0.06)


def test_rules_hold_and_leave_missing_what_they_must():
    low_pay = Rule.forbid(group="a", grade=["high"])
    structural = Rule.forbid(group="b", pay=["[0, 1)", "[1, 10)", "[10, 100]"])
    book = numeric_book(low_pay, structural)
    frame = table(2000)
    legal = ~((pl.col("group") == "a") & (pl.col("grade") == "high"))
    frame = frame.filter(legal.fill_null(True)).with_columns(
        pl.when(pl.col("group") == "b").then(None).otherwise("pay").alias("pay")
    )
    for completed in completed_frames(frame, book, RandomStream(5), imputations=2):
        assert completed.filter(group="a", grade="high").is_empty()
        assert completed.filter(pl.col("group") == "b")["pay"].drop_nulls().is_empty()
        seen = frame["group"] == "b"
        assert completed.filter(seen)["pay"].null_count() == seen.sum()
        assert completed["grade"].null_count() == completed["group"].null_count() == 0


def test_the_same_seed_gives_the_same_tables_on_any_number_of_threads():
    frame = table()
    once, twice = (
        completed_frames(frame, numeric_book(), RandomStream(6), imputations=3, threads=threads)
        for threads in (1, 3)
    )
    assert all(a.equals(b) for a, b in zip(once, twice, strict=True))
    assert not once[0].equals(once[1])


def test_a_feature_without_any_value_stays_missing():
    codes = pair_codes()
    codes[:, 1] = MISSING
    (filled,) = fill(codes, BOOK, RandomStream(1))
    assert (filled.codes == codes).all()
    assert not filled.donors


def test_a_table_without_missing_values_stays_as_it_is():
    codes = pair_codes(lost=(0, 0))
    assert missing_cells(codes, BOOK) == {}
    assert (fill(codes, BOOK, RandomStream(1))[0].codes == codes).all()


def test_donors_have_the_value_that_was_drawn():
    codes = np.stack([np.arange(300) % 2, np.arange(300) % 3], axis=1).astype(np.uint8)
    (filled,) = fill(codes, BOOK, RandomStream(2))
    lost, donors = filled.donors[1]
    assert (codes[lost, 1] == MISSING).all()
    assert (codes[donors, 1] == filled.codes[lost, 1]).all()
    # One predictor: rows of a leaf are rows of its group.
    assert (codes[donors, 0] == codes[lost, 0]).all()


def test_leaves_agree_with_a_slow_walk():
    codes = np.random.default_rng(3).integers(0, 2, (200, 2)).astype(np.uint8)
    book = Schema((X, Feature("z", categories=tuple("pqrs")), Feature("y", categories=("0", "1"))))
    codes = np.column_stack([codes[:, 0], np.arange(200) % 4, codes[:, 1]]).astype(np.uint8)
    to_fit = RowsToFit.of(codes, book, targets=[2])
    model = fit_trees(to_fit, CART_TREE, words=RandomStream(1).substream())
    trees = model.trees[2]
    nodes, starts = trees.nodes, np.concatenate([[0], np.cumsum(book.category_counts)])

    def walk(row):
        node = int(trees.roots[0])
        while nodes.feature[node] >= 0:
            feature, split = nodes.feature[node], nodes.split[node]
            code = row[feature]
            rank = trees.ranks[starts[feature] + code]
            left = rank <= split if split >= 0 else code != -1 - split
            node = int(nodes.left[node] if left else nodes.right[node])
        return node

    assert model.leaves(2, codes).tolist() == [walk(row) for row in codes]
