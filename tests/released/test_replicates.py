"""Replicate weights and tables with noise of their own, as users get them (R28)."""

from dataclasses import replace

import numpy as np
import pytest
from four_categories import break_noise
from once_tables import COUNTS, ORDERED, released_of, table_of_codes, whole_of

from pegsynth.errors import DataError, ParameterError
from pegsynth.random import RandomStream
from pegsynth.released import Diverse, PrivacyFilter, Steps, draw_rows, release_blocks
from pegsynth.released import draw as drawing
from pegsynth.released import replicates as making
from pegsynth.released.draw import fine_shares, plain_margins, released_total
from pegsynth.released.plain import plain_targets
from pegsynth.released.replicates import Source, own_noise_tables, replicate_weights
from pegsynth.released.row_pool import Pool
from pegsynth.schema import Rule

RULES = (Rule.of({0: [0], 3: [1]}), Rule.of({1: [2], 4: [0, 1]}))
APART = (True, True, False, True, True)


def source_of(epsilon=3.0, delta=1e-9, *, rules=(), whole=(), **more):
    released, _, events = released_of(epsilon, delta, rules=rules, whole=whole)
    return Source(released, events, rules=rules, **more)


def weighted(source, rows=3000, *, seed=2, count=4, threads=1):
    lots = list(replicate_weights(source, rows, RandomStream(seed), count=count, threads=threads))
    codes = np.concatenate([lot.codes for lot in lots])
    return codes, np.concatenate([lot.weights for lot in lots], axis=1)


# What comes out


@pytest.mark.parametrize("delta", [None, 1e-9], ids=["pure", "approximate"])
@pytest.mark.parametrize("rows", [1, 37, 3000])
def test_rows_and_weights(rows, delta):
    codes, weights = weighted(source_of(delta=delta), rows)
    assert codes.shape == (rows, len(COUNTS))
    assert weights.shape == (5, rows)
    assert (codes < np.array(COUNTS)).all()
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()


def test_weights_add_up_to_the_estimated_number_of_rows():
    source = source_of()
    _, weights = weighted(source)
    assert weights[0].sum() == pytest.approx(released_total(source.released), rel=0.01)
    assert len(set(weights.sum(axis=1).round(6))) == 5


def test_the_first_weights_meet_the_published_tables():
    """They are those of a fit without shrinkage."""
    source = source_of()
    codes, weights = weighted(source, 20_000)
    steps = Steps().plain()
    margins = plain_margins(source.released, steps)
    for feature, levels in enumerate(source.released.levels):
        found = np.bincount(levels[codes[:, feature]], weights[0], margins.sizes[feature])
        np.testing.assert_allclose(found, margins.counts(feature), atol=0.01 * margins.total)


def test_zero_perturbation_returns_the_first_weights(monkeypatch):
    break_noise(monkeypatch, "nothing perturbed")
    source = source_of(1.0)
    merged = [levels for levels in source.released.levels if len(set(levels)) < len(levels)]
    assert merged
    _, weights = weighted(source)
    for line in weights[1:]:
        np.testing.assert_allclose(line, weights[0], rtol=1e-9)


def test_replicates_differ_from_each_other():
    _, weights = weighted(source_of())
    away = np.abs(weights[:, None] - weights[None, :]).sum(axis=2) / weights.sum(axis=1).mean()
    assert (away[~np.eye(5, dtype=bool)] > 0.01).all()


def test_a_stream_decides_and_the_threads_do_not():
    first, second = (weighted(source_of(), threads=threads) for threads in (1, 2))
    for one, two in zip(first, second, strict=True):
        assert np.array_equal(one, two)
    assert not np.array_equal(first[1], weighted(source_of(), seed=3)[1])


def test_rows_come_in_lots_that_share_their_replicates(monkeypatch):
    monkeypatch.setattr(drawing, "LOT", 1500)
    source = source_of()
    lots = list(replicate_weights(source, 4000, RandomStream(1), count=3))
    assert [len(lot.codes) for lot in lots] == [1500, 1500, 1000]
    sums = np.array([lot.weights.sum(axis=1) / len(lot.codes) for lot in lots])
    np.testing.assert_allclose(sums, np.broadcast_to(sums[0], sums.shape), rtol=0.01)


# The original is not looked at


class Replayed(PrivacyFilter):
    """A privacy filter that gives the same paid numbers whatever the table holds."""

    def __init__(self, *arguments, script=None, **more):
        super().__init__(*arguments, **more)
        self.script, self.replay = [] if script is None else list(script), script is not None

    def _noisy(self, counts, event):
        if self.replay:
            return self.script.pop(0)
        self.script.append(super()._noisy(counts, event))
        return self.script[-1]

    def _chosen(self, scores, epsilon):
        if self.replay:
            return self.script.pop(0)
        self.script.append(super()._chosen(scores, epsilon))
        return self.script[-1]


def test_the_same_published_numbers_and_two_originals_give_identical_replicates():
    found, script = [], None
    for seed in (1, 2):
        stream = RandomStream(5)
        budget_filter = Replayed(whole_of(3.0, 1e-9), stream, script=script)
        codes = table_of_codes(seed=seed)[: 3000 - seed]
        released, _ = release_blocks(
            codes, COUNTS, budget_filter, stream, ordered=ORDERED, rows=1000
        )
        script = list(budget_filter.script) if script is None else script
        found.append(weighted(Source(released, budget_filter.events)))
    (first, weights), (second, others) = found
    assert np.array_equal(first, second)
    assert np.array_equal(weights, others)


# Rules, given values, public shares, l


def test_no_row_breaks_a_rule():
    source = source_of(rules=RULES, whole=APART)
    codes, weights = weighted(source)
    assert not any(rule.broken_by(codes).any() for rule in RULES)
    assert (weights.sum(axis=1) > 0).all()
    for lots in own_noise_tables(source, 500, RandomStream(1), count=2):
        (codes,) = lots
        assert not any(rule.broken_by(codes).any() for rule in RULES)


@pytest.mark.parametrize("given", [{0: 1}, {0: 1, 3: 0}, {4: 5}])
def test_given_values(given):
    """Rows have them, and their weights are what the model holds of them."""
    source = source_of(1.0, given=given)
    codes, weights = weighted(source, 2000)
    assert len(codes) == 2000
    for feature, code in given.items():
        assert set(codes[:, feature]) == {code}
    whole, all_weights = weighted(replace(source, given={}), 60_000, count=2)
    kept = np.all([whole[:, f] == code for f, code in given.items()], axis=0)
    expected = all_weights[0, kept].sum() / all_weights[0].sum()
    assert weights[0].sum() / all_weights[0].sum() == pytest.approx(expected, rel=0.25)


def test_values_that_no_row_has_are_refused(monkeypatch):
    monkeypatch.setattr(drawing, "LOT", 1 << 14)
    monkeypatch.setattr(making, "MOST_POOLS_FOR_GIVEN", 3)
    source = source_of(rules=RULES, whole=APART, given={0: 0, 3: 1})
    with pytest.raises(DataError, match="--where"):
        weighted(source, 10, count=2)


def public_release(epsilon=0.3):
    shares = np.array([0.9, 0.09, 0.01])
    stream = RandomStream(6)
    budget_filter = PrivacyFilter(whole_of(epsilon, 1e-9), stream)
    public = (shares, None, None, None, None)
    released, _ = release_blocks(
        table_of_codes(), COUNTS, budget_filter, stream, ordered=ORDERED, public=public, rows=1000
    )
    return shares, Source(released, budget_filter.events)


def test_public_shares_stay_what_they_are_in_every_replicate():
    """Also where the number of rows is known badly."""
    shares, source = public_release()
    for released in source.replicates(6, RandomStream(1)):
        np.testing.assert_array_equal(
            released.one_ways[0].counts, source.released.one_ways[0].counts
        )
        np.testing.assert_allclose(fine_shares(released, Steps())[0], shares, rtol=0.02)
        levels = plain_margins(released, Steps().plain()).shares[0]
        merged = np.bincount(released.levels[0], shares)
        np.testing.assert_allclose(levels, merged, rtol=0.05)


def test_weights_are_refused_under_an_l_and_tables_are_not():
    source = source_of(diverse=Diverse({4: 2.0}), steps=Steps(second_round=False, exchange=0))
    with pytest.raises(ParameterError, match="--l"):
        weighted(source)
    tables = [np.concatenate(list(lots)) for lots in _tables(source, 400)]
    assert [codes.shape for codes in tables] == [(400, 5)] * 2


def _tables(source, rows, count=2, seed=1):
    return own_noise_tables(source, rows, RandomStream(seed), count=count)


# Tables with noise of their own


def test_tables_differ_by_more_than_drawing():
    source = source_of(1.0)

    def spread(tables):
        shares = [np.bincount(codes[:, 0], minlength=3) / len(codes) for codes in tables]
        return np.var(shares, axis=0, ddof=1).sum()

    own = spread([np.concatenate(list(lots)) for lots in _tables(source, 2000, count=12)])
    streams = [RandomStream(seed) for seed in range(12)]
    shared = [np.concatenate(list(draw_rows(source.released, 2000, each))) for each in streams]
    assert own > 20 * spread(shared)


# What is refused


@pytest.mark.parametrize("count", [0, 1, 1001])
def test_numbers_of_replicates(count):
    with pytest.raises(ParameterError, match="replicates must be 2 to 1000"):
        source_of().replicates(count, RandomStream(1))


def test_a_ledger_of_another_release_is_refused():
    released, _, events = released_of(3.0, 1e-9)
    _, _, others = released_of(1.0, 1e-9)
    for wrong in (others, events[:-2], ()):
        with pytest.raises(ParameterError, match="does not record the noise"):
            Source(released, wrong).replicates(2, RandomStream(1))


# Plain targets


def test_plain_targets_look_at_counts_only_and_agree_with_their_margins():
    source = source_of()
    released = source.released
    margins = plain_margins(released, Steps().plain())
    targets = dict(plain_targets(released, margins))
    for feature in range(len(COUNTS)):
        np.testing.assert_allclose(targets[(feature,)].sum(), margins.total)
    for features, counts in targets.items():
        assert (counts >= 0).all()
        assert counts.sum() == pytest.approx(margins.total, rel=1e-6)
        if len(features) == 2:
            table = counts.reshape([margins.sizes[feature] for feature in features])
            near = 0.02 * margins.total
            np.testing.assert_allclose(table.sum(axis=1), margins.counts(features[0]), atol=near)
            np.testing.assert_allclose(table.sum(axis=0), margins.counts(features[1]), atol=near)


def test_a_part_of_a_pool_is_a_pool():
    pool = Pool((3, 2), 5, RandomStream(1))
    pool.columns[0] = [0, 1, 2, 0, 1]
    part = pool.part(np.array([4, 4, 2]))
    assert part.columns[0].tolist() == [1, 1, 2]
    assert part.rows == len(part.weights) == len(part.alive) == 3
    assert part.counts((0,)).tolist() == [0, 2, 1]
    assert pool.rows == 5
