"""Replicates have the law that R28 states, and the rules on them hold what they say.

The right rules and their broken twins go through one check. No single scale of the noise
finds all twins out: below, sampling rules; above, noise does.
"""

import numpy as np
import pytest
from four_categories import (
    ROWS,
    break_noise,
    closed_form,
    coverage,
    events_of,
    published,
    shares_by_weights,
)
from once_tables import released_of
from scipy import stats

from pegsynth.inference.combining_rules import PART
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._draw import rebuild
from pegsynth.methods.released._replicates import Laws, perturbed, split_counts
from pegsynth.methods.released._row_pool import Pool
from pegsynth.random import RandomStream
from significance import ALPHA, bonferroni, fit_p_value

RUNS = 400
QUIET, LOUD = 3.0, 20.0
LOWEST, HIGHEST = 0.88, 0.9975
TWINS = [
    ("noise forgotten", LOUD, "replicate-weights"),
    ("one noise for all", LOUD, "own-noise"),
    ("rows not resampled", QUIET, "replicate-weights"),
    ("rows not resampled", QUIET, "own-noise"),
]
WRONG_RULES = [("plug-in", LOUD), ("v subtracted", QUIET), ("f forgotten", QUIET)]


def passes(share):
    return LOWEST <= share <= HIGHEST


def test_the_false_alarm_rate_is_as_stated():
    for true in (0.945, 0.96):
        hits = stats.binom(RUNS, true)
        outside = hits.cdf(LOWEST * RUNS - 1) + hits.sf(HIGHEST * RUNS)
        assert outside < ALPHA
    # The best of the twins covers 70 %, and gets half of the runs.
    assert stats.binom(RUNS // 2, 0.7).sf(LOWEST * RUNS // 2 - 1) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [QUIET, LOUD])
def test_the_rules_for_replicates_hold(deviation):
    """R28, both rules."""
    for share in coverage(deviation, ["replicate-weights", "own-noise"], RUNS, seed=7):
        assert passes(share)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "deviation", "rule"), TWINS)
def test_broken_perturbations_are_found_out(monkeypatch, way, deviation, rule):
    break_noise(monkeypatch, way)
    (share,) = coverage(deviation, [rule], RUNS // 2, seed=8)
    assert not passes(share)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "deviation"), WRONG_RULES)
def test_wrong_rules_are_found_out(rule, deviation):
    (share,) = coverage(deviation, [rule], RUNS // 2, seed=9)
    assert not passes(share)


# The law of the shares, in closed form

COUNT = 1000
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def variances_fit(deviation):
    """Compare the variance of every share with the closed form, far from zero."""
    counts = (ROWS * SHARES).astype(np.int64)
    stream = RandomStream(f"law {deviation}")
    q = shares_by_weights(published(counts, deviation), deviation, stream, count=COUNT)
    moved = (q[1:] - q[0]) / PART
    # Every contrast of the four is one normal variable.
    contrasts = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [1, -1, 0, 0], [0, 1, 1, 0], [1, 0, -1, 0]])
    for contrast in contrasts:
        expected = contrast @ closed_form(SHARES, deviation) @ contrast
        ratio = ((moved @ contrast) ** 2).sum() / expected
        tail = min(stats.chi2.cdf(ratio, COUNT), stats.chi2.sf(ratio, COUNT))
        if 2 * tail < bonferroni(3 * len(contrasts)):
            return False
    return True


@pytest.mark.parametrize("deviation", [QUIET, 10.0, 30.0])
def test_shares_vary_as_in_closed_form(deviation):
    assert variances_fit(deviation)


@pytest.mark.parametrize(
    ("way", "deviation"),
    [("noise forgotten", 10.0), ("one noise for all", 10.0), ("rows not resampled", QUIET)],
)
def test_twins_vary_otherwise(monkeypatch, way, deviation):
    break_noise(monkeypatch, way)
    assert not variances_fit(deviation)


def test_a_design_effect_multiplies_the_sampling_variance():
    counts = (ROWS * SHARES).astype(np.int64)
    released, stream = published(counts, 0.01), RandomStream(1)
    fit = rebuild(released, Pool(released.sizes, 8000, stream), Steps())
    laws = Laws.of(released, events_of(0.01))
    for effect in (1.0, 4.0):
        fresh = perturbed(released, laws, fit, stream, count=COUNT, design_effect=effect)
        moved = np.array([each.one_ways[0].counts - counts for each in fresh])
        expected = effect * ROWS * SHARES * (1 - SHARES)
        tails = stats.chi2.cdf((moved**2).sum(axis=0) / expected, COUNT)
        assert (np.minimum(tails, 1 - tails) > bonferroni(16)).all()


# Noise and sampling of every published table


@pytest.mark.parametrize("delta", [None, 1e-9], ids=["pure", "approximate"])
def test_every_table_has_fresh_noise_of_its_own_law(monkeypatch, delta):
    """Without sampling what is added is the noise that the ledger records."""
    break_noise(monkeypatch, "rows not resampled")
    released, _, events = released_of(1.0, delta)
    stream = RandomStream(3)
    fit = rebuild(released, Pool(released.sizes, 4000, stream), Steps())
    laws = Laws.of(released, events)
    fresh = perturbed(released, laws, fit, stream, count=50)
    tables = [(*each.one_ways, *each.blocks, *each.extra) for each in (released, *fresh)]
    number = sum(1 for _ in tables[0])
    for own, *others in zip(*tables, strict=True):
        added = np.concatenate([other.counts - own.counts for other in others])
        own_laws = stats.norm(0, own.deviation)
        if delta is None:
            own_laws = stats.laplace(0, own.deviation / np.sqrt(2))
        edges = own_laws.ppf(np.linspace(0, 1, 9)[1:-1])
        edges = np.concatenate(([-np.inf], np.floor(edges) + 0.5, [np.inf]))
        chance = np.diff(own_laws.cdf(edges))
        assert fit_p_value(np.histogram(added, edges)[0], chance) >= ALPHA / number


def test_resampled_counts_agree_between_tables():
    """Without noise every table of a replicate counts the same rows."""
    released, _, events = released_of(10.0, 1e-9)
    stream = RandomStream(4)
    fit = rebuild(released, Pool(released.sizes, 4000, stream), Steps())
    with pytest.MonkeyPatch.context() as patch:
        break_noise(patch, "noise forgotten")
        fresh = perturbed(released, Laws.of(released, events), fit, stream, count=3)
    for each in fresh:
        assert each.total == released.total
        lines = {}
        pairs = zip(
            (*released.one_ways, *released.blocks, *released.extra),
            (*each.one_ways, *each.blocks, *each.extra),
            strict=True,
        )
        for own, other in pairs:
            moved = (other.counts - own.counts).astype(float)
            assert abs(moved.sum()) < 1e-6
            if len(own.features) == 1:
                moved = np.bincount(released.levels[own.features[0]], moved)
            shape = [released.sizes[feature] for feature in own.features]
            for axis, feature in enumerate(own.features):
                gone = tuple(place for place in range(len(shape)) if place != axis)
                margin = moved.reshape(shape).sum(axis=gone)
                np.testing.assert_allclose(margin, lines.setdefault(feature, margin), atol=1e-6)


# Rows of a merged level among its categories

LEVELS = np.array([0, 1, 0, 2, 0, 1, 0])
WITHIN = np.array([0.1, 0.2, 0.2, 0.1, 0.05, 0.3, 0.05])


def test_rows_of_a_level_are_split_by_the_shares_of_its_categories():
    words = RandomStream(5).substream()
    found = split_counts(np.array([80_000, 40_000, 7]), LEVELS, WITHIN, words)
    assert np.bincount(LEVELS, found).tolist() == [80_000, 40_000, 7]
    for level in (0, 1):
        members = np.equal(LEVELS, level)
        shares = WITHIN[members] / WITHIN[members].sum()
        assert fit_p_value(found[members], shares) >= ALPHA / 2


def test_splits_vary_as_a_multinomial():
    words = RandomStream(6).substream()
    found = [split_counts(np.array([50, 20, 0]), LEVELS, WITHIN, words)[2] for _ in range(2000)]
    half = stats.binom(50, 0.5)
    assert fit_p_value(np.bincount(found, minlength=51), half.pmf(np.arange(51))) >= ALPHA
