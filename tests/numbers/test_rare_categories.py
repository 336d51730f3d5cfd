"""Rare categories: merged by noisy counts, read the same way afterwards, paid for (R31)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.auditing.measured_codecs import number_cases, settled_by_tree
from pegsynth.auditing.paths import audit_paths
from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.codec.levels import merged_rare, rare_grid
from pegsynth.codec.measured_numbers import Settled
from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.privacy import NoisyCounts
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import RARE_LABEL, Recoding

PAID = Recoding(rare="paid")
TOWNS = tuple(f"t{number:03}" for number in range(120))


def feature(**told):
    return Feature("x", categories=tuple("abcdef"), missing=("",), **{"recoding": PAID, **told})


def counts(*numbers):
    return np.array(numbers, dtype=np.int64)


def test_small_categories_become_one_and_rows_are_read_so():
    found = merged_rare(feature(), counts(100, 3, 90, -5, 80, 1, 0), 5.0)
    assert set(found.categories) == {"a", "c", "e", RARE_LABEL}
    assert found.recoding.rare is None
    codes = ColumnEncoder(found).encode(pl.Series(["a", "b", "d", "f", RARE_LABEL, None]))
    rare = found.categories.index(RARE_LABEL)
    assert codes.tolist() == [found.categories.index("a"), *[rare] * 4, found.missing_code]


def test_nothing_is_merged_where_at_most_one_is_small():
    assert merged_rare(feature(), counts(*[100] * 5, 0, 0), 5.0).categories == tuple("abcdef")


def test_what_belongs_together_merges_first_and_is_called_so():
    tree = Hierarchy.of({"a": "A", "b": "A", "c": "A", "d": "D", "e": "D", "f": "D"})
    told = feature(recoding=Recoding(rare="paid", hierarchy=tree, level=0))
    found = merged_rare(told, counts(100, 15, 15, 100, 1, 1, 0), 5.0)
    assert set(found.categories) == {"a", "A (rare)", "d", "D (rare)"}


def test_neighbours_of_an_ordinal_feature_merge():
    found = merged_rare(feature(kind="ordinal"), counts(9, 9, 9, 100, 9, 15, 0), 5.0)
    assert found.categories == ("a to c", "d", "e to f")


def test_groups_that_are_rare_take_their_values_with_them():
    told = feature(recoding=Recoding(rare="paid", groups={"g": ("a", "b")}))
    found = merged_rare(told, counts(1, 1, 100, 100, 100, 0), 5.0)
    codes = ColumnEncoder(found).encode(pl.Series(["a", "b", "g", "c"]))
    assert len(set(codes.tolist()[:3])) == 1
    assert rare_grid(told).categories == told.categories


@pytest.mark.parametrize(
    "case", [c for c in number_cases() if "rare" in c.name], ids=lambda case: case.name
)
def test_the_audit_holds_and_finds_merging_by_true_counts(case):
    assert audit_paths(case).holds(case.stated)

    def by_true_counts(schema, trees, exact):
        (level,) = trees["x"].levels
        return Settled(Schema((merged_rare(schema["x"], exact, level.deviation),)), {})

    assert case.settle is settled_by_tree
    assert not audit_paths(replace(case, settle=by_true_counts)).holds(case.stated)


def table(rows=8_000):
    words = np.random.default_rng(4)
    town = np.minimum(words.geometric(0.15, rows) - 1, 119)
    return pl.DataFrame(
        {"town": [TOWNS[t] for t in town], "sex": [["f", "m"][t % 2] for t in town]}
    )


SCHEMA = Schema(
    (Feature("town", categories=TOWNS, recoding=PAID), Feature("sex", categories=("f", "m"))),
    reviewed=True,
)


@pytest.mark.parametrize("method", ["pegs-once", "pegs-capped", "marginal"])
def test_every_method_pays_for_it_out_of_the_whole(method):
    release = pegsynth.synthesize(table(), SCHEMA, method=method, epsilon=1.0, delta=1e-9, rows=500)
    (frame,) = release.frames
    book = release.schema
    assert set(frame["town"]) <= set(book["town"].categories)
    assert RARE_LABEL in book["town"].categories
    assert 5 < len(book["town"].categories) < 60
    events = [
        e for e in release.ledger.events if isinstance(e, NoisyCounts) and e.purpose == "rare"
    ]
    assert [(list(e.features), list(e.levels)) for e in events] == [(["town"], [120])]
    assert release.ledger.guarantee.epsilon <= 1.0
    assert "public-recodings" not in {each.code for each in release.ledger.assumptions}


def test_a_saved_model_knows_what_was_merged(tmp_path):
    model = pegsynth.fit(table(), SCHEMA, method="pegs-once", epsilon=1.0, delta=1e-9)
    model.save(tmp_path / "m.pegs")
    loaded = pegsynth.load(tmp_path / "m.pegs")
    assert RARE_LABEL in set(loaded.sample(3_000)["town"])


def test_without_a_whole_epsilon_it_is_refused():
    with pytest.raises(BudgetError, match="rare categories are merged by noisy counts"):
        pegsynth.synthesize("none.csv", SCHEMA, method="pegs", epsilon_per_row=1.0, rows=5)
    with pytest.raises((BudgetError, ParameterError)):
        pegsynth.fit("none.csv", SCHEMA, method="pegs")


def test_what_rules_details_and_shares_speak_of_is_not_merged():
    with pytest.raises(SchemaError, match="could merge"):
        replace(SCHEMA, rules=(Rule.of({0: [1], 1: [0]}),))
    with pytest.raises(SchemaError, match="neither with public shares"):
        feature(shares=(0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4))
