"""Replicates of measured shapes vary as other rows and other noise make shapes vary (R28)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pegsynth.methods.released._shape_replicates as module
from pegsynth import fit, load
from pegsynth.auditing.measured_codecs import exact_counts
from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import agreeing
from pegsynth.codec.measured_numbers import measure, settle
from pegsynth.errors import ModelError
from pegsynth.inference.combining_rules import PART
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released._shape_replicates import replicated_shapes, reweighed
from pegsynth.pipeline import drawn_tables
from pegsynth.privacy import Allowance
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.storage.model_file import load_model, shape_arrays, stored_shapes
from significance import ALPHA

ROWS, RUNS = 2000, 60
PUBLIC = Feature(
    "x", kind="numeric", edges=(0.0, 1024.0), dtype="int64", inside="measured", missing=("",)
)
PRIVATE = Feature("x", kind="numeric", edges="private", dtype="int64", missing=("",))
LOUD, QUIET = Fraction(1, 8000), Fraction(100)
"""Budgets under which noise outweighs sampling, and sampling noise."""


def values(seed, rows=ROWS):
    return np.floor(np.random.default_rng(seed).random(rows) ** 2 * 1024)


def measured(seed, amount, *, feature=PUBLIC, route="zcdp"):
    stream = RandomStream(f"shape {seed}")
    budget_filter = PrivacyFilter(Allowance(route, amount), stream)
    tree = measure(exact_counts(feature, values(seed).tolist()), feature, budget_filter, 1.0)
    return settle(Schema((feature,)), {"x": tree}, 5)


def mean_of(shape):
    """Return the mean of the first bin of a shape."""
    ranks = (np.arange(400) + 0.5) / 400
    return float(shape.values(np.zeros(400, dtype=np.int64), ranks).mean())


def means_of(settled, **options):
    found = replicated_shapes(
        settled.shapes, settled.schema, RandomStream("again"), count=RUNS, **options
    )
    return [mean_of(each["x"]) for each in found]


def varies_alike(first, second):
    """Whether two variances agree, at a false-alarm rate of `ALPHA`."""
    ratio = np.var(first, ddof=1) / max(np.var(second, ddof=1), 1e-12)
    low, high = stats.f.ppf([ALPHA / 2, 1 - ALPHA / 2], len(first) - 1, len(second) - 1)
    return low < ratio < high


@pytest.mark.parametrize("amount", [LOUD, QUIET])
@pytest.mark.parametrize("route", ["zcdp", "pure"])
def test_replicates_vary_as_fresh_tables_do(amount, route):
    fresh = [mean_of(measured(seed, amount, route=route).shapes["x"]) for seed in range(RUNS)]
    assert varies_alike(means_of(measured(999, amount, route=route)), fresh)


def test_means_of_replicates_follow_clipped_sums_of_their_own():
    """With the published sum in all of them, bins would move and means would be moved back."""
    rows, counts = values(1), np.array([float(ROWS)])
    stream = RandomStream("sums")
    budget_filter = PrivacyFilter(Allowance("zcdp", QUIET), stream)
    exact = exact_counts(PUBLIC, rows.tolist())
    tree = measure(exact, PUBLIC, budget_filter, 1.0, rows=ROWS)
    settled = settle(Schema((PUBLIC,)), {"x": tree}, 5)
    found = replicated_shapes(settled.shapes, settled.schema, RandomStream("a"), count=RUNS)
    source = settled.shapes["x"].source
    own = [mean_of(agreeing(each["x"], PUBLIC, counts)) for each in found]
    twin = [mean_of(agreeing(replace(each["x"], source=source), PUBLIC, counts)) for each in found]
    fresh = [values(seed).mean() for seed in range(RUNS)]
    assert varies_alike(own, fresh)
    assert not varies_alike(twin, fresh)


def test_forgotten_noise_and_rows_that_are_not_drawn_anew_are_found_out(monkeypatch):
    loud = [mean_of(measured(seed, LOUD).shapes["x"]) for seed in range(RUNS)]
    quiet = [mean_of(measured(seed, QUIET).shapes["x"]) for seed in range(RUNS)]
    assert not varies_alike(means_of(measured(999, QUIET), design_effect=0.0), quiet)
    monkeypatch.setattr(module, "add_noise", lambda counts, *_: counts)
    assert not varies_alike(means_of(measured(999, LOUD)), loud)


def test_rows_follow_the_shapes_of_replicates_and_bins_keep_their_weight():
    settled = measured(1, LOUD, feature=PRIVATE)
    shapes, schema = settled.shapes, settled.schema
    others = replicated_shapes(shapes, schema, RandomStream("k"), count=3)
    bins = np.repeat(np.arange(len(shapes["x"].shares)), 3000)
    drawn = shapes["x"].values(bins, np.tile((np.arange(3000) + 0.5) / 3000, len(bins) // 3000))
    frame = pl.DataFrame({"x": pl.Series(drawn).cast(pl.Int64)}).with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise(pl.col("x")).alias("x")
    )
    weights = np.random.default_rng(1).random((3, len(bins))) + 0.5
    found = reweighed(frame, weights, weights, schema, shapes, others)
    assert (found[:, 0] == weights[:, 0]).all()
    for line, before in zip(found, weights, strict=True):
        assert np.bincount(bins, line) == pytest.approx(np.bincount(bins, before))
    even = np.ones((3, len(bins)))
    flat = reweighed(frame, even, even, schema, shapes, others)
    first = bins == 0
    for line, other in zip(flat, others, strict=True):
        # A part f of the way from the published shape to that of the replicate.
        wanted = (1 - PART) * mean_of(shapes["x"]) + PART * mean_of(other["x"])
        got = np.average(drawn[first][1:], weights=line[first][1:])
        assert got == pytest.approx(wanted, rel=0.01)
    alike = np.ones_like(weights)
    same = reweighed(frame, alike, alike, schema, shapes, [shapes] * 3)
    assert np.allclose(same, alike)


HIDING, SEEDS, FEW = Fraction(1, 1000), 30, 6
"""A budget under which the upper octaves of a long tail do not stand out; releases; replicates."""
LONG = Feature("x", kind="numeric", edges="private", dtype="int64")


def off_in_standard_errors(seed, *, beyond):
    """Return how far the mean of released rows is from that of a long tail."""
    original = np.floor(np.exp(np.random.default_rng(seed).normal(4.0, 1.0, ROWS)))
    budget_filter = PrivacyFilter(Allowance("zcdp", HIDING), RandomStream(f"tail {seed}"))
    counts = exact_counts(LONG, original.tolist())
    tree = measure(counts, LONG, budget_filter, 1.0, rows=ROWS)
    settled = settle(Schema((LONG,)), {"x": tree}, 5)
    feature = settled.schema["x"]
    bins = np.searchsorted(feature.edges[1:-1], original, side="right")
    sizes = np.bincount(bins, minlength=feature.bin_count)
    shape = agreeing(settled.shapes["x"], feature, sizes.astype(float))
    ranks = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes if size])
    drawn = shape.values(np.repeat(np.arange(len(sizes)), sizes), ranks)
    assert drawn.max() < feature.edges[-1]
    words = RandomStream(f"replicates {seed}")
    others = replicated_shapes(
        settled.shapes, settled.schema, words, count=FEW, beyond=beyond, design_effect=1.0
    )
    even, frame = np.ones((FEW, ROWS)), pl.DataFrame({"x": drawn})
    lines = reweighed(frame, even, even, settled.schema, settled.shapes, others)
    means = lines @ drawn / lines.sum(axis=1)
    error = np.sqrt(((means - drawn.mean()) ** 2).mean()) / PART
    return abs(drawn.mean() - original.mean()) / error


def test_intervals_of_means_hold_the_tails_that_noise_hides():
    """At least 0.8 of them; without those tails hardly any, because all replicates lack them."""
    reach, least = stats.t.ppf(0.975, FEW), stats.binom.ppf(ALPHA, SEEDS, 0.8)
    held = {
        beyond: sum(off_in_standard_errors(seed, beyond=beyond) < reach for seed in range(SEEDS))
        for beyond in (True, False)
    }
    assert held[True] >= least
    assert held[False] < least


def test_shapes_without_a_tree_have_no_replicates():
    shape = Shape.uniform((0.0, 8.0), 1.0, np.ones(1))
    schema = Schema((replace(PUBLIC, edges=(0.0, 8.0)),))
    assert replicated_shapes({"x": shape}, schema, RandomStream(1), count=2) == [{"x": shape}] * 2


def spread(epsilon=500.0):
    """Return how much a mean varies, under sampling alone being 1; noise adds next to nothing."""
    schema = Schema((PUBLIC, Feature("g", categories=("a", "b"))), reviewed=True)
    table = pl.DataFrame({"x": values(5).astype(int), "g": ["a", "b"] * (ROWS // 2)})
    model = fit(table, schema, method="pegs-once", epsilon=epsilon, rows_in=ROWS, seed=1)
    found = model.replicates(RUNS, rows=ROWS)
    numbers = found["x"].to_numpy().astype(float)
    weights = np.stack([found[f"pegs_weight_{k}"].to_numpy() for k in range(1, RUNS + 1)])
    means = weights @ numbers / weights.sum(axis=1)
    away = np.sqrt(((means - numbers.mean()) ** 2).mean()) / PART
    return away / (numbers.std() / ROWS**0.5)


def test_rows_that_are_drawn_again_take_their_values_along_once(monkeypatch):
    """60 replicates know a deviation to 9 %."""
    assert spread() == pytest.approx(1.0, abs=0.25)
    usual = drawn_tables._shape_replicates
    twin = lambda *asked, drawn, beyond: usual(*asked, drawn=True, beyond=beyond)  # noqa: E731
    monkeypatch.setattr(drawn_tables, "_shape_replicates", twin)
    assert spread() > 1.35


def people(rows=400):
    return pl.DataFrame({"x": values(3, rows).astype(int), "g": ["a", "b"] * (rows // 2)})


@pytest.mark.parametrize("feature", [PUBLIC, PRIVATE])
def test_a_model_file_keeps_the_tree(tmp_path, feature):
    schema = Schema((feature, Feature("g", categories=("a", "b"))), reviewed=True)
    model = fit(people(), schema, method="pegs-once", epsilon=2.0, delta=1e-9)
    model.save(tmp_path / "m.pegs")
    kept = model.session.model.shapes["x"].source
    again = load_model(tmp_path / "m.pegs").shapes["x"].source
    assert again.bounds == kept.bounds
    assert (again.tree.name, again.tree.laplace) == (kept.tree.name, kept.tree.laplace)
    for first, second in zip(again.tree.levels, kept.tree.levels, strict=True):
        assert first.deviation == second.deviation
        assert first.nodes.tolist() == second.nodes.tolist()
        assert first.counts.tolist() == second.counts.tolist()
    weights = load(tmp_path / "m.pegs").replicates(2, rows=50)
    assert weights["pegs_weight_1"].to_list() != weights["pegs_weight_2"].to_list()
    assert [table.height for table in model.sample(30, datasets=2).frames] == [30, 30]


@pytest.mark.parametrize("part", ["tree", "tree nodes0", "tree counts0"])
def test_a_damaged_tree_is_refused(part):
    settled = measured(1, QUIET, feature=PRIVATE)
    arrays = shape_arrays(settled.shapes)
    key = f"shape of feature x: {part}"
    shifted = () if part == "tree counts0" else (arrays[key] * 0 - 1,)
    for broken in (arrays[key][:-1], *shifted):
        with pytest.raises(ModelError, match="tree of feature 'x'"):
            stored_shapes({**arrays, key: broken}, settled.schema)
