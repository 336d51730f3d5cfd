"""A schema that is changed and reviewed in Python."""

import datetime as dt

import pytest

from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.toml import dumps, loads

SCHEMA = Schema(
    (
        Feature("person", role="identifier"),
        Feature("visits", "ordinal", categories=("0", "1"), dtype="int64", unknown="category"),
        Feature("charge", "numeric", edges="private", lowest=0, decimals=2, dtype="double"),
        Feature("day", "date", edges="private", format="%d.%m.%Y"),
        Feature("ward", categories="private"),
    ),
    reviewed=True,
    reviewer="A. Nowak",
)


def changed(name, **changes):
    """Return a changed feature; the whole schema can be written and read again."""
    schema = SCHEMA.with_feature(name, **changes)
    assert loads(dumps(schema)) == schema
    assert not schema.reviewed
    assert [column for column in schema.columns if column.name != name] == [
        column for column in SCHEMA.columns if column.name != name
    ]
    return schema[name]


def test_a_listed_feature_may_be_measured():
    feature = changed("visits", edges="private", lowest=0)
    assert (feature.kind, feature.private_edges, feature.lowest) == ("numeric", True, 0)
    assert (feature.categories, feature.unknown, feature.dtype) == ((), "error", "int64")
    assert changed("visits", edges=(0, 1, 2)).edges == (0, 1, 2)


@pytest.mark.parametrize("name", ["charge", "day"])
def test_a_measured_feature_may_be_listed(name):
    feature = changed(name, categories=("a", "b"))
    assert (feature.kind, feature.private_edges, feature.decimals) == ("nominal", False, None)
    assert (feature.lowest, feature.format) == (None, "")
    assert changed(name, categories="private").private_categories
    assert changed(name, kind="ordinal", categories=("a", "b")).kind == "ordinal"


def test_listed_edges_and_categories_take_the_place_of_private_ones():
    assert not changed("charge", edges=(0, 1, 2)).private_edges
    assert changed("ward", categories=("a",)).categories == ("a",)


def test_a_dropped_column_that_is_described_is_modelled():
    assert changed("person", categories=("a", "b")).role == "other"
    assert changed("person", edges="private", role="sensitive").role == "sensitive"


def test_what_is_not_valid_is_refused():
    with pytest.raises(SchemaError, match="has no feature 'nobody'"):
        SCHEMA.with_feature("nobody", role="other")
    with pytest.raises(SchemaError, match="no property 'edge'"):
        SCHEMA.with_feature("visits", edge="private")
    with pytest.raises(SchemaError, match="visits"):
        SCHEMA.with_feature("visits", kind="numeric")


def test_a_review_is_stated_with_a_name():
    schema = SCHEMA.with_feature("visits", edges="private").reviewed_by(" B. Roth ")
    today = dt.datetime.now(tz=dt.UTC).date()
    assert (schema.reviewed, schema.reviewer) == (True, "B. Roth")
    assert dt.date.fromisoformat(schema.reviewed_on) >= today - dt.timedelta(days=1)
    assert 'reviewed_by = "B. Roth"' in dumps(schema)
    assert loads(dumps(schema)) == schema
    assert SCHEMA.reviewed_by("B", on=dt.date(2026, 3, 1)).reviewed_on == "2026-03-01"
    for name in ("", "  ", None):
        with pytest.raises(SchemaError, match="name of a person"):
            SCHEMA.reviewed_by(name)
