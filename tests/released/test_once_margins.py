"""One-way counts from everything that was measured: inverse variances by hand."""

import numpy as np
import pytest

from pegsynth.codec.levels import alone
from pegsynth.methods.released._estimates import (
    SHORTEST_SMOOTHED,
    Margins,
    one_way_shares,
    with_floor,
)
from pegsynth.methods.released._values import NoisyTable, common_total


def table(features, counts, deviation):
    return NoisyTable(features, np.array(counts), deviation)


def margins_of(*counts, deviation=2.0, total=30.0, levels=None):
    one_ways = tuple(table((f,), line, deviation) for f, line in enumerate(counts))
    shares = tuple(np.array(line) / sum(line) for line in counts)
    levels = levels or tuple(alone(len(line)) for line in counts)
    return Margins.of(one_ways, levels, shares, total)


def test_the_number_of_rows_by_inverse_variances():
    """100 +- 5, and a sum of 4 cells of 90 +- 2 * sqrt(4): (100/25 + 90/16)/(1/25 + 1/16)."""
    one_ways = (table((0,), [20, 30, 30, 10], 2.0),)
    expected = (100 / 25 + 90 / 16) / (1 / 25 + 1 / 16)
    assert common_total((100, 5.0), one_ways) == pytest.approx(expected)
    assert common_total((-40, 5.0), ()) == 1.0


def test_levels_add_up_counts_and_variances():
    """Categories 0 and 2 in one level: noise of variance 4 + 4, counts 12 + 5."""
    found = margins_of([12, 10, 5], levels=(np.array([0, 1, 0]),))
    assert found.sizes == (2,)
    assert found.sums[0] == pytest.approx([17 / 8, 10 / 4])
    assert found.precisions[0] == pytest.approx([1 / 8, 1 / 4])
    assert found.shares[0] == pytest.approx([17 / 27, 10 / 27])
    assert found.counts(0) == pytest.approx([30 * 17 / 27, 30 * 10 / 27])


def test_folding_a_table_by_hand():
    """One-way counts 10 and 20 with variance 4; a 2 x 2 table of variance 1 says 14 and 16.

    Its sums over two cells have variance 2, so the mean is (10/4 + 14/2)/(1/4 + 1/2).
    """
    found = margins_of([10, 20], [15, 15])
    found.fold(table((0, 1), [8, 6, 9, 7], 1.0), (0,))
    raw = np.array([(10 / 4 + 14 / 2) / 0.75, (20 / 4 + 16 / 2) / 0.75])
    assert found.sums[0] / found.precisions[0] == pytest.approx(raw)
    # Both sum to 30, so the projection changes nothing.
    assert found.counts(0) == pytest.approx(raw)
    assert found.shares[1] == pytest.approx([0.5, 0.5])
    found.fold(table((0, 1), [8, 6, 9, 7], 1.0), (0, 1))
    assert found.precisions[0] == pytest.approx([1.25, 1.25])
    assert found.precisions[1] == pytest.approx([0.75, 0.75])


def test_folding_a_triple_sums_over_all_other_axes():
    found = margins_of([1, 1], [1, 1, 1], [1, 1])
    cells = np.arange(12)
    found.fold(NoisyTable((2, 0, 1), cells, 2.0), (1,))
    by_hand = [sum(cells[cell] for cell in range(12) if cell % 3 == level) for level in range(3)]
    precision = 1 / (4.0 * 4)
    assert found.sums[1] == pytest.approx(1 / 4 + np.array(by_hand) * precision)
    assert found.precisions[1] == pytest.approx(np.full(3, 1 / 4 + precision))


def test_folding_brings_the_estimate_closer():
    """In most of 60 seeded tables; one that is all noise moves nothing."""
    words = np.random.default_rng(6)
    true = np.array([100, 300, 600])
    better = 0
    for _ in range(60):
        noisy = true + words.normal(0, 40, 3)
        cells = np.repeat(true / 4, 4) + words.normal(0, 10, 12)
        found = margins_of(np.round(noisy), [500, 500], deviation=40.0, total=1000.0)
        before = np.abs(found.counts(0) - true).sum()
        wide = Margins.of(
            (table((0,), np.round(noisy), 40.0), table((1,), [250] * 4, 40.0)),
            (alone(3), alone(4)),
            (np.full(3, 1 / 3), np.full(4, 1 / 4)),
            1000.0,
        )
        wide.fold(NoisyTable((0, 1), np.round(cells), 10.0), (0,))
        better += np.abs(wide.counts(0) - true).sum() < before
        sums = wide.sums[0] / wide.precisions[0]
        wide.fold(NoisyTable((0, 1), np.round(cells), 1e9), (0,))
        assert wide.sums[0] / wide.precisions[0] == pytest.approx(sums)
    assert better > 35


def test_no_share_is_zero():
    shares = with_floor(np.array([10.0, 0.0, 0.0, 30.0]))
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    assert shares[1] == pytest.approx(1e-4 / 4, rel=1e-3)


def test_only_long_ordered_features_are_smoothed(monkeypatch):
    called = []
    monkeypatch.setattr(
        "pegsynth.methods.released._estimates.smoothed",
        lambda noisy, _: called.append(len(noisy)) or noisy,
    )
    long, short = SHORTEST_SMOOTHED, SHORTEST_SMOOTHED - 1
    for size, smooth in ((long, True), (short, True), (long, False)):
        shares = one_way_shares(table((0,), [5] * size, 1.0), 5.0 * size, smooth=smooth)
        assert shares == pytest.approx(np.full(size, 1 / size))
    assert called == [long]
