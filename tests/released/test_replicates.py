"""Replicate weights and tables with noise of their own, as users get them (R28)."""

import numpy as np
import pytest
from four_categories import break_noise
from once_tables import COUNTS, ORDERED, released_of, table_of_codes, whole_of
from scipy import optimize

from pegsynth.errors import ParameterError
from pegsynth.inference.combining_rules import PART
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released import _row_replicates as weighing
from pegsynth.methods.released._draw import draw_rows, fine_shares, plain_margins, plain_targets
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._replicates import Source, own_noise_tables
from pegsynth.methods.released._row_replicates import Measurement, Replicates, Signs
from pegsynth.methods.released._values import Domain
from pegsynth.random import RandomStream
from pegsynth.schema import Rule

RULES = (Rule.of({0: [0], 3: [1]}), Rule.of({1: [2], 4: [0, 1]}))
APART = (0, 1, 3, 4)


def source_of(epsilon=3.0, delta=1e-9, *, rules=(), apart=(), **more):
    released, _, events = released_of(epsilon, delta, rules=rules, apart=apart)
    return Source(released, events, rules=rules, **more)


def weighted(source, rows=3000, *, seed=2, count=4, threads=1):
    stream = RandomStream(seed)
    told = {"rules": source.rules, "threads": threads}
    codes = np.concatenate(list(draw_rows(source.released, rows, stream, **told)))
    found = Replicates.fitted(source, codes, stream, count=count, rows=rows, threads=threads)
    return codes, found.weights(codes, Signs(stream.substream(), count).take(rows))


# What comes out


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [None, 1e-9], ids=["pure", "approximate"])
@pytest.mark.parametrize("rows", [1, 37, 3000, 90_000])
def test_weights_lie_around_1(rows, delta, epsilon):
    """The largest at most 5 times the mean, effective rows at least 60 %, at every size."""
    codes, weights = weighted(source_of(epsilon, delta=delta), rows)
    assert codes.shape == (rows, len(COUNTS))
    assert weights.shape == (4, rows)
    means = weights.mean(axis=1)
    assert (weights.max(axis=1) <= 5 * means).all()
    assert (weights > 0).all()
    assert ((weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)) >= 0.6 * rows).all()
    if rows >= 3000:
        np.testing.assert_allclose(means, 1.0, atol=0.15)


def test_zero_perturbation_leaves_rows_as_they_are(monkeypatch):
    break_noise(monkeypatch, "nothing perturbed")
    source = source_of(1.0)
    merged = [levels for levels in source.released.levels if len(set(levels)) < len(levels)]
    assert merged
    _, weights = weighted(source)
    np.testing.assert_allclose(weights, 1.0, rtol=1e-9)


def test_replicates_differ_from_each_other():
    _, weights = weighted(source_of())
    away = np.abs(weights[:, None] - weights[None, :]).mean(axis=2)
    assert (away[~np.eye(4, dtype=bool)] > 0.05).all()


def test_a_stream_decides_and_the_threads_do_not():
    first, second = (weighted(source_of(), threads=threads) for threads in (1, 2))
    for one, two in zip(first, second, strict=True):
        assert np.array_equal(one, two)
    assert not np.array_equal(first[1], weighted(source_of(), seed=3)[1])


def test_many_more_rows_than_the_original_vary_as_its_rows_would():
    """Sampling is in the potentials where rows alone would have to count too unlike each other."""
    source = source_of(1000.0)
    q = {}
    for rows in (3000, 200_000):
        codes, weights = weighted(source, rows, count=200)
        hit = codes[:, 0] == 0
        q[rows] = (weights[:, hit].sum(axis=1) / weights.sum(axis=1)).std() / PART
    share = (table_of_codes()[:, 0] == 0).mean()
    expected = np.sqrt(share * (1 - share) / 3000)
    # 200 replicates know a deviation to 5 %; noise adds next to nothing.
    assert q[3000] == pytest.approx(expected, rel=0.3)
    assert q[200_000] == pytest.approx(expected, rel=0.3)


def tables_that_disagree(monkeypatch, sweeps):
    """Return deviations of the counts of related features: of weights, and of their noise."""
    monkeypatch.setattr(weighing, "_LAST_SWEEPS", sweeps)
    words, cases, count = np.random.default_rng(5), 5, 40
    first = words.random(4000) < 0.5
    flips = words.random((4000, cases)) < 0.1
    codes = (first[:, None] ^ flips).astype(np.uint32)

    def cell(features):
        return lambda rows: (rows[:, features] @ (2 ** np.arange(len(features)))).astype(np.uint16)

    pairs = [[a, b] for a in range(cases) for b in range(a)]
    measured = [Measurement(cell(p), 4, 60.0, words.normal(0, 60, (count, 4))) for p in pairs]
    for feature in range(cases):
        noise = words.normal(0, 15, (count, 1)) * [1, -1]
        measured.append(Measurement(cell([feature]), 2, 15.0, noise, closeness=0.3))
    keys, start = [each.keys(codes) for each in measured], np.ones(4000)
    found = np.zeros((count, cases))
    for number in range(count):
        moved = [PART * each.noise[number] for each in measured]
        lines = weighing._potentials(measured, keys, start, start, moved, PART / 60)
        weights = np.exp(sum(line[key] for line, key in zip(lines, keys, strict=True)))
        found[number] = (weights @ codes - codes.sum(axis=0)) / PART
    return found.std(), np.std([each.noise[:, 0] for each in measured[-cases:]])


def test_one_way_counts_vary_by_their_own_noise_however_loud_tables_are(monkeypatch):
    got, wanted = tables_that_disagree(monkeypatch, weighing._LAST_SWEEPS)
    assert got == pytest.approx(wanted, rel=0.1)
    got, wanted = tables_that_disagree(monkeypatch, 0)
    assert got > 1.5 * wanted


def test_tables_are_led_back_from_what_happened_to_some_rows():
    """Noise inside the bins of a number is none on features that its rows have in common."""
    source = source_of(3.0)
    codes = np.concatenate(list(draw_rows(source.released, 3000, RandomStream(1))))
    found = Replicates.fitted(source, codes, RandomStream(2), count=3, rows=3000)
    before = found.weights(codes, Signs(RandomStream(3).substream(), 3).take(3000))
    words = np.random.default_rng(4)
    after = before * (1 + 0.5 * words.choice([-1, 1], (3, 600)))[:, np.arange(3000) // 5]
    led = found.moved_by(found.back(codes, before, after), codes, after)

    def away(lines):
        cells = [np.bincount(codes[:, f], line) for line in lines for f in range(len(COUNTS))]
        return np.concatenate(cells)

    assert np.abs(away(led - before)).mean() < 0.1 * np.abs(away(after - before)).mean()
    assert np.abs(led / after - 1).mean() < 0.2


def test_sums_of_products_do_not_say_how_closely_rows_are_kept(monkeypatch):
    """They are in other units: loud ones would let noise move almost empty cells at will."""
    source = source_of(10.0)
    usual = []

    def louder(times):
        made = weighing.AddedProducts.add
        monkeypatch.setattr(
            weighing.AddedProducts,
            "add",
            lambda self, features, levels, noise, variance, **more: made(
                self, features, levels, noise, variance * times, **more
            ),
        )

    for times in (1.0, 1e6):
        louder(times)
        codes = np.concatenate(list(draw_rows(source.released, 500, RandomStream(1))))
        found = Replicates.fitted(source, codes, RandomStream(2), count=2, rows=500)
        assert any(each.products is not None for each in found.measurements)
        usual.append(found.closeness)
    assert usual[0] == usual[1]


# The fit, against a brute force one


@pytest.mark.parametrize("residual", [False, True])
def test_potentials_solve_the_stated_problem(monkeypatch, residual):
    """On a domain of eight cells: |A w - (A b + f e)|^2 / (2 v) + c KL(w || b)."""
    monkeypatch.setattr(weighing, "_SWEEPS", 400)
    monkeypatch.setattr(weighing, "_MOST_FACTOR", 1e9)
    words = np.random.default_rng(3)
    codes = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1).astype(np.uint32)
    start = words.uniform(20, 60, 8)
    keys = [lambda rows: (2 * rows[:, 0] + rows[:, 1]).astype(np.uint16),
            lambda rows: rows[:, 2].astype(np.uint16),
            lambda rows: (2 * rows[:, 1] + rows[:, 2]).astype(np.uint16)]  # fmt: skip
    noise = [words.normal(0, 20, (1, n)) for n in (4, 2)]
    if residual:
        noise[0] = centred(noise[0][0], (2, 2))[None, :]
    product = np.array([1.5, -0.5, -1.0, 0.8])
    measured = [
        Measurement(keys[0], 4, 3.0, noise[0], levels=(2, 2) if residual else ()),
        Measurement(keys[1], 2, 2.0, noise[1], closeness=0.3),
        Measurement(keys[2], 4, 5.0, np.array([[7.0]]), products=product),
    ]
    lines = [each.keys(codes) for each in measured]
    closeness = 0.4
    moved = [PART * each.noise[0] for each in measured]
    found = weighing._potentials(measured, lines, start, start, moved, closeness)
    weights = start * np.exp(sum(line[key] for line, key in zip(found, lines, strict=True)))

    def gradient(logs):
        """Return what is zero at the minimum, which is unique, divided by the weights."""
        w = start * np.exp(logs)
        slope = logs.copy()
        for each, key in zip(measured, lines, strict=True):
            sums = [np.bincount(key, line, each.cells) for line in (w, start)]
            away = each.seen(sums[0]) - each.seen(sums[1]) - PART * each.noise[0]
            softness = closeness * each.closeness * each.deviation**2
            slope += (each.by_cell(away) / softness)[key]
        return slope

    solved = optimize.root(gradient, np.zeros(8), tol=1e-12)
    assert solved.success
    np.testing.assert_allclose(np.log(weights / start), solved.x, atol=1e-6)


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
            codes, Domain(COUNTS, ORDERED), budget_filter, Work(stream), rows=1000
        )
        script = list(budget_filter.script) if script is None else script
        found.append(weighted(Source(released, budget_filter.events)))
    (first, weights), (second, others) = found
    assert np.array_equal(first, second)
    assert np.array_equal(weights, others)


# Rules, given values, public shares, l


def test_no_row_breaks_a_rule():
    source = source_of(rules=RULES, apart=APART)
    codes, weights = weighted(source)
    assert not any(rule.broken_by(codes).any() for rule in RULES)
    assert (weights.sum(axis=1) > 0).all()
    for lots in own_noise_tables(source, 500, RandomStream(1), count=2):
        (codes,) = lots
        assert not any(rule.broken_by(codes).any() for rule in RULES)


def public_release(epsilon=0.3):
    shares = np.array([0.9, 0.09, 0.01])
    stream = RandomStream(6)
    budget_filter = PrivacyFilter(whole_of(epsilon, 1e-9), stream)
    public = (shares, None, None, None, None)
    released, _ = release_blocks(
        table_of_codes(),
        Domain(COUNTS, ORDERED, public=public),
        budget_filter,
        Work(stream),
        rows=1000,
    )
    return shares, Source(released, budget_filter.events)


def test_public_shares_stay_what_they_are_in_every_replicate():
    """Also where the number of rows is known badly."""
    shares, source = public_release()
    for released in source.replicates(6, RandomStream(1)):
        np.testing.assert_array_equal(
            released.one_ways[0].counts, source.released.one_ways[0].counts
        )
        np.testing.assert_allclose(fine_shares(released)[0], shares, rtol=0.02)
        levels = plain_margins(released).shares[0]
        merged = np.bincount(released.levels[0], shares)
        np.testing.assert_allclose(levels, merged, rtol=0.05)


def test_no_replicate_weight_moves_public_shares():
    """But for rows that are clipped at the bounds of weights."""
    _, source = public_release()
    codes, weights = weighted(source, 20_000)
    for line in weights:
        found = np.bincount(codes[:, 0], line, 3) / line.sum()
        np.testing.assert_allclose(found, np.bincount(codes[:, 0]) / len(codes), rtol=0.05)


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
    margins = plain_margins(released)
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
