"""Every method that takes an l keeps it, or refuses by name what would break it (R7).

Rules, given values, details of a parent, replaced features and urns. What the ledger
states is tried on drawn rows; the kernels are enumerated draw by draw.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pegsynth
from pegsynth.auditing.exact_laws import enumerate_rows, word_bits
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.gibbs.chains import Schedule
from pegsynth.methods.gibbs.samplers import prepare
from pegsynth.privacy import Budget, Diversity
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Rule, Schema
from significance import ALPHA
from small_release import fitted_model, settled_plan

ROWS = 4000
LETTERS = ("a", "b")


def copies(categories=LETTERS, *, shares=(0.5, 0.5)):
    """Return a table whose column `w` equals its sensitive column `s`, and one of noise."""
    words = np.random.default_rng(1)
    drawn = words.choice(len(categories), ROWS, p=shares)
    letters = np.array(categories)[drawn]
    return pl.DataFrame({"s": letters, "w": letters, "f": words.choice(["0", "1", "2"], ROWS)})


def codebook(categories=LETTERS, *, role="sensitive", rules=(), **own):
    return Schema(
        (
            Feature("s", categories=categories, role=role, **own),
            Feature("w", categories=categories),
            Feature("f", categories=("0", "1", "2")),
        ),
        rules=rules,
        reviewed=True,
    )


def named(ledger):
    """Return the features that the ledger promises an l for."""
    (event,) = [event for event in ledger.events if isinstance(event, Diversity)]
    return event.features


EVERY = [
    {"method": "pegs", "l": 2.0},
    {"method": "pegs-rs", "l": 2.0},
    {"method": "pegs-capped", "l": 2.0},
]


def check_even(column, values=LETTERS):
    """Two values with an l of 2 are equally likely; false-alarm rate ALPHA."""
    counts = [int((column == value).sum()) for value in values]
    assert sum(counts) == len(column)
    assert stats.binomtest(counts[0], sum(counts)).pvalue >= ALPHA, counts


# Given values


@pytest.mark.parametrize("asked", EVERY, ids=lambda asked: asked["method"])
def test_given_values_leave_the_l_as_it_is(asked):
    """The release that broke: 2,000 of 2,000 rows had one value at a stated l of 2."""
    release = pegsynth.synthesize(copies(), codebook(), rows=2000, where={"w": "a"}, **asked)
    assert release.ledger.guarantee.l == 2.0
    assert named(release.ledger) == ("s",)
    assert set(release.frames[0]["w"]) == {"a"}
    check_even(release.frames[0]["s"])


@pytest.mark.parametrize("own", [{}, {"role": "other", "l": 2.0}], ids=["sensitive", "own l"])
@pytest.mark.parametrize("asked", EVERY, ids=lambda asked: asked["method"])
def test_a_given_value_of_a_feature_with_an_l_is_refused(asked, own):
    with pytest.raises(ParameterError, match=r"'s'.*only drawn values.*leave it out of where"):
        pegsynth.synthesize(copies(), codebook(**own), rows=10, where={"s": "a"}, **asked)


@pytest.mark.parametrize("asked", EVERY, ids=lambda asked: asked["method"])
def test_where_none_is_marked_given_features_do_not_count(asked):
    schema = codebook(role="other")
    release = pegsynth.synthesize(copies(), schema, rows=2000, where={"w": "a"}, **asked)
    assert named(release.ledger) == ("s", "f")
    check_even(release.frames[0]["s"])
    whole = pegsynth.synthesize(copies(), schema, rows=10, **asked)
    assert named(whole.ledger) == ("s", "w", "f")


@pytest.mark.parametrize("other", [{}, {"epsilon": 1.0}], ids=["alone", "beside epsilon"])
def test_released_blocks_take_no_l(other):
    with pytest.raises(BudgetError, match=r"takes no l;|cannot be stated together"):
        pegsynth.synthesize(copies(), codebook(), rows=10, method="pegs-once", l=2.0, **other)


# Rules


BLIND = (
    Rule.of({0: [0, 1], 1: [0], 2: [0, 1]}),
    Rule.of({0: [0, 1], 1: [0], 2: [2, 3, 4]}),
)
"""Rows with one of the first two values of `s` and the first of `w` have no way out."""


def blind_schema(role):
    letters = ("a", "b", "c", "d", "e")
    return Schema(
        (
            Feature("s", categories=letters[:4], role=role),
            Feature("w", categories=letters),
            Feature("f", categories=letters),
        ),
        rules=BLIND,
        reviewed=True,
    )


def blind_table():
    """Return rows in which `w` follows from `s`: b is where the rules leave nothing."""
    words = np.random.default_rng(2)
    drawn = words.integers(0, 2, ROWS)
    letters = np.array(["a", "b", "c", "d", "e"])
    return pl.DataFrame(
        {
            "s": letters[drawn],
            "w": np.where(drawn == 0, "b", "a"),
            "f": letters[words.integers(0, 5, ROWS)],
        }
    )


@pytest.mark.parametrize("role", ["sensitive", "other"])
@pytest.mark.parametrize("asked", EVERY, ids=lambda asked: asked["method"])
def test_rules_leave_the_l_as_it_is(asked, role):
    """At an l of 2 no value of `s` has a share above 0.82, whatever comes before it."""
    release = pegsynth.synthesize(blind_table(), blind_schema(role), rows=2000, **asked)
    assert release.ledger.guarantee.l == 2.0
    largest = max(release.frames[0]["s"].value_counts()["count"])
    assert stats.binomtest(largest, 2000, 0.82, alternative="greater").pvalue >= ALPHA


# Other options


def test_urns_do_not_go_with_an_l():
    """An urn never looked at the multipliers that make entries diverse."""
    asked = {"method": "pegs-capped", "l": 2.0, "rows": 10}
    with pytest.raises(ParameterError, match=r"urn.*no longer l-diverse; leave out urn or l"):
        pegsynth.synthesize(copies(), codebook(), urn=True, **asked)
    for urn in (None, False):
        pegsynth.synthesize(copies(), codebook(), urn=urn, **asked)


def test_kept_columns_have_no_l():
    asked = {"method": "pegs", "l": 2.0, "no_guarantee": True}
    with pytest.raises(ParameterError, match=r"'s'.*original values; name it in synthesize too"):
        pegsynth.synthesize(copies(), codebook(), synthesize="f", **asked)
    release = pegsynth.synthesize(copies(), codebook(), synthesize="s", **asked)
    assert named(release.ledger) == ("s",)
    assert release.ledger.guarantee.kind == "none"
    check_even(release.frames[0]["s"])
    release = pegsynth.synthesize(copies(), codebook(role="other"), synthesize="f", **asked)
    assert named(release.ledger) == ("f",)


# The pegs kernels, draw by draw


TINY = Schema(
    (
        Feature("p", categories=("0", "1")),
        Feature("q", categories=("0", "1", "2")),
        Feature("d", categories=("0", "1", "2", "3"), parent="p"),
    ),
    rules=(Rule.of({0: [1], 2: [0]}), Rule.of({0: [0], 1: [2]})),
    reviewed=True,
)
TINY_ROWS = pl.DataFrame({"p": list("00011"), "q": list("11120"), "d": list("00013")})
LEVELS = {1: 1.5, 2: 2.0}


def machine_of(*, where=(), **budget):
    schema = Schema(
        tuple(
            replace(feature, l=LEVELS.get(index)) if "l" in budget else feature
            for index, feature in enumerate(TINY.columns)
        ),
        rules=TINY.rules,
        reviewed=True,
    )
    # The stated l of 1 asks for nothing; the features have an l of their own.
    plan = settled_plan(schema, Budget(**budget), rows=1, where=where, heads=1, scale=2)
    model = fitted_model(TINY_ROWS, schema, plan, RandomStream(1))
    return prepare(schema, model.content, plan).machine


def smallest_entropies(machine, fixed=()):
    """Return the smallest entropy of each target's draw, over all rows that obey the rules."""
    bits = word_bits(machine, len(TINY_ROWS))
    rows = np.array(list(product(range(2), range(3), range(4))), dtype=np.uint32)
    rows = rows[~TINY.breaks_a_rule(rows)]
    for feature, code in fixed:
        rows = rows[rows[:, feature] == code]
    found = {}
    for target in machine.targets.tolist():
        alone = replace(machine, targets=np.array([target]))
        entropies = []
        for row in rows:
            law = enumerate_rows(alone, row[None], Schedule(), 1, bits)
            assert sum(law.values()) == 1
            entropies.append(-sum(float(p) * math.log(p) for p in law.values()))
        found[target] = min(entropies)
    return found


@pytest.mark.parametrize("where", [(), (("p", "1"),), (("q", "0"),)], ids=str)
def test_every_draw_of_the_kernel_is_diverse_under_rules_details_and_given_values(where):
    if where == (("q", "0"),):
        with pytest.raises(ParameterError, match=r"'q'.*leave it out of --where"):
            machine_of(where=where, l=1.0)
        return
    fixed = tuple((TINY.index(name), int(text)) for name, text in where)
    found = smallest_entropies(machine_of(where=where, l=1.0), fixed)
    assert set(found) == {0, 1, 2} - {feature for feature, _ in fixed}
    for target, level in LEVELS.items():
        assert found[target] >= math.log(level) - 1e-12


def test_without_an_l_the_same_draws_are_not():
    """The twin."""
    found = smallest_entropies(machine_of(alpha=0.0))
    assert all(found[target] < math.log(level) for target, level in LEVELS.items())
