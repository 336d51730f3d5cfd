"""Features of dates and times: numbers, texts, the schema file, doors, codes and back (R30)."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec.codec import decode, encode
from pegsynth.errors import DataError, SchemaError
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import marks, moment, moment_text, stepped, weekdays
from pegsynth.schema.date_text import DateText
from pegsynth.schema.toml import dumps, loads

DAYS = st.dates(dt.date(1, 1, 1), dt.date(9998, 12, 31))
NEAR = st.dates(dt.date(2019, 11, 1), dt.date(2022, 2, 28))
STAMPS = st.datetimes(dt.datetime(1902, 1, 1), dt.datetime(2200, 1, 1))
FORMATS = ("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y", "%Y-%d-%m")
HEAD = 'format = 1\n[[features]]\nname = "day"\nkind = "date"\n'


def words(count, seed="dates"):
    return RandomStream(seed).substream().take(count)


@given(DAYS, STAMPS, st.times().map(lambda each: each.replace(microsecond=0)))
def test_moments_are_numbers_and_back(day, stamp, clock):
    stamp = stamp.replace(microsecond=0)
    for kind, resolution, value in (
        ("date", "day", day),
        ("datetime", "second", stamp),
        ("time", "second", clock),
    ):
        number = moment(kind, resolution, value)
        assert number == moment(kind, resolution, value.isoformat())
        assert moment_text(kind, resolution, number) == value.isoformat()
    assert moment("date", "day", day) == (day - dt.date(1970, 1, 1)).days


@given(NEAR, NEAR, st.sampled_from(["year", "quarter", "month", "week", "day"]))
def test_steps_begin_where_the_calendar_says(low, high, step):
    first, last = sorted((moment("date", "day", low), moment("date", "day", high)))
    found = marks(step, "day", first, last)
    starts = {
        "year": lambda day: (day.month, day.day) == (1, 1),
        "quarter": lambda day: day.month in (1, 4, 7, 10) and day.day == 1,
        "month": lambda day: day.day == 1,
        "week": lambda day: day.weekday() == 0,
        "day": lambda day: True,
    }[step]
    numbers = range(int(first) + 1, int(last))
    days = {number: dt.date(1970, 1, 1) + dt.timedelta(number) for number in numbers}
    assert found.tolist() == [number for number, day in days.items() if starts(day)]
    weekly = weekdays(np.array(list(numbers), dtype=np.int64), "day")
    assert weekly.tolist() == [day.weekday() for day in days.values()]


def test_steps_are_cut_at_the_bounds():
    feature = Feature("day", kind="date", edges="month", lowest="2020-01-15", highest="2020-03-31")
    assert feature.labels == (
        "[2020-01-15, 2020-02-01)",
        "[2020-02-01, 2020-03-01)",
        "[2020-03-01, 2020-03-31]",
    )
    assert stepped("time", "second", "hour", 0.0, 7200.0) == (0.0, 3600.0, 7200.0)


@given(DAYS.filter(lambda day: day.year >= 1000), st.sampled_from(FORMATS), st.data())
def test_texts_say_what_the_standard_library_reads(day, form, data):
    text = day.strftime(form)
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(text) - 1))
        text = text[:place] + data.draw(st.sampled_from("0123456789x. /")) + text[place + 1 :]
    reader = DateText(Feature("x", kind="date", format=form, edges="private"))
    found = reader.number(text)
    try:
        expected = (dt.datetime.strptime(text, form).date() - dt.date(1970, 1, 1)).days
    except ValueError:
        # The library does not take spaces around a date, and takes some within.
        shape = re.fullmatch(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*", text)
        assert found is None or shape or text != text.strip()
        return
    assert found == expected or (found is None and re.search(r"\s", text))


@pytest.mark.parametrize(
    "text",
    [
        *("2021-02-29", "2021-02-30", "2021-13-01", "2021-00-10", "2021-01-00", "0000-01-01"),
        *(
            "21-01-01",
            "2021-1-1",
            "2021-01-01T24:00:00",
            "2021-01-01T12:60",
            "today",
            "12021-01-01",
        ),
        *("2021-01-01T00:00:00+1", "2021-01-01T00:00:00+24:00", "2021-01-01T00:00:00+01:60"),
        *("2021-01-01T00:00:00 Z+01", "2021-01-01Z", "\u0662021-01-01", "20210101"),
    ],
)
def test_what_is_no_date_has_no_number(text):
    assert DateText(Feature("x", kind="date", edges="private")).number(text) is None
    table = pl.DataFrame({"day": ["2020-05-05", text]})
    schema = Schema((Feature("day", kind="date", edges=("2020-01-01", "2021-01-01")),))
    with pytest.raises(DataError) as caught:
        encode(table, schema)
    message = str(caught.value)
    assert message.startswith("the table: column 'day': 1 value is not a date that exists")
    assert "unknown" in message
    assert text not in message
    other = schema.with_feature("day", unknown="category")
    assert encode(table, other).tolist() == [[0], [1]]


OFFSETS = st.sampled_from(
    [
        *(("Z", 0), ("z", 0), (" Z", 0), ("+00", 0), ("+02:00", 7200), ("-0930", -34_200)),
        *(("-23:59", -86_340), ("+01", 3600), (" +0530", 19_800)),
    ]
)


@given(st.lists(st.tuples(STAMPS, OFFSETS), min_size=1))
def test_offsets_are_read_past_or_counted_row_by_row(rows):
    stamps = [stamp.replace(microsecond=0).isoformat() for stamp, _ in rows]
    texts = [stamp + mark for stamp, (_, (mark, _)) in zip(stamps, rows, strict=True)]
    clocks = DateText(Feature("x", kind="datetime", edges="private"))
    form = "%Y-%m-%dT%H:%M:%S%z"
    moments = DateText(Feature("x", kind="datetime", edges="private", format=form))
    for reader in (clocks, moments):
        # What is read of a row is what is read of it alone.
        alone = [reader.number(text) for text in texts]
        assert reader.numbers(pl.Series(texts)).to_list() == alone
    for stamp, (_, (mark, ahead)), text in zip(stamps, rows, texts, strict=True):
        shown = clocks.number(stamp)
        assert clocks.number(text) == shown
        assert moments.number(text) == shown - ahead
        # Parts of a second have no place in the format; ISO text has one, and an offset, too.
        assert moments.number(f"{stamp}.25{mark}") == shown - ahead


def test_moments_are_written_in_utc_and_a_shared_offset_as_it_was():
    texts = pl.Series(["2017-07-01T01:30:00+02:00", "2017-07-01T01:30:00Z"])
    form = "%Y-%m-%dT%H:%M:%S%z"
    moments = DateText(Feature("x", kind="datetime", edges="private", format=form))
    written = moments.written(moments.numbers(texts).cast(pl.Int64))
    assert written.to_list() == ["2017-06-30T23:30:00Z", "2017-07-01T01:30:00Z"]
    same = DateText(Feature("x", "datetime", edges="private", format="%Y-%m-%d %H:%M:%S+02:00"))
    kept = same.written(same.numbers(pl.Series(["2017-07-01 01:30:00+02:00"])).cast(pl.Int64))
    assert kept.to_list() == ["2017-07-01 01:30:00+02:00"]


@given(st.lists(STAMPS | st.none(), min_size=1), st.sampled_from(["ms", "us", "ns"]))
def test_every_door_reads_the_same_day(values, unit):
    edges = ("1950-01-01", "1999-12-31", "2000-02-29", "2050-06-01", "2100-01-01")
    features = {
        "date": Feature("x", kind="date", edges=edges, missing=("", "2050-06-02")),
        "datetime": Feature("x", kind="datetime", edges=edges, missing=("", "2050-06-02")),
    }
    typed = pl.Series("x", values, dtype=pl.Datetime("us"))
    days = typed.dt.date()
    form = "%d.%m.%Y"
    for kind, feature in features.items():
        schema = Schema((feature,))
        expected = encode(typed.to_frame(), schema)
        doors = [typed.cast(pl.Datetime(unit)), typed.dt.to_string("%Y-%m-%dT%H:%M:%S%.f")]
        doors.append(typed.dt.replace_time_zone("UTC"))
        if kind == "date":
            doors += [days, days.cast(pl.String), days.cast(pl.Datetime(unit))]
            written = Schema(
                (Feature("x", "date", edges=edges, missing=("", "02.06.2050"), format=form),)
            )
            text = days.dt.to_string(form).to_frame()
            assert (encode(text, written) == expected).all()
            assert (encode(days.to_frame(), written) == expected).all()
        for door in doors:
            assert (encode(door.to_frame(), schema) == expected).all()


KINDS = st.sampled_from(
    [
        ("date", ["2019-12-30", "2020-01-01", "2020-02-29", "2020-03-01", "2024-01-01"], FORMATS),
        (
            "datetime",
            ["2020-01-01T00:00:00", "2020-01-01T00:00:01", "2020-03-29T02:30:00", "2021-01-01"],
            ("%d.%m.%Y %H:%M:%S", "%Y%m%d%H%M%S"),
        ),
        ("time", ["00:00:00", "06:30:00", "06:30:01", "24:00:00"], ("%H.%M.%S",)),
        ("duration", [-5, 0, 1, 90_000, 10**7], ()),
    ]
)
TYPES = {
    "date": [pl.Date(), pl.Datetime("ms"), pl.String()],
    "datetime": [pl.Datetime("us"), pl.Datetime("us", "Europe/Berlin"), pl.String()],
    "time": [pl.Time(), pl.String()],
    "duration": [pl.Duration("us"), pl.Duration("ns"), pl.String()],
}


@settings(max_examples=200)
@given(KINDS, st.data())
def test_codes_decode_to_values_that_read_back_as_the_same_codes(described, data):
    kind, edges, formats = described
    form = data.draw(st.sampled_from(("", *formats)))
    taken = {"date": "2020-02-02", "datetime": "2020-02-02", "time": "06:30:01"}.get(kind, "n/a")
    feature = Feature(
        "x",
        kind=kind,
        edges=tuple(edges),
        format=form,
        missing=data.draw(st.sampled_from([(), ("",), ("", taken)])),
        not_applicable=data.draw(st.sampled_from([(), ("never",)])),
        unknown=data.draw(st.sampled_from(["error", "category"])),
    )
    schema = Schema((feature,))
    assert loads(dumps(schema)) == schema
    dtype = data.draw(st.sampled_from(TYPES[kind]))
    allowed = list(range(feature.category_count))
    if not feature.missing and feature.unknown_code is not None and dtype != pl.String:
        allowed.remove(feature.unknown_code)
    if feature.missing and feature.unknown_code is not None:
        # A typed column has null for both.
        allowed.remove(feature.unknown_code)
    codes = np.array(data.draw(st.lists(st.sampled_from(allowed), min_size=1)))[:, None]
    codes = codes.astype(schema.code_dtype)
    frame = decode(codes, schema, words(len(codes)), dtypes={"x": dtype})
    expected = pl.String() if feature.not_applicable else dtype
    assert frame.schema["x"] == expected
    assert (encode(frame, schema) == codes).all()
    labels = decode(codes, schema, how="labels")
    assert (encode(labels, schema) == codes).all()


def test_clocks_that_are_set_forward_leave_no_gap():
    edges = ("2020-03-29T02:00:00", "2020-03-29T03:00:00", "2020-03-29T04:00:00")
    schema = Schema((Feature("x", kind="datetime", edges=edges),))
    codes = np.zeros((50, 1), dtype=np.uint8)
    frame = decode(codes, schema, words(50), dtypes={"x": pl.Datetime("us", "Europe/Berlin")})
    assert frame["x"].null_count() == 0


def test_whole_numbers_that_spell_dates_stay_whole_numbers():
    schema = Schema((Feature("x", "date", edges=("2020-01-01", "2021-01-01"), format="%Y%m%d"),))
    table = pl.DataFrame({"x": [20200131, 20200630]})
    codes = encode(table, schema)
    frame = decode(codes, schema, words(2), dtypes={"x": pl.Int64()})
    assert frame.schema["x"] == pl.Int64
    assert frame["x"].is_between(20200101, 20210101).all()


LATER = Feature(
    "out", kind="date", after="day", edges=(0, 1, 7, 30, 400), missing=("", "1900-01-01")
)
DAY = Feature(
    "day", kind="date", edges="month", lowest="2020-01-01", highest="2021-12-31", missing=("",)
)


@given(
    st.lists(
        st.tuples(NEAR | st.none(), NEAR | st.just(dt.date(1900, 1, 1)) | st.none()), min_size=1
    )
)
def test_differences_are_read_row_by_row(rows):
    schema = Schema((LATER, DAY))
    table = pl.DataFrame(
        {"day": [row[0] for row in rows], "out": [row[1] for row in rows]},
        schema={"day": pl.Date, "out": pl.Date},
    )
    expected = []
    for day, out in rows:
        if out is None or out.year == 1900 or day is None:
            expected.append(LATER.missing_code)
        else:
            days = max((out - day).days, 0)
            expected.append(sum(days >= edge for edge in (1, 7, 30)))
    codes = encode(table, schema)
    assert codes[:, 0].tolist() == expected
    texts = table.select(pl.all().cast(pl.String))
    assert (encode(texts, schema) == codes).all()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 24)), min_size=1), st.booleans())
def test_no_date_is_before_the_one_that_it_is_counted_from(rows, first):
    schema = Schema((LATER, DAY) if first else (DAY, LATER))
    rows = [row if first else row[::-1] for row in rows]
    codes = np.array(rows, dtype=np.uint8)
    types = {"day": pl.Date(), "out": pl.Date()}
    frame = decode(codes, schema, words(2 * len(codes)), dtypes=types)
    assert (frame["out"] >= frame["day"]).drop_nulls().all()
    out, day = schema.index("out"), schema.index("day")
    known = codes[:, day] < DAY.bin_count
    back = encode(frame, schema)
    assert (back[known] == codes[known]).all()
    assert (back[~known, out] == LATER.missing_code).all()
    alone = decode(codes, schema, words(2 * len(codes)), columns=["out"], dtypes=types)
    assert alone["out"].equals(frame["out"])


@pytest.mark.parametrize("types", [(pl.Date, pl.Datetime), (pl.Datetime, pl.Date), (pl.Date,) * 2])
def test_moments_in_order_keep_their_times(types):
    """Days alone would change the length of time between two moments."""
    day = 86_400.0
    schema = Schema(
        (
            Feature("x", kind="datetime", edges=("2000-01-03", "2000-01-10")),
            Feature("a", kind="datetime", after="x", edges=(0.0, day, 2 * day, 3 * day)),
        ),
        reviewed=True,
    )
    codes = np.stack([np.zeros(60, np.uint8), np.arange(60, dtype=np.uint8) % 3], axis=1)
    words = np.random.default_rng(1).integers(0, 1 << 64, 120, dtype=np.uint64)
    frame = decode(codes, schema, words, dtypes=dict(zip("xa", types, strict=True)))
    assert (encode(frame, schema) == codes).all()


@pytest.mark.parametrize("dtype", ["", "timestamp[ns]"])
def test_no_date_after_another_means_missing(dtype):
    """A sum of a date and a difference may be any date, and a missing code is kept as it is."""
    missing = ("", "2000-01-06", "2000-01-07", "9999-12-31")
    edges = ("2000-01-03", "2000-01-05")
    later = {"after": "x", "edges": (0.0, 4.0), "missing": missing, "keep_missing_codes": True}
    columns = (Feature("x", kind="date", edges=edges), Feature("a", kind="date", **later))
    schema = Schema((columns[0], replace(columns[1], dtype=dtype)), reviewed=True)
    codes = np.stack([np.zeros(100, np.uint8), np.arange(100, dtype=np.uint8) % 5], axis=1)
    frame = decode(
        codes, schema, np.random.default_rng(1).integers(0, 1 << 64, 200, dtype=np.uint64)
    )
    assert (encode(frame, schema) == codes).all()


def test_a_chain_of_dates_is_in_order():
    third = Feature("home", kind="date", after="out", edges="private", missing=("",))
    schema = Schema(
        (Feature("home", kind="date", after="out", edges=(0, 5, 9), missing=("",)), LATER, DAY)
    )
    codes = np.array([[1, 2, 3]] * 40, dtype=np.uint8)
    frame = decode(codes, schema, words(120), dtypes=dict.fromkeys(schema.names, pl.Date()))
    assert (frame["home"] >= frame["out"]).all()
    assert (frame["out"] >= frame["day"]).all()
    assert third.lowest == 0


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("", "at least two edges"),
        ('edges = ["2020-02-30", "2021-01-01"]', "a date that exists"),
        ("edges = [2020, 2021]", "dates or times in quotes"),
        ('edges = ["2021-01-01", "2020-01-01"]', "increase strictly"),
        ('edges = "fortnight"', "a step"),
        ('edges = "month"', "needs lowest and highest"),
        ('edges = "month"\nlowest = "2021-01-01"\nhighest = "2020-01-01"', "less than highest"),
        ('edges = "minute"\nlowest = "1900-01-01"\nhighest = "2020-01-01"', "100,000 steps"),
        ('edges = "private"\nlowest = 5', "dates or times in quotes"),
        ('edges = "private"\nhighest = "9999-12-31"', "before the year 9999"),
        ('edges = "private"\nformat = "%d.%m"', "lacks the year"),
        ('edges = "private"\nformat = "%d.%m.%Y %H:%M"', "datetime"),
        ('edges = "private"\nformat = "%d.%m.%Y %d"', "twice"),
        ('edges = "private"\nformat = "%x"', "not known"),
        ('edges = "private"\nformat = "%Y-%m-%d%z"', "offset from UTC"),
        ('edges = "private"\nresolution = "hour"', "must be one of day"),
        ('edges = "private"\ndecimals = 2', "decimals"),
        ('edges = "private"\nweekday = true\ninside = "uniform"', "measured shape"),
        ('edges = "private"\nafter = "night"', "not another date"),
        ('edges = "private"\nafter = "day"', "not another date"),
        ("bins = { lowest = 0, highest = 1, count = 2 }", "edges"),
        ("edges = { a = 1 }", "list of dates"),
        ('categories = ["2020-01-01"]', "has edges, not categories"),
    ],
)
def test_bad_dates_in_a_schema_are_refused(lines, word):
    with pytest.raises(SchemaError, match=re.escape(word)):
        loads(HEAD + lines)


def test_bad_order_is_refused():
    a = Feature("a", kind="date", after="b", edges="private")
    b = Feature("b", kind="date", after="a", edges="private")
    with pytest.raises(SchemaError, match="counted from itself"):
        Schema((a, b))
    missing = Feature("day", kind="date", edges="private", missing=("",))
    with pytest.raises(SchemaError, match="may be missing"):
        Schema((missing, Feature("out", kind="date", after="day", edges="private")))
    with pytest.raises(SchemaError, match="0 or more"):
        Feature("out", kind="date", after="day", edges=(-1, 5))
    stamp = Feature("day", kind="datetime", edges="private")
    with pytest.raises(SchemaError, match="not another date"):
        Schema((stamp, Feature("out", kind="date", after="day", edges="private")))
    for key, value in {"weekday": True, "after": "x", "format": "%H"}.items():
        with pytest.raises(SchemaError, match="require dates"):
            Feature("x", kind="duration", edges="private", **{key: value})
    with pytest.raises(SchemaError, match="requires a kind of"):
        Feature("x", kind="numeric", edges="private", format="%Y")


def test_toml_dates_are_read_and_ranges_of_rules_are_dates():
    schema = loads(
        HEAD
        + "edges = [2020-01-01, 2020-06-01, 2021-01-01]\n"
        + '[[features]]\nname = "sex"\ncategories = ["f", "m"]\n'
        + '[[rules]]\nforbid = { day = { below = "2020-06-01" }, sex = ["m"] }\n'
    )
    assert schema["day"].labels[0] == "[2020-01-01, 2020-06-01)"
    assert dict(schema.rules[0].forbidden) == {0: frozenset({0}), 1: frozenset({1})}
    assert loads(dumps(schema)) == schema


def test_a_feature_may_become_one_of_another_kind():
    schema = Schema((Feature("x", kind="date", edges="private", format="%d.%m.%Y"),))
    changed = schema.with_feature("x", kind="nominal", categories=("a",), edges=())
    assert (changed["x"].kind, changed["x"].format, changed["x"].resolution) == ("nominal", "", "")
