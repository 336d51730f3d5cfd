"""Nothing outside public bounds is ever written, however values were drawn (R21, R24)."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pegsynth
from pegsynth.codec.codec import Decoder, decode, encode
from pegsynth.codec.measured_numbers import settle
from pegsynth.codec.measured_rows import count_grid
from pegsynth.codec.number_grid import grid_schema
from pegsynth.codec.tree import exact_tree
from pegsynth.options import Publication
from pegsynth.publishing.policy import Policy
from pegsynth.schema import Feature, Schema
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.toml import dumps, loads

EXTREMES = (0.0, 1.0, 2.5, 5e-324, 1e15, 2.0**53, 2.0**62, 9.2e18, 1.8e19, 1e300, 1.7e308)
TYPES = ("", "int8", "uint8", "int64", "uint64", "double", "float", "string")


def words_for(decoder, codes):
    size = decoder.words_needed(len(codes))
    return np.random.default_rng(size).integers(1 << 64, size=size, dtype=np.uint64)


def drawn(feature, codes, **told):
    """Return a column of values of codes."""
    schema = Schema((feature,))
    decoder = Decoder(schema, **told)
    return decoder.decode(codes[:, None], words_for(decoder, codes)).to_series()


def all_codes(feature, times=30):
    schema = Schema((feature,))
    return np.tile(np.arange(feature.bin_count, dtype=schema.code_dtype), times)


@st.composite
def listed(draw):
    """Draw a numeric feature with listed edges, and bounds as far out as floats go."""
    dtype = draw(st.sampled_from(TYPES))
    signed = st.sampled_from([sign * each for sign in (-1.0, 1.0) for each in EXTREMES])
    near = st.floats(-1e6, 1e6).map(lambda each: round(each, 3))
    edges = draw(st.lists(st.one_of(signed, near), min_size=2, max_size=5, unique=True).map(sorted))
    if "int" in dtype:
        edges = sorted({float(round(edge)) for edge in edges})
    assume(len(edges) > 1 and edges[0] < edges[1])
    said = {"edges": tuple(edges), "dtype": dtype}
    if draw(st.booleans()):
        highest = draw(st.sampled_from([edges[-2], edges[-2] / 2 + edges[-1] / 2, edges[-1]]))
        said["highest"] = float(round(highest)) if "int" in dtype else highest
        assume(said["highest"] >= edges[-2])
    if "int" not in dtype and draw(st.booleans()):
        said["decimals"] = draw(st.integers(0, 15))
    if draw(st.booleans()):
        said["recoding"] = Recoding(round=draw(st.sampled_from([0.1, 1.0, 5.0, 1e6])))
    if draw(st.booleans()):
        said["missing"] = ("0", "1", "")
    return Feature("x", kind="numeric", **said)


@given(listed())
@settings(max_examples=300)
def test_numbers_lie_between_listed_edges(feature):
    with np.errstate(all="raise", under="ignore"):
        values = drawn(feature, all_codes(feature)).cast(pl.Float64)
    low, high = feature.edges[0], feature.closed_edges[-1]
    assert values.is_between(low, high).all()


WHOLE = {"kind": "numeric", "dtype": "int64"}
HOURS = {"kind": "datetime", "resolution": "hour"}
MEASURED = {
    "number": ({"kind": "numeric"}, 0.5, 119.7),
    "whole number": (WHOLE, 0, 120),
    "small type": ({"kind": "numeric", "dtype": "uint8"}, 0, 255),
    "negative": (WHOLE, -120, -3),
    "years": (WHOLE, 1990, 2008),
    "decimals": ({"kind": "numeric", "decimals": 2}, 0.005, 99.995),
    "rounded": ({"kind": "numeric", "recoding": Recoding(round=0.5)}, 0.0, 10.5),
    "topped": ({"kind": "numeric", "recoding": Recoding(top=90, bottom=18)}, 18, 90),
    "date": ({"kind": "date"}, dt.date(2000, 1, 1), dt.date(2008, 12, 31)),
    "moment": (HOURS, dt.datetime(2008, 1, 1), dt.datetime(2008, 12, 31, 23)),
    "time": ({"kind": "time"}, dt.time(), dt.time(23, 59, 59)),
    "length": ({"kind": "duration", "resolution": "day"}, 0, 365),
}


def beyond(name):
    """Return values inside the bounds of a feature, many at both ends, and some beyond."""
    said, low, high = MEASURED[name]
    if said["kind"] in ("date", "datetime"):
        step = dt.timedelta(days=200)
        return pl.Series("x", [low, low + step, high, high, high, high + step, low - step] * 30)
    if said["kind"] == "time":
        return pl.Series("x", [low, dt.time(12), high, high, high] * 30)
    if said["kind"] == "duration":
        days = (low, 30, high, high, high, high * 2)
        return pl.Series("x", [dt.timedelta(days=each) for each in days] * 30)
    kind = pl.Int64 if said.get("dtype") else pl.Float64
    middle = (low + high) // 2
    return pl.Series(
        "x", [low, middle, high, high, high, abs(high) * 10, -1e6] * 30, dtype=pl.Float64
    ).cast(kind)


@pytest.mark.parametrize("inside", [None, "uniform"])
@pytest.mark.parametrize("name", MEASURED)
def test_measured_edges_end_at_the_stated_bounds(name, inside):
    said, low, high = MEASURED[name]
    stated = {} if name in ("topped", "time") else {"lowest": low, "highest": high}
    feature = Feature("x", edges="private", inside=inside, **said, **stated)
    schema = Schema((feature,), reviewed=True)
    frame = beyond(name).to_frame()
    counts = count_grid([encode(frame, grid_schema(schema))], grid_schema(schema))
    settled = settle(schema, {"x": exact_tree(counts["x"], feature)}, 6)
    book = settled.schema
    assert loads(dumps(book)) == book
    codes = all_codes(book["x"], 200)
    shown = {"date": dt.date, "datetime": dt.datetime, "time": dt.time}.get(said["kind"])
    for shapes in (settled.shapes, {}):
        values = drawn(book["x"], codes, shapes=shapes, dtypes={"x": frame["x"].dtype})
        if values.dtype == pl.String and shown is not None:
            values = pl.Series([shown.fromisoformat(each) for each in values])
        if said["kind"] == "duration":
            low, high = dt.timedelta(days=0), dt.timedelta(days=365)
            values = values.cast(pl.Duration("us"))
        assert low <= values.min()
        assert values.max() <= high
        # The highest value is one that many rows have, and it is still drawn.
        if "round" not in name and name not in ("number", "decimals", "topped"):
            assert values.max() == high
    if said["kind"] == "numeric":
        ends = [
            float(each) for label in book["x"].labels for each in re.findall(r"-?[\d.]+", label)
        ]
        assert low <= min(ends)
        assert max(ends) <= high


def test_rounding_stays_within_bounds_and_leaves_codes_for_missing_values_alone():
    feature = Feature(
        "x", kind="numeric", edges=(3.0, 50.0, 97.0), dtype="int64", not_applicable=("-9",)
    )
    frame = pl.DataFrame({"x": [3, 4, 55, 96, 97, -9]})
    schema = Schema((feature,))
    policy = Policy.of(Publication(round_to={"x": 10})).settled(schema)
    (found,) = policy.applied(iter([frame]), schema, None)
    assert found["x"].to_list() == [10, 10, 60, 90, 90, -9]


def test_bounds_that_hold_no_number_are_refused():
    with pytest.raises(pegsynth.errors.SchemaError, match="no number with 1 decimals"):
        Feature("x", kind="numeric", edges="private", decimals=1, lowest=0.11, highest=0.19)
    with pytest.raises(pegsynth.errors.SchemaError, match="below the last bin"):
        Feature("x", kind="numeric", edges=(0.0, 10.0, 20.0), highest=5.0)


def test_a_bin_of_the_highest_number_alone_is_read_back():
    feature = Feature("x", kind="numeric", edges=(0.0, 90.0, 91.0), highest=90.0, dtype="int64")
    schema = Schema((feature,))
    assert feature.labels == ("[0, 90)", "90")
    values = drawn(feature, all_codes(feature))
    assert set(values[1::2]) == {90}
    assert encode(values.to_frame(), schema)[:, 0].tolist() == all_codes(feature).tolist()
    labels = decode(all_codes(feature)[:, None], schema, how="labels")
    assert encode(labels, schema)[:, 0].tolist() == all_codes(feature).tolist()
    changed = schema.with_feature("x", edges=(0.0, 50.0))
    assert changed["x"].highest is None
    assert replace(feature, highest=None).labels[-1] == "[90, 91]"
