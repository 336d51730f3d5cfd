"""Releases of residuals (R27): all pairs at once, the file, rows, replicates, what is held."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from four_categories import break_noise
from once_tables import COUNTS, released_of, table_of_codes, whole_of
from scipy import stats

from pegsynth.errors import ModelError, ParameterError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.mechanisms.residuals import residual_of
from pegsynth.methods.released._asked_counts import asked_counts
from pegsynth.methods.released._budget import (
    Steps,
    pair_weights,
    pairs_are_quiet,
    plan_pairs,
    residual_pairs,
)
from pegsynth.methods.released._details import Merging
from pegsynth.methods.released._draw import draw_rows, plain_margins, plain_targets, rebuild
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._pair_pool import PairNetwork
from pegsynth.methods.released._pairs import PairEstimates, cell_noise, projected
from pegsynth.methods.released._replicates import Laws, perturbed
from pegsynth.methods.released._row_pool import Pool
from pegsynth.methods.released._stored import describe_released, loaded_released, stored_released
from pegsynth.methods.released._supported import cell_deviation, missing_pairs, together
from pegsynth.methods.released._values import Domain, MergedRows, NoisyTable
from pegsynth.methods.stored_model import StoredModel
from pegsynth.privacy import NoisyCounts, NoisyResiduals, Selection
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.rules import Rule
from significance import ALPHA, fit_p_value

STEPS = Steps(pairs_below=np.inf, rounds=6, blocks_beside_pairs=0)
BESIDE = replace(STEPS, blocks_beside_pairs=1.0)
SCHEMA = Schema(
    tuple(
        Feature(f"x{i}", categories=tuple(f"c{j}" for j in range(count)))
        for i, count in enumerate(COUNTS)
    ),
    reviewed=True,
)
PAIRS = list(combinations(range(len(COUNTS)), 2))


def by_residuals(epsilon=10.0, delta=1e-9, **options):
    return released_of(epsilon, delta, steps=STEPS, **options)


# What is measured


def test_every_pair_is_measured_once_and_the_rest_is_chosen():
    released, _, events = by_residuals()
    apart = [event for event in events if isinstance(event, NoisyResiduals)]
    chosen = [e for e in events if isinstance(e, Selection) and e.purpose == "second round"]
    first = apart[: len(PAIRS)]
    assert sorted(t.features for t in released.residuals[: len(PAIRS)]) == PAIRS
    assert {event.purpose for event in first} == {"pairs"}
    assert len(apart) == len(released.residuals) == len(PAIRS) + len(chosen)
    assert not released.blocks
    assert not released.extra
    counted = [event for event in events if isinstance(event, NoisyCounts)]
    assert {event.purpose for event in counted} <= {
        "total",
        "marginals",
        "rows that a map explains",
    }


def test_a_loud_table_is_not_measured_by_residuals():
    released, _, events = released_of(0.3, 1e-9, steps=Steps())
    assert not released.by_pairs
    assert not any(getattr(event, "purpose", "") == "pairs" for event in events)
    quiet, _, _ = released_of(30.0, 1e-9, steps=Steps())
    assert quiet.by_pairs
    turned_off, _, _ = released_of(30.0, 1e-9, steps=Steps(residuals=False))
    assert not turned_off.by_pairs


def test_noise_is_split_over_pairs_by_their_free_cells():
    weights = pair_weights([(0, 1), (0, 2)], (2, 2, 9))
    assert weights == pytest.approx(np.array([1.0, 4.0]) / 5)
    assert residual_pairs((2, 1, 3)) == [(0, 2)]


def test_a_noisy_residual_is_the_true_one_off_by_its_noise():
    released, _, _ = by_residuals()
    table = MergedRows.of(table_of_codes(), released.levels)
    standard = []
    for each in released.residuals[: len(PAIRS)]:
        levels = [released.sizes[f] for f in each.features]
        exact = NoisyTable(each.features, table.count(each.features), 1.0)
        true = projected(replace(exact, counts=residual_of(exact.counts, levels)), levels)
        away = projected(each, levels) - true
        free = (levels[0] - 1) * (levels[1] - 1)
        noise = cell_noise(each.deviation, levels) / np.sqrt(free / len(away))
        standard.append(((away / noise) ** 2).sum())
    frees = [np.prod([released.sizes[f] - 1 for f in t.features]) for t in released.residuals]
    total = sum(frees[: len(PAIRS)])
    tail = stats.chi2.cdf(sum(standard), total)
    assert min(tail, 1 - tail) > ALPHA


# Estimates


def test_measurements_of_a_pair_are_averaged_by_their_precision():
    levels = (2, 3)
    counts = np.array([4, -2, -2, -4, 2, 2])
    quiet, loud = NoisyTable((0, 1), counts, 3.0), NoisyTable((0, 1), -counts, 6.0)
    both = PairEstimates.of([quiet, loud], levels)
    told = both.sums[0, 1] / both.precisions[0, 1]
    assert told == pytest.approx(projected(quiet, levels) * (4 - 1) / 5)
    assert both.precisions[0, 1] == pytest.approx(cell_noise(3.0, levels) ** -2 * 1.25)


def test_exact_residuals_give_back_the_table_with_and_without_shrinkage():
    released, _, _ = by_residuals()
    table = MergedRows.of(table_of_codes(), released.levels)
    exact = []
    for each in released.residuals[: len(PAIRS)]:
        levels = [released.sizes[f] for f in each.features]
        exact.append(
            NoisyTable(each.features, residual_of(table.count(each.features), levels), 1e-3)
        )
    ones = tuple(
        replace(one, counts=np.bincount(column, minlength=count).astype(np.int64), deviation=1e-3)
        for one, column, count in zip(released.one_ways, table_of_codes().T, COUNTS, strict=True)
    )
    known = replace(released, one_ways=ones, total=(3000, 1e-3), residuals=tuple(exact))
    margins = plain_margins(known)
    found = PairEstimates.of(exact, released.sizes)
    for pair in PAIRS:
        true = table.count(pair).reshape([released.sizes[f] for f in pair])
        assert found.counts(pair, margins, shrink=False) == pytest.approx(true, abs=1.0)
    # A triple whose residual is known exactly is told in full by plain targets.
    triple = (0, 1, 3)
    levels = [released.sizes[f] for f in triple]
    counts = table.count(triple)
    more = NoisyTable(triple, residual_of(counts, levels), 1e-3)
    targets = dict(plain_targets(replace(known, residuals=(*exact, more)), margins))
    assert targets[triple] == pytest.approx(counts, abs=2.0)


def test_a_quiet_table_has_blocks_beside_its_pairs():
    released, _, _ = released_of(30.0, 1e-9, steps=BESIDE)
    assert released.blocks
    assert released.residuals
    found = loaded_released(stored_released(released), SCHEMA)
    assert [t.features for t in found.blocks] == [t.features for t in released.blocks]
    for steps in (BESIDE, BESIDE.plain()):
        (rows,) = draw_rows(found, 2000, RandomStream(2), steps=steps)
        both = np.bincount(rows[:, 0] * 3 + rows[:, 1], minlength=9) / 2000
        codes = table_of_codes().astype(int)
        true = np.bincount(codes[:, 0] * 3 + codes[:, 1], minlength=9) / 3000
        assert 0.5 * np.abs(both - true).sum() < 0.04


INDEPENDENT = Schema(tuple(Feature(name, categories=("x", "y")) for name in "ab"), reviewed=True)


def released_of_independent(seed):
    """Release two binary features of which neither tells anything of the other."""
    codes = np.repeat(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8), 25_000, axis=0)
    stream = RandomStream(seed)
    budget_filter = PrivacyFilter(whole_of(1.0, 1e-9), stream)
    return release_blocks(
        codes, Domain((2, 2), (False, False)), budget_filter, Work(stream), rows=100
    )


def test_quiet_tables_of_independent_features_have_no_block_and_can_be_read(monkeypatch):
    """The seeds are fixed, and some of them choose no heads at all."""
    without = []
    for seed in range(6):
        released, _ = released_of_independent(seed)
        assert released.by_pairs
        assert sorted(released.order) == [0, 1]
        found = loaded_released(stored_released(released), INDEPENDENT)
        (rows,) = draw_rows(found, 1000, RandomStream(3))
        assert np.bincount(rows[:, 0] * 2 + rows[:, 1]) == pytest.approx(np.full(4, 250), abs=25)
        without += [] if released.blocks else [seed]
    assert without
    # A twin that draws the pool twice is caught.
    monkeypatch.setattr(Pool, "begin_again", lambda _: None)
    broken, _ = released_of_independent(without[0])
    with pytest.raises(ModelError, match="do not fit"):
        loaded_released(stored_released(broken), INDEPENDENT)


def test_a_pool_that_begins_again_has_all_its_rows():
    rules = (Rule(((0, frozenset({1})), (1, frozenset({0, 1})))),)
    pool = Pool((2, 2), 50, RandomStream(1), rules=rules)
    for _ in range(2):
        for feature in range(2):
            pool.draw(feature, (), np.array([[0.5, 0.5]]))
        assert np.count_nonzero(pool.alive) == 25
        pool.begin_again()
        assert pool.placed == []
        assert pool.alive.all()


def test_all_pairs_are_not_measured_where_a_law_of_them_would_not_fit_in_memory():
    price = Price(whole_of(1000.0, 1e-9))
    for counts, measured in (((1000, 900, 2), True), ((2000, 2000, 2), False)):
        assert pairs_are_quiet(price, 10**9, counts, (), Steps()) is measured
        shares = [np.full(count, 1 / count) for count in counts]
        merging = Merging(True, (False,) * 3, (True,) * 3, (), ())
        plan = plan_pairs(price, 0.5, shares, 1e9, merging, Steps())
        assert bool(plan.pairs) is measured


def test_a_network_places_dependent_features_next_to_each_other():
    strong, weak = np.array([[40.0, 10.0], [10.0, 40.0]]), np.full((2, 2), 25.0)
    tables = {(0, 1): weak, (0, 2): strong, (1, 2): weak}
    network = PairNetwork.of(tables, (2, 2, 2), Steps())
    assert network.order([0, 1, 2])[:2] == [0, 2]
    assert network.heads_of(2, [0, 1]) == (0,)
    assert network.heads_of(1, [0, 2]) == ()


# File, rows, replicates


def test_the_file_gives_back_residuals_and_refuses_damage():
    released, _, _ = by_residuals()
    found = loaded_released(stored_released(released), SCHEMA)
    for ours, theirs in zip(released.residuals, found.residuals, strict=True):
        assert ours.features == theirs.features
        assert ours.counts.tolist() == theirs.counts.tolist()
        assert ours.deviation == theirs.deviation
    wrong = [("kinds", -1, 2), ("kinds", -1, 5), ("kinds", -1, -2), ("features", -1, 0)]
    for name, place, value in wrong:
        held = stored_released(released).under("released: ")
        held[name] = held[name].copy()
        held[name][place] = value
        damaged = StoredModel(arrays={f"released: {n}": a for n, a in held.items()})
        with pytest.raises(ModelError, match="do not fit"):
            loaded_released(damaged, SCHEMA)


def test_rows_of_the_file_have_the_pairs_of_the_table():
    released, _, _ = by_residuals(30.0)
    (rows,) = draw_rows(released, 3000, RandomStream(2), steps=STEPS)
    codes = table_of_codes()
    for first, second in PAIRS:
        keys = [t[:, first].astype(int) * COUNTS[second] + t[:, second] for t in (codes, rows)]
        cells = COUNTS[first] * COUNTS[second]
        counts = [np.bincount(each, minlength=cells) / 3000 for each in keys]
        assert 0.5 * np.abs(counts[0] - counts[1]).sum() < 0.06


@pytest.mark.parametrize("delta", [None, 1e-9], ids=["pure", "approximate"])
def test_residuals_have_fresh_noise_of_their_own_law(monkeypatch, delta):
    break_noise(monkeypatch, "rows not resampled")
    released, _, events = by_residuals(8.0, delta)
    stream = RandomStream(3)
    fit = rebuild(released, Pool(released.sizes, 4000, stream), Steps())
    fresh = perturbed(released, Laws.of(released, events), fit, stream, count=50)
    for place, own in enumerate(released.residuals):
        added = np.concatenate([each.residuals[place].counts - own.counts for each in fresh])
        law = stats.norm(0, own.deviation)
        if delta is None:
            law = stats.laplace(0, own.deviation / np.sqrt(2))
        edges = np.floor(law.ppf(np.linspace(0, 1, 9)[1:-1])) + 0.5
        edges = np.concatenate(([-np.inf], edges, [np.inf]))
        chance = np.diff(law.cdf(edges))
        seen = np.histogram(added, edges)[0]
        assert fit_p_value(seen, chance) >= ALPHA / len(released.residuals)


def test_a_resample_moves_residuals_and_no_margin_of_theirs(monkeypatch):
    break_noise(monkeypatch, "noise forgotten")
    released, _, events = by_residuals()
    stream = RandomStream(4)
    fit = rebuild(released, Pool(released.sizes, 4000, stream), Steps())
    (fresh,) = perturbed(released, Laws.of(released, events), fit, stream, count=1)
    for own, other in zip(released.residuals, fresh.residuals, strict=True):
        levels = [released.sizes[f] for f in own.features]
        moved = (other.counts - own.counts).reshape(levels)
        assert np.abs(moved).max() > 1
        for axis in range(len(levels)):
            assert moved.sum(axis=axis) == pytest.approx(0, abs=1e-6 * np.abs(moved).max())


def test_pairs_with_a_residual_count_as_held():
    released, _, _ = by_residuals()
    assert missing_pairs(released, range(len(COUNTS))) == []
    assert together(released, (0, 3))
    one = cell_deviation(released, {0: 1})
    both = cell_deviation(released, {0: 1, 3: 0})
    table = next(t for t in released.residuals if t.features == (0, 3))
    levels = [released.sizes[f] for f in (0, 3)]
    assert both >= cell_noise(table.deviation, levels) * 0.5
    assert both**2 >= one**2 / released.sizes[3] ** 2 * (1 - 1 / released.sizes[0])


def test_the_description_names_residuals():
    released, _, _ = by_residuals()
    text = "\n".join(describe_released(released, [f"x{i}" for i in range(len(COUNTS))]))
    assert f"residuals of {len(PAIRS)} pairs" in text
    assert ", given" not in text
    assert "features are drawn by the pair tables" in text
    quiet, _, _ = released_of(30.0, 1e-9, steps=BESIDE)
    text = "\n".join(describe_released(quiet, SCHEMA.names))
    assert f"residuals of {len(PAIRS)} pairs" in text
    assert ", given" in text
    assert "features are drawn by the pair tables" not in text


# Counts of a table that is asked for


def counts_asked(released, features):
    stream = RandomStream("asked")
    return asked_counts(released, features, SCHEMA, stream, pure=False)


def test_counts_that_residuals_tell_are_the_sum_of_all_parts():
    """Without noise on any part they are the counts of the table, in any order of features."""
    released, _, _ = by_residuals()
    codes = table_of_codes()
    levels = tuple(np.arange(count) for count in COUNTS)
    ones = tuple(
        NoisyTable((f,), np.bincount(codes[:, f], minlength=COUNTS[f]), 2.0)
        for f in range(len(COUNTS))
    )
    merged = MergedRows(codes.T.astype(np.uint16), COUNTS)

    def residual(features):
        shape = [COUNTS[f] for f in features]
        return NoisyTable(features, residual_of(merged.count(features), shape), 3.0)

    exact = replace(
        released,
        total=(len(codes), 1.0),
        one_ways=ones,
        levels=levels,
        residuals=(*map(residual, PAIRS), residual((0, 1, 3))),
    )
    for features in ((0, 1), (1, 0), (2, 4), (3, 1, 0)):
        found = counts_asked(exact, features)
        assert found.raw == pytest.approx(merged.count(features).astype(float), abs=1e-6)
        cell = dict.fromkeys(features, 0)
        assert found.deviation == pytest.approx(cell_deviation(exact, cell))
    with pytest.raises(ParameterError, match="no published table holds x0 x x1 x x2"):
        counts_asked(exact, (0, 1, 2))
    # Public shares were not measured, so nothing tells how far off such a sum is.
    stated = replace(exact, public=(True, *exact.public[1:]))
    assert np.isinf(cell_deviation(stated, {0: 0, 1: 0}))
    with pytest.raises(ParameterError, match="no published table holds x0 x x1;"):
        counts_asked(stated, (0, 1))
    assert counts_asked(stated, (1, 2)).raw == pytest.approx(counts_asked(exact, (1, 2)).raw)
    # A table of counts beside them is averaged with them by its precision.
    table = NoisyTable((0, 1), merged.count((0, 1)) + 6, 5.0)
    both = counts_asked(replace(exact, extra=(table,), by_pairs=False), (0, 1))
    alone = counts_asked(exact, (0, 1))
    assert both.deviation < min(alone.deviation, 5.0)
    part = (1 / 5.0**2) / (1 / 5.0**2 + alone.deviation**-2)
    assert both.raw - merged.count((0, 1)) == pytest.approx(np.full(9, 6 * part))


def test_residuals_of_the_second_round_stand_beside_blocks():
    released, _, events = released_of(3.0, 1e-9)
    assert released.blocks
    assert released.residuals
    assert not released.by_pairs
    apart = [event for event in events if isinstance(event, NoisyResiduals)]
    assert {event.purpose for event in apart} == {"residual"}
    lines = list(describe_released(released, SCHEMA.names))
    assert "residuals of the second round, in the order of measuring:" in lines
    assert not any("features are drawn by the pair tables" in line for line in lines)
    assert all(together(released, table.features) for table in released.residuals)
    stored = stored_released(released)
    again = loaded_released(stored, SCHEMA)
    assert [t.features for t in again.residuals] == [t.features for t in released.residuals]
    assert not again.by_pairs
    rows = np.concatenate(list(draw_rows(again, 500, RandomStream(1))))
    assert rows.shape == (500, len(COUNTS))
    # The second round measures residuals of pairs only, and those of all pairs stand alone.
    kinds = stored.arrays["released: kinds"]
    assert set(kinds[kinds > 3].tolist()) == {5}
    arrays = {**stored.arrays, "released: kinds": np.where(kinds == 1, 4, kinds)}
    with pytest.raises(ModelError):
        loaded_released(StoredModel(arrays=arrays), SCHEMA)
