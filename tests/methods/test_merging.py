"""Levels by paid counts: what merges, virtual rows, splitting, files (R10, R14, R25)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.mechanisms.marginals import Marginals
from pegsynth.methods.gibbs.block_fitting import hash_spec, load_blocks, store_blocks
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.merging import (
    HEAD_LEVELS,
    Splitter,
    level_prior,
    level_rules,
    level_shares,
    merge,
    most_virtual,
)
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.privacy import NoisyCounts
from pegsynth.schema import Feature, Rule, Schema

TWELVE = tuple(map(str, range(12)))


def schema(rules=()):
    return Schema(
        (
            Feature(name="age", kind="ordinal", categories=TWELVE, missing=("",)),
            Feature(name="town", categories=TWELVE),
            Feature(name="sex", categories=("f", "m")),
        ),
        rules=rules,
        reviewed=True,
    )


def shares(book, peak=0):
    lines = []
    for count in book.category_counts:
        line = np.full(count, 0.1 / count)
        line[min(peak, count - 1)] += 0.9
        lines.append(line)
    return Marginals(tuple(lines), 10_000.0)


def merging(book, marginals=None, numerator=1 << 25):
    heads = public_heads(book, 1)
    spec = hash_spec(book, heads, 0)
    return merge(book, spec, marginals or shares(book), numerator=numerator, scale=1 << 20)


def test_neighbours_merge_and_special_categories_do_not():
    book = schema()
    paid = shares(book)
    paid.shares[0][:] *= 0.9
    paid.shares[0][12] += 0.1
    levels = merging(book, paid).spec.levels
    age = levels[0]
    assert age == tuple(sorted(age))
    assert max(age) + 1 < 13
    assert age.count(age[12]) == 1
    town = levels[1]
    assert len({town[code] for code in range(1, 12)}) == 1
    assert town[0] != town[1]
    assert levels[2] == (0, 1)


def test_what_a_rule_tells_apart_is_never_merged():
    rule = Rule.of({0: [3, 4], 1: [2, 7]})
    book = schema((rule,))
    found = merging(book).spec
    for feature, codes in rule.forbidden:
        inside = {found.levels[feature][code] for code in codes}
        outside = {level for code, level in enumerate(found.levels[feature]) if code not in codes}
        assert not inside & outside
    rows = np.array(
        [[a, t, s] for a in range(13) for t in range(12) for s in range(2)], dtype=np.uint8
    )
    merged = np.column_stack([np.array(line)[rows[:, i]] for i, line in enumerate(found.levels)])
    (in_levels,) = level_rules((rule,), found.levels)
    assert (in_levels.broken_by(merged.astype(np.uint8)) == rule.broken_by(rows)).all()


def test_details_and_their_parents_are_told_apart():
    book = schema()
    book = Schema(
        (*book.features, Feature(name="street", categories=TWELVE, parent="town")), reviewed=True
    )
    found = merging(book).spec
    assert found.levels[1] == found.levels[3] == tuple(range(12))
    if found.head_levels:
        assert found.head_levels[1] == tuple(range(12))


def test_heads_have_few_levels_where_virtual_rows_prevail():
    book = schema()
    even = Marginals(tuple(np.full(c, 1 / c) for c in book.category_counts), 1_000.0)
    loud = merging(book, even, numerator=1 << 34).spec
    assert loud.head_levels
    assert max(loud.head_counts) <= HEAD_LEVELS + 1
    quiet = merging(book, even, numerator=1).spec
    assert quiet.head_levels == ()
    assert quiet.levels[1] == tuple(range(12))


@pytest.mark.parametrize("numerator", [1, 7, 4_096, 10**9, 10**13])
@pytest.mark.parametrize("seed", range(5))
def test_no_alpha_is_below_the_one_that_is_charged(numerator, seed):
    generator = np.random.default_rng(seed)
    lines = tuple(generator.dirichlet(np.full(c, 0.1)) for c in (2, 9, 40))
    prior = level_prior(lines, (16, 64, 2048), numerator=numerator, scale=1 << 20)
    for weights, multiplier in zip(prior.weights, prior.multipliers, strict=True):
        assert int(weights.min()) * multiplier >= numerator
        assert int(weights.sum()) * multiplier <= most_virtual(40, numerator)


def test_keys_and_counts_in_levels_are_those_of_the_oracle():
    generator = np.random.default_rng(5)
    levels = ((0, 0, 1, 2), (0, 1, 1), (0, 1))
    digits = ((0, 1, 1), (0, 0), (0, 1))
    codes = generator.integers(0, (4, 3, 2), (50, 3)).astype(np.uint8)
    plain = HashSpec(("a", "b", "c"), (3, 2, 2), ((1, 2), (0,), (0, 1)), 0)
    spec = replace(plain, levels=levels, head_levels=digits)
    merged = np.column_stack([np.array(line)[codes[:, i]] for i, line in enumerate(levels)])
    for target, block in enumerate(disintegrate([codes], spec).blocks):
        expected = {}
        for row in merged.tolist():
            key = 0
            for head in spec.heads[target]:
                key = key * (max(digits[head]) + 1) + digits[head][row[head]]
            expected[key, row[target]] = expected.get((key, row[target]), 0) + 1
        keys, found, counts = block.cells()
        assert dict(zip(zip(keys.tolist(), found.tolist(), strict=True), counts, strict=True)) == (
            expected
        )
        assert spec.key_space(target) > max(key for key, _ in expected)


def test_a_level_is_split_by_its_weights():
    levels = (np.array([0, 0, 1, 1, 1]), np.array([0, 1]))
    weights = (np.array([3, 1, 2, 2, 4], dtype=np.uint64), np.array([1, 1], dtype=np.uint64))
    splitter = Splitter(levels, weights, {})
    for level, inside in ((0, (3, 1)), (1, (2, 2, 4))):
        parts = 1 << 4
        words = (np.arange(parts, dtype=np.uint64) << np.uint64(60)) + np.uint64(1 << 59)
        rows = np.zeros((parts, 2), dtype=np.uint32)
        rows[:, 0] = level
        assert splitter.words_needed(parts) == parts
        drawn = splitter.split(rows, words)[:, 0]
        members = [code for code, own in enumerate(levels[0].tolist()) if own == level]
        for code, weight in zip(members, inside, strict=True):
            assert Fraction(int((drawn == code).sum()), parts) == Fraction(weight, sum(inside))


def test_given_values_stay_as_they_are():
    levels = (np.array([0, 0, 0]),)
    splitter = Splitter(levels, (np.ones(3, dtype=np.uint64),), {0: 2})
    rows = np.zeros((5, 1), dtype=np.uint8)
    assert (splitter.split(rows, np.zeros(5, dtype=np.uint64)) == 2).all()


def test_shares_of_levels_add_up():
    own = level_shares((np.array([0.5, 0.25, 0.25]),), ((0, 1, 1),))
    assert own[0].tolist() == [0.5, 0.5]


# Through the front door


def frame(rows=3_000):
    generator = np.random.default_rng(2)
    age = np.minimum(generator.geometric(0.4, rows) - 1, 11)
    town = (age + generator.geometric(0.6, rows)) % 12
    return pl.DataFrame(
        {
            "age": [str(a) for a in age],
            "town": [str(t) for t in town],
            "sex": np.where(generator.random(rows) < 0.5, "f", "m"),
        }
    )


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pegs-capped"])
@pytest.mark.parametrize("order", ["private", "public"])
def test_a_release_on_levels_costs_what_one_on_categories_does(method, order):
    stated = {"method": method, "rows": 40, "epsilon": 5.0, "delta": 1e-9, "order": order}
    made = [
        pegsynth.synthesize(frame(), schema(), **stated, prior=prior)
        for prior in ("marginal", "levels")
    ]
    prices = [each.ledger.guarantee for each in made]
    assert prices[0] == prices[1]
    purposes = [event.purpose for event in made[1].ledger.events if isinstance(event, NoisyCounts)]
    assert purposes == ["marginals and levels"]
    assert set(made[1].frames[0]["town"]) <= set(TWELVE)


def test_rules_and_given_values_hold_on_levels():
    rule = Rule.of({0: [0], 1: [1, 2]})
    book = schema((rule,))
    kept = frame().filter(~((pl.col("age") == "0") & pl.col("town").is_in(["1", "2"])))
    made = pegsynth.synthesize(
        kept, book, method="pegs", rows=300, epsilon=50.0, delta=1e-9, where={"town": "1"}
    ).frames[0]
    assert set(made["town"]) == {"1"}
    assert "0" not in set(made["age"])


def fitted():
    model = pegsynth.PeGS(method="pegs-rs", rows=60, epsilon=5.0, delta=1e-9, seed=4)
    return model.fit(frame(), schema()).session.model.content


def test_a_stored_model_has_the_same_levels():
    content = fitted()
    spec = content.blocks.spec
    assert sum(spec.category_counts) < sum(schema().category_counts)
    again = load_blocks(store_blocks(content), schema())
    assert again.blocks.spec.levels == spec.levels
    assert again.blocks.spec.tables.digits.tolist() == spec.tables.digits.tolist()
    assert again.resolutions == content.resolutions
    first, second = (each.blocks.tables.dense_cumulative for each in (again, content))
    assert (first == second).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("levels", lambda line: line[:-1]),
        ("levels", lambda line: line + 1),
        ("levels", lambda line: line.astype(np.int32)),
        ("head levels", lambda line: line * 0 - 1),
        ("resolutions", lambda line: line * 0),
        ("resolutions", lambda line: line * 10**6),
        ("resolutions", None),
        ("levels", None),
    ],
)
def test_damaged_levels_are_refused(name, change):
    stored = store_blocks(fitted())
    arrays = {key: each for key, each in stored.arrays.items() if key != name or change}
    if change:
        arrays[name] = change(arrays[name])
    with pytest.raises(ModelError):
        load_blocks(replace(stored, arrays=arrays), schema())


def test_levels_across_a_rule_are_refused():
    stored = store_blocks(fitted())
    merged = stored.arrays["levels"][13:25]
    one, two = np.flatnonzero(merged == np.bincount(merged).argmax())[:2].tolist()
    book = schema((Rule.of({1: [one], 2: [0]}),))
    assert one != two
    with pytest.raises(ModelError, match="rules"):
        load_blocks(stored, book)


def test_levels_that_nobody_pays_for_or_that_kept_columns_forbid_are_refused():
    with pytest.raises(BudgetError, match="levels"):
        pegsynth.synthesize(
            frame(), schema(), method="pegs", rows=5, epsilon_per_row=1.0, prior="levels"
        )
    with pytest.raises(ParameterError, match="prior levels merges"):
        pegsynth.synthesize(
            frame(),
            schema(),
            method="pegs",
            synthesize=["town"],
            prior="levels",
            epsilon=1.0,
            no_guarantee=True,
        )
