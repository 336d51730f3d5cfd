"""Times that are added up stay within the public bounds of the time (R24)."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest

import pegsynth
from lanes import longer
from pegsynth.codec.codec import Decoder
from pegsynth.codec.unfolding import Unfolding
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel
from pegsynth.schema.wide_schema import long_schema, wide_schema

FIRST, LAST = dt.date(2000, 1, 1), dt.date(2008, 12, 31)
MOMENT = dt.datetime(2008, 12, 31, 23)
LISTED = {
    "date": ({"kind": "date", "edges": "year", "lowest": FIRST, "highest": LAST}, LAST),
    "written date": (
        {"kind": "date", "edges": "year", "lowest": FIRST, "highest": LAST, "format": "%d.%m.%Y"},
        LAST,
    ),
    "moment": (
        {
            **{"kind": "datetime", "resolution": "hour", "edges": "month"},
            **{"lowest": dt.datetime(2008, 1, 1), "highest": MOMENT},
        },
        MOMENT,
    ),
    "year": ({"kind": "numeric", "dtype": "int64", "edges": (1990.0, 2000.0, 2008.0)}, 2008),
    "age": ({"kind": "numeric", "edges": (0.0, 40.0, 119.7), "decimals": 1}, 119.7),
    "narrow age": ({"kind": "numeric", "edges": (0.1, 0.2, 0.3), "dtype": "float"}, 0.3),
    "far": ({"kind": "numeric", "dtype": "int64", "edges": (-9e18, 0.0, 9e18)}, 9 * 10**18),
    "measured": (
        {"kind": "numeric", "dtype": "int64", "edges": (1990.0, 1995.0, 1996.0), "highest": 2008},
        2008,
    ),
}
TYPES = {
    "date": [pl.Date(), pl.Datetime("ns"), pl.String()],
    "moment": [pl.Datetime("us"), pl.Datetime("ms", "Asia/Tokyo"), pl.String()],
    "written date": [pl.String()],
}
NUMBERS = [None, pl.String()]


def book(said, most=3, **panel):
    return Schema(
        (
            Feature("person", role="identifier"),
            Feature("sex", categories=("f", "m")),
            Feature("when", missing=("",), **said),
            Feature("state", categories=("a", "b"), missing=("",)),
        ),
        panel=Panel("person", "when", most, ("sex",), **panel),
        reviewed=True,
    )


def numbers_of(times, schema, name="when"):
    """Return times as the numbers that their feature counts."""
    if times.dtype.is_numeric():
        return times.cast(pl.Float64)
    feature = schema[name]
    if feature.kind == "numeric":
        return times.cast(pl.Float64)
    from pegsynth.codec.encoding import moments_of
    from pegsynth.schema.date_text import DateText

    return pl.Series(moments_of(DateText(feature), times)).fill_nan(None)


def decoded(schema, dtype, how=1000):
    """Return wide rows of all codes of the times, and words that draw the last of every bin."""
    wide = wide_schema(schema)
    rng = np.random.default_rng(1)
    names = [name for name in wide.names if name.startswith("when")]
    known = [range(wide[name].bin_count) for name in names]
    times = np.array(list(itertools.product(*known)))
    codes = np.zeros((len(times), len(wide.names)), dtype=wide.code_dtype)
    codes[:, wide.index("person_rows")] = wide["person_rows"].bin_count - 1
    for place, name in enumerate(names):
        codes[:, wide.index(name)] = times[:, place]
    decoder = Decoder(wide, dtypes={} if dtype is None else dict.fromkeys(names, dtype))
    size = decoder.words_needed(len(codes))
    words = rng.integers(1 << 64, size=size, dtype=np.uint64)
    words[::2] = (1 << 64) - 1
    return decoder.decode(codes, words)


@pytest.mark.parametrize("name", LISTED)
def test_added_times_are_held_at_the_highest(name):
    said, highest = LISTED[name]
    schema = book(said)
    low, high = schema["when"].public_bounds
    for dtype in TYPES.get(name, NUMBERS):
        frame = decoded(schema, dtype)
        rows = Unfolding(wide_schema(schema)).rows(frame)
        times = numbers_of(rows["when"], schema)
        assert times.null_count() == 0
        assert times.is_between(low, high).all()
        assert times.max() == numbers_of(pl.Series([highest]), schema)[0] or name == "narrow age"
        # Nothing runs backwards where a time is held.
        back = rows.with_columns(when=times).group_by("person").agg(pl.col("when").diff().min())
        assert back["when"].min() >= 0
        if schema["when"].kind != "numeric":
            # One row for each person has dates, too.
            for position in (2, 3):
                later = numbers_of(frame[f"when_{position}"], schema)
                assert later.is_between(low, high).all()


def test_a_date_counted_from_a_held_time_keeps_its_difference():
    left = Feature("left", kind="date", after="when", edges=(0, 1, 10), missing=("",))
    schema = book(LISTED["date"][0])
    schema = Schema((*schema.columns, left), panel=schema.panel, reviewed=True)
    rows = Unfolding(wide_schema(schema)).rows(decoded(schema, None))
    when, left = (numbers_of(rows[name], schema) for name in ("when", "left"))
    assert ((left - when) == 0).all()
    assert when.max() == schema["when"].edges[-1]


@pytest.fixture(scope="module")
def cohort():
    """Return people who come between 1990 and 1995 and are seen until 2008."""
    rng = np.random.default_rng(5)
    lines = []
    for person in range(300):
        year = int(rng.integers(1990, 1996))
        for _ in range(rng.integers(1, 4)):
            state = str(rng.choice(["a", "b", ""]))
            lines.append((f"p{person}", "fm"[person % 2], year, state))
            year = min(year + int(rng.integers(3, 9)), 2008)
    frame = pl.DataFrame(lines, schema=["person", "sex", "when", "state"], orient="row")
    return frame.with_columns(pl.col("state").replace("", None))


ONCE = {"method": "pegs-once", "epsilon": 30.0, "delta": 1e-9, "rows": 400, "progress": False}


# The short form has every two of the three together.
@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize(
    ("kind", "stated", "transitions"),
    [
        ("numeric", True, "folded"),
        ("numeric", False, "pooled"),
        ("date", True, "pooled"),
        ("date", False, "folded"),
        longer("numeric", True, "pooled"),
        longer("numeric", False, "folded"),
        longer("date", True, "folded"),
        longer("date", False, "pooled"),
    ],
)
def test_measured_times_end_at_the_stated_highest(cohort, kind, stated, transitions):
    frame, bounds = cohort, {"lowest": 1990, "highest": 2008}
    if kind == "date":
        frame = cohort.with_columns(when=pl.date(pl.col("when"), 7, 1))
        bounds = {"lowest": dt.date(1990, 1, 1), "highest": LAST}
    said = {"kind": kind, "edges": "private", **(bounds if stated else {})}
    if kind == "numeric":
        said["dtype"] = "int64"
    schema = book(said, transitions=transitions)
    release = pegsynth.synthesize(frame, schema, complete=True, **ONCE)
    for made in (release.frames[0], release.completed[0][0]):
        assert not stated or made["when"].max() <= bounds["highest"]
        years = made["when"] if kind == "numeric" else made["when"].dt.year()
        # The last edge is that of first rows, which end in 1995: later rows go on.
        assert 1996 < years.quantile(0.8) < 2008
    assert long_schema(wide_schema(release.schema)) == release.schema
