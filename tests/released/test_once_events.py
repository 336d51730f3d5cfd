"""Every event of released blocks says which features it is about, and how large its table is."""

import math
from dataclasses import replace

import numpy as np
import pytest
from once_tables import whole_of

from contract import contract_schema, contract_table
from pegsynth import synthesize
from pegsynth.errors import ParameterError
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released import _release
from pegsynth.methods.released._details import MAP_PURPOSES
from pegsynth.privacy import NoisyCounts, NoisyResiduals, Selection, Unspent
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from small_release import fitted_model, settled_plan

WIDE = Schema(
    (
        Feature("a", categories=("x", "y", "z")),
        Feature("many", categories=tuple(map(str, range(60)))),
        Feature("b", categories=("p", "q")),
        Feature("n", "numeric", edges=tuple(float(i) for i in range(31)), dtype="int64"),
    ),
    reviewed=True,
)


def wide_rows(rows=400):
    words = np.random.default_rng(5)
    first = words.integers(0, 3, rows)
    return {
        "a": [("x", "y", "z")[i] for i in first],
        "many": [str(int(i)) for i in words.geometric(0.1, rows) % 60],
        "b": [("p", "q")[i % 2] for i in first],
        "n": (first * 8 + words.integers(0, 6, rows)).tolist(),
    }


@pytest.fixture
def without_residuals(monkeypatch):
    """Releases by chosen blocks, also where all pairs are quiet enough to be measured (R27)."""
    steps_of = _release.steps_of
    monkeypatch.setattr(_release, "steps_of", lambda plan: replace(steps_of(plan), residuals=False))


def released(budget, *, schema=WIDE, data=None, seed=3, **options):
    import polars as pl

    data = pl.DataFrame(wide_rows()) if data is None else data
    plan = settled_plan(schema, method="pegs-once", rows=50, **budget, **options)
    model = fitted_model(data, schema, plan, RandomStream(seed))
    return model, model.plan.events


BUDGETS = [{"epsilon": 1.0}, {"epsilon": 20.0}, {"epsilon": 4.0, "delta": 1e-9}]


@pytest.mark.usefixtures("without_residuals")
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_events_describe_the_tables_that_were_released(budget):
    """In order: the total, one-way counts, maps, then a choice before every block and table."""
    model, events = released(budget)
    names, tables = WIDE.names, model.content.released
    noise = [event for event in events if isinstance(event, NoisyCounts)]
    apart = [event for event in events if isinstance(event, NoisyResiduals)]
    assert sum(event.purpose == "map" for event in noise) == len(tables.maps)
    choices = [event for event in events if isinstance(event, Selection)]
    assert isinstance(events[-1], Unspent)
    assert len(noise) + len(apart) + len(choices) + 1 == len(events)
    assert len(apart) == len(tables.residuals)
    for event, table in zip(apart, tables.residuals, strict=True):
        assert event.features == tuple(names[i] for i in table.features)
        assert event.levels == tuple(tables.sizes[i] for i in table.features)
    total, *others = (event for event in noise if event.purpose not in MAP_PURPOSES)
    assert (total.features, total.levels, total.table_cells) == ((), (), 1)
    measured = (*tables.one_ways, *tables.blocks, *tables.extra)
    assert len(others) == len(measured)
    for event, table in zip(others, measured, strict=True):
        assert event.features == tuple(names[i] for i in table.features)
        assert event.table_cells == len(table.counts) == math.prod(event.levels)
        assert event.cells == 1
    sizes = tables.sizes
    for event, table in zip(others[len(names) :], measured[len(names) :], strict=True):
        assert event.levels == tuple(sizes[i] for i in table.features)
    for event, count in zip(others, WIDE.category_counts, strict=False):
        assert event.levels == (count,)


@pytest.mark.usefixtures("without_residuals")
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_choices_say_what_was_chosen_and_among_how_many(budget):
    model, events = released(budget)
    tables = model.content.released
    heads = [each for each in events if isinstance(each, Selection) and each.purpose == "heads"]
    order = [WIDE.names[i] for i in tables.order]
    # The first feature has nothing to be given, and nobody chooses it.
    told = {WIDE.names[table.features[1]] for table in tables.maps}
    assert [each.chosen[-1] for each in heads] == [name for name in order[1:] if name not in told]
    blocks = {block.features[-1]: block.features for block in tables.blocks}
    for each in heads:
        drawn = WIDE.index(each.chosen[-1])
        expected = blocks.get(drawn, (drawn,))
        assert each.chosen == tuple(WIDE.names[i] for i in expected)
        assert set(each.chosen[:-1]) <= set(order[: order.index(each.chosen[-1])])
        assert each.candidates >= 1
        assert each.among.startswith("blocks of a feature to draw next and up to 3")
    later = [
        each
        for each in events
        if isinstance(each, Selection) and each.purpose not in ("heads", "dependence")
    ]
    extra = [
        tuple(WIDE.names[i] for i in table.features) for table in (*tables.extra, *tables.residuals)
    ]
    assert sorted(each.chosen for each in later) == sorted(extra)
    assert all(each.purpose == "second round" and each.candidates for each in later)


def test_candidates_are_counted():
    """Two features: the second with the first as head, or alone."""
    schema = Schema(tuple(Feature(name, categories=("x", "y")) for name in "ab"), reviewed=True)
    _, events = released({"epsilon": 60.0}, schema=schema, data=pairs_of_two())
    (heads,) = (each for each in events if getattr(each, "purpose", "") == "heads")
    assert heads.candidates == 2
    (first, *_) = (each for each in events if getattr(each, "purpose", "") == "second round")
    assert (first.candidates, first.chosen) == (1, ("a", "b"))


def pairs_of_two():
    import polars as pl

    return pl.DataFrame({"a": ["x", "y", "x", "y"] * 20, "b": ["x", "y", "y", "y"] * 20})


def test_merged_levels_are_levels_and_not_categories():
    model, events = released({"epsilon": 0.5})
    sizes, counts = model.content.released.sizes, WIDE.category_counts
    assert any(size < count for size, count in zip(sizes, counts, strict=True))
    by_purpose = {
        purpose: [e for e in events if isinstance(e, NoisyCounts) and e.purpose == purpose]
        for purpose in ("marginals", "block", "table")
    }
    stated = {
        name: level
        for event in (*by_purpose["block"], *by_purpose["table"])
        for name, level in zip(event.features, event.levels, strict=True)
    }
    assert stated == {name: sizes[WIDE.index(name)] for name in stated}
    assert [event.levels[0] for event in by_purpose["marginals"]] == list(counts)


def test_public_shares_are_not_measured():
    """So no event is about them alone."""
    columns = list(WIDE.columns)
    columns[2] = Feature("b", categories=("p", "q"), shares=(0.7, 0.3))
    _, events = released({"epsilon": 5.0}, schema=Schema(tuple(columns), reviewed=True))
    alone = [e.features for e in events if getattr(e, "purpose", "") == "marginals"]
    assert alone == [("a",), ("many",), ("n",)]


@pytest.mark.parametrize("route", ["laplace", "gaussian"])
def test_a_filter_names_what_it_measures(route):
    delta = 1e-9 if route == "gaussian" else None
    budget_filter = PrivacyFilter(whole_of(2.0, delta), RandomStream(1), names=("age", "s\x1bex"))
    counts = np.zeros(6, dtype=np.int64)
    budget_filter.measure(counts, 0.1, purpose="block", features=(1, 0, 2), levels=(2, 3, 1))
    budget_filter.choose([4, 1], 0.1, purpose="heads", among="two", features_of=lambda i: (i,))
    noise, choice, _ = budget_filter.events
    assert noise.features == ("s\\u001bex", "age", "feature 3")
    assert (noise.levels, noise.table_cells, noise.cells) == ((2, 3, 1), 6, 1)
    assert (choice.candidates, choice.among) == (2, "two")
    assert choice.chosen in {("age",), ("s\\u001bex",)}
    with pytest.raises(ParameterError, match="one figure for each feature"):
        budget_filter.measure(counts, 0.1, purpose="block", features=(0,), levels=(2, 3))


def test_a_filter_that_is_told_nothing_costs_the_same():
    """What an event is about is not priced."""
    told, silent = (PrivacyFilter(whole_of(2.0), RandomStream(1), names=("a",)) for _ in range(2))
    counts = np.zeros(2, dtype=np.int64)
    told.measure(counts, 0.3, purpose="block", features=(0,), levels=(2,))
    told.choose([1, 2], 0.2, purpose="heads", among="both", features_of=lambda i: (i,))
    silent.measure(counts, 0.3, purpose="block")
    silent.choose([1, 2], 0.2, purpose="heads")
    assert told.left == silent.left
    assert told.events[-1] == silent.events[-1]


@pytest.mark.parametrize("budget", [{"epsilon": 900.0}, {"epsilon": 50.0, "delta": 1e-9}], ids=str)
def test_other_methods_name_their_features_too(budget):
    schema = contract_schema(rules=())
    ledger = synthesize(contract_table(), schema, rows=20, method="pegs", **budget).ledger
    (noise,) = (each for each in ledger.events if isinstance(each, NoisyCounts))
    assert noise.features == schema.names
    assert noise.levels == schema.category_counts
    assert (noise.cells, noise.table_cells) == (5, sum(schema.category_counts))
    (choice,) = (each for each in ledger.events if isinstance(each, Selection))
    assert choice.features == schema.names
    assert (choice.candidates, choice.count) == (4, 10)
    assert choice.among == "the other features, as heads"
