"""Rows from released blocks alone: any number, in lots, close margins, given values (R11, R13).

Bounds on margins were measured: what each is now, and what sampling error would be, stands
beside it. Streams are seeded; the comparison of distributions has rate `ALPHA`.
"""

from dataclasses import replace

import numpy as np
import pytest
from once_tables import COUNTS, released_of, shares_of, table_of_codes

from pegsynth.errors import DataError, SchemaError
from pegsynth.methods.released import _draw as drawing
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._draw import draw_rows, pool_rows, rebuild
from pegsynth.methods.released._row_pool import Pool
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import fit_p_value

RULES = (Rule.of({0: [0], 3: [1]}), Rule.of({1: [2], 4: [0, 1]}))
APART = (0, 1, 3, 4)


def drawn(rows, *, epsilon=10.0, delta=None, seed=2, rules=(), apart=(), **options):
    released, _, _ = released_of(epsilon, delta, rules=rules, apart=apart)
    stream = RandomStream(seed)
    return list(draw_rows(released, rows, stream, rules=rules, **options))


# Any number of rows


@pytest.mark.parametrize("rows", [1, 2, 7, 1000, 5000])
def test_any_number_of_rows(rows):
    (codes,) = drawn(rows)
    assert codes.shape == (rows, len(COUNTS))
    assert codes.dtype == np.uint32
    assert (codes < np.array(COUNTS)).all()


def test_no_row_is_no_lot():
    assert drawn(0) == []


def test_rows_come_in_lots(monkeypatch):
    monkeypatch.setattr(drawing, "LOT", 400)
    lots = drawn(1000)
    assert [len(lot) for lot in lots] == [400, 400, 200]
    # Every lot has a pool of its own, and margins of its own that are close.
    assert not np.array_equal(lots[0], lots[1])
    for lot in lots:
        assert np.abs(shares_of(lot, 0) - shares_of(table_of_codes(), 0)).max() < 0.03


def test_a_stream_decides_and_the_threads_do_not():
    one, two = (drawn(3000, threads=threads)[0] for threads in (1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, drawn(3000, seed=3)[0])


def test_rows_leave_in_random_order():
    """Sorted by the features placed first, neighbours would nearly always be alike."""
    (codes,) = drawn(3000)
    changes = np.count_nonzero(np.diff(codes[:, 0].astype(int)))
    assert 1500 < changes < 2500


def test_the_pool_is_larger_where_the_table_is_small(monkeypatch):
    released, _, _ = released_of()
    assert pool_rows(released, 100) == 400
    monkeypatch.setattr(drawing, "POOL_ROWS", 6_000)
    assert pool_rows(released, 100) == pytest.approx(200, abs=2)


# Margins


MARGINS = [
    # epsilon, delta, largest deviation of any level in rows of 5,000; sampling error is 35
    (10.0, None, 12),
    (10.0, 1e-9, 12),
    (3.0, 1e-9, 25),
]


@pytest.mark.parametrize(("epsilon", "delta", "most"), MARGINS)
def test_one_way_margins_are_the_models_own_up_to_a_few_rows(epsilon, delta, most):
    released, _, _ = released_of(epsilon, delta)
    stream, steps, rows = RandomStream(7), Steps(), 5000
    fit = rebuild(released, Pool(released.sizes, pool_rows(released, rows), stream), steps)
    codes = drawing.take_rows(released, fit, rows, stream)
    for feature, levels in enumerate(released.levels):
        counts = np.bincount(levels[codes[:, feature]], minlength=int(levels.max()) + 1)
        own = rows * fit.ones[feature] / fit.ones[feature].sum()
        assert np.abs(counts - own).max() <= most


def test_independent_draws_would_be_off_by_their_sampling_error():
    """The twin: rows drawn independently from the same weights."""
    _, fit, _ = released_of()
    words = np.random.default_rng(1)
    worst = []
    for _ in range(20):
        odds = fit.pool.weights / fit.pool.weights.sum()
        chosen = words.choice(fit.pool.rows, 5000, p=odds)
        counts = np.bincount(fit.pool.columns[0, chosen], minlength=3)
        worst.append(np.abs(counts - 5000 * fit.margins.shares[0]).max())
    assert np.mean(worst) > 12


def test_categories_of_a_merged_level_have_their_one_way_shares():
    released, _, _ = released_of(1.0, 1e-9)
    merged = [f for f, levels in enumerate(released.levels) if len(set(levels)) < len(levels)]
    assert merged
    (codes,) = drawn(20_000, epsilon=1.0, delta=1e-9)
    fine = drawing.fine_shares(released)
    for feature in merged:
        levels = released.levels[feature]
        for level in set(levels.tolist()):
            members = np.flatnonzero(levels == level)
            inside = codes[np.isin(codes[:, feature], members), feature]
            expected = len(inside) * fine[feature][members] / fine[feature][members].sum()
            counts = [np.count_nonzero(inside == member) for member in members]
            assert np.abs(counts - expected).max() < 1 + 1e-6


def test_the_number_of_rows_is_the_users_and_the_total_only_scales():
    small, large = drawn(500)[0], drawn(8000)[0]
    for feature in range(len(COUNTS)):
        away = np.abs(shares_of(small, feature) - shares_of(large, feature)).max()
        assert away < 0.02


def test_tables_differ_less_than_independent_samples_would():
    """b, the variance between tables, stays below v: it understates nothing but drawing (R16)."""
    rows, tables = 500, [drawn(500, seed=seed)[0] for seed in range(12)]
    for feature in range(len(COUNTS)):
        shares = np.array([shares_of(codes, feature) for codes in tables])
        between = shares.var(axis=0, ddof=1).sum()
        within = (shares * (1 - shares) / rows).mean(axis=0).sum()
        assert between < 0.5 * within


# Rules


@pytest.mark.parametrize("rows", [1, 3, 400])
def test_no_row_breaks_a_rule(rows):
    for seed in range(12 if rows < 10 else 1):
        (codes,) = drawn(rows, seed=seed, rules=RULES, apart=APART)
        assert not any(rule.broken_by(codes).any() for rule in RULES)


def test_rules_that_nothing_obeys_are_refused():
    nothing = tuple(Rule.of({0: [0, 1, 2], 3: [code]}) for code in range(2))
    released, _, _ = released_of(apart=APART)
    with pytest.raises(SchemaError, match="rules"):
        list(draw_rows(released, 10, RandomStream(1), rules=nothing))


# Given values


GIVEN = {0: 1, 3: 0}


def homogeneous(first, second):
    """P-value that two samples of one column come from one distribution.

    Rows vary less than independent draws, so that the rate is below the nominal one.
    """
    shares = (first + second) / (first + second).sum()
    chance = [fit_p_value(each, shares) for each in (first, second)]
    return min(1.0, 2 * min(chance))


def test_given_values_are_conditioned_on():
    """The same distribution of the other features as by drawing much and filtering."""
    (whole,) = drawn(60_000, seed=11)
    kept = whole[np.all([whole[:, f] == code for f, code in GIVEN.items()], axis=0)]
    (found,) = drawn(len(kept), seed=12, given=GIVEN)
    assert len(found) == len(kept) > 3000
    for feature, code in GIVEN.items():
        assert set(found[:, feature]) == {code}
    for feature in (1, 2, 4):
        counts = [
            np.bincount(codes[:, feature], minlength=COUNTS[feature]) for codes in (kept, found)
        ]
        assert homogeneous(*counts) >= 1e-6 / 3
    pairs = [np.bincount(codes[:, 1] * 20 + codes[:, 2], minlength=60) for codes in (kept, found)]
    assert homogeneous(*pairs) >= 1e-6


def test_values_written_over_the_rows_of_an_ordered_pass_are_told_apart():
    """The twin that the issue forbids."""
    (whole,) = drawn(60_000, seed=11)
    kept = whole[np.all([whole[:, f] == code for f, code in GIVEN.items()], axis=0)]
    (overwritten,) = drawn(len(kept), seed=12)
    for feature, code in GIVEN.items():
        overwritten[:, feature] = code
    counts = [np.bincount(codes[:, 2], minlength=20) for codes in (kept, overwritten)]
    assert homogeneous(*counts) < 1e-6


@pytest.mark.parametrize("rows", [1, 50])
def test_few_rows_with_given_values(rows):
    (codes,) = drawn(rows, given={2: 8, 4: 5})
    assert codes.shape == (rows, 5)
    assert set(codes[:, 2]) == {8}
    assert set(codes[:, 4]) == {5}


def test_given_values_and_rules_hold_together():
    (codes,) = drawn(300, rules=RULES, apart=APART, given={0: 0})
    assert set(codes[:, 0]) == {0}
    assert set(codes[:, 3]) == {0}
    assert not any(rule.broken_by(codes).any() for rule in RULES)


def test_values_that_no_row_has_are_refused_before_long(monkeypatch):
    """Only so many pools are tried, and fewer where none held anything."""
    monkeypatch.setattr(drawing, "LOT", 1 << 15)
    sizes = []
    shipped = drawing.grown

    def counted(released, fit, stream, rows):
        sizes.append(rows)
        return shipped(released, fit, stream, rows)

    monkeypatch.setattr(drawing, "grown", counted)
    with pytest.raises(DataError, match=r"0 of 10 were found.*--where|--where.*0 of 10"):
        drawn(10, rules=RULES, apart=APART, given={0: 0, 3: 1})
    assert len(sizes) == 8
    assert max(sizes) <= 1 << 15


# Ablation


@pytest.mark.parametrize(
    "steps",
    [
        Steps(rounds=0),
        Steps(merge=False),
        Steps(exchange=0),
        Steps(triples=False),
        Steps(dependences=False),
        Steps(heads=1),
    ],
    ids=lambda steps: ", ".join(
        f"{name}={getattr(steps, name)}"
        for name in Steps.__dataclass_fields__
        if getattr(steps, name) != getattr(Steps(), name)
    ),
)
def test_every_step_can_be_left_out(steps):
    """Each gives rows of the right shape whose first margins are close."""
    steps = replace(steps, residuals=False)
    released, _, events = released_of(10.0, 1e-9, steps=steps)
    (codes,) = draw_rows(released, 800, RandomStream(1), steps=steps)
    assert codes.shape == (800, 5)
    assert np.abs(shares_of(codes, 0) - shares_of(table_of_codes(), 0)).max() < 0.05
    purposes = {getattr(event, "purpose", "unspent") for event in events}
    assert bool({"table", "residual"} & set(purposes)) == bool(steps.rounds)
    assert bool(released.extra or released.residuals) == bool(steps.rounds)
    if not steps.triples:
        assert all(len(table.features) == 2 for table in released.extra)
    assert all(len(block.features) <= 1 + steps.heads for block in released.blocks)
    if not steps.merge:
        assert released.sizes == COUNTS
