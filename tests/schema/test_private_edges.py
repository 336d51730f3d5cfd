"""Features whose edges a release measures: the file, the schema, and who must refuse it (R21)."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.codec import encode
from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.toml import dumps, loads

HEAD = 'format = 1\n[[features]]\nname = "pay"\nkind = "numeric"\n'
SEX = Feature("sex", categories=("f", "m"))
PAY = Feature("pay", kind="numeric", edges="private", missing=("",), dtype="int64")


@given(
    st.none() | st.integers(-1000, 0),
    st.none() | st.integers(1, 10**9),
    st.none() | st.integers(2, 1000),
    st.sampled_from([None, "measured", "uniform"]),
    st.none() | st.integers(0, 15),
)
def test_what_is_written_is_read_back(lowest, highest, bins, inside, decimals):
    feature = Feature(
        "pay",
        kind="numeric",
        edges="private",
        lowest=lowest,
        highest=highest,
        bins=bins,
        inside=inside,
        decimals=decimals,
    )
    schema = Schema((SEX, feature), reviewed=True)
    assert loads(dumps(schema)) == schema


def test_public_edges_keep_a_shape_and_decimals():
    schema = loads(HEAD + 'edges = [0, 10]\ninside = "measured"\ndecimals = 2\n')
    pay = schema["pay"]
    assert (pay.edges, pay.inside, pay.decimals, pay.private_edges) == ((0, 10), "measured", 2, 0)
    assert loads(dumps(schema)) == schema


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("bins = 12", 'requires edges = "private"'),
        ("edges = [0, 1]\nbins = 12", 'requires edges = "private"'),
        ('edges = "secret"', 'or "private"'),
        ('edges = "private"\nbins = true', "whole number"),
        ('edges = "private"\nbins = 1.5', "whole number"),
        ('edges = "private"\nbins = { lowest = 0, highest = 1, count = 2 }', "whole number"),
        ('edges = "private"\nlowest = inf', "finite"),
        ('edges = "private"\nhighest = "top"', "numbers"),
        ('edges = "private"\nlowest = 5\nhighest = 2', "less than highest"),
        ('edges = "private"\ninside = 3', "text"),
        ('edges = "private"\ninside = "normal"', "measured"),
        ('edges = "private"\ndecimals = 2.5', "whole number"),
        ('edges = "private"\nbin = 3', "did you mean"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(lines, word):
    with pytest.raises(SchemaError, match=word) as caught:
        loads(HEAD + lines)
    assert "pay" in str(caught.value)


def test_an_unsettled_schema_has_no_codes():
    schema = Schema((SEX, PAY), reviewed=True)
    assert schema.unsettled == ("pay",)
    with pytest.raises(SchemaError, match=r"'pay'.*private.*list its edges"):
        _ = schema.category_counts
    with pytest.raises(SchemaError, match="private"):
        encode(pl.DataFrame({"sex": ["f"], "pay": [1]}), schema)
    assert "private" in repr(schema)


def test_listed_edges_take_the_place_of_private_ones_and_the_reverse():
    schema = Schema((SEX, PAY), reviewed=True).with_feature("pay", bins=9)
    assert schema.reviewed  # how many bins is no claim about anybody
    listed = schema.with_feature("pay", edges=(0.0, 5.0))
    assert (listed["pay"].edges, listed["pay"].bins, listed.unsettled) == ((0, 5), None, ())
    assert not listed.reviewed
    assert listed.with_feature("pay", edges="private").unsettled == ("pay",)


def test_rules_may_name_what_is_known_and_no_range():
    rule = Rule.forbid({"sex": "m", "pay": "(missing)"})
    assert Schema((SEX, PAY), rules=(rule,)).rules[0].forbidden[1] == (1, frozenset({0}))
    table = dumps(Schema((SEX, PAY)))
    rule_text = '\n[[rules]]\nforbid = { sex = ["m"], pay = { at_least = 5 } }\n'
    with pytest.raises(SchemaError, match="edges are private"):
        loads(table + rule_text)
