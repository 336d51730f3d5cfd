import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec.codec import Decoder, Encoder, decode, encode, encode_table
from pegsynth.errors import DataError, ParameterError
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.tables.caller_frames import to_kind
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer, write_table

SECRET = "Zebulon"
SEX = Feature("sex", categories=("f", "m"))
NUMBER = Feature("x", kind="numeric", edges=(0, 10, 20, 30), missing=("", "-9"), dtype="int64")


def codes_of(feature, values, **types):
    frame = values if isinstance(values, pl.Series) else pl.Series(values, **types)
    return encode(frame.alias(feature.name).to_frame(), Schema((feature,)))[:, 0].tolist()


def words(count, seed=1):
    return RandomStream(seed).substream().take(count)


def column(feature, codes, **options):
    schema = Schema((feature,))
    matrix = np.array(codes, dtype=schema.code_dtype)[:, None]
    return decode(matrix, schema, words(len(codes)), **options)[feature.name]


# -- columns ------------------------------------------------------------------------------


def test_columns_must_agree():
    unit = Feature("patient", role="identifier")
    schema = Schema((SEX, NUMBER, Feature("name", role="identifier"), unit), unit="patient")
    Encoder(schema, source="t.csv", columns=["x", "sex", "patient"])
    Encoder(schema, source="t.csv", columns=["x", "sex"], need_unit=False)
    for columns, missing in ((["sex", "patient"], "'x'"), (["sex", "x"], "'patient'")):
        with pytest.raises(DataError, match=rf"t\.csv: column {missing} of the schema is not in"):
            Encoder(schema, source="t.csv", columns=columns)
    with pytest.raises(DataError, match=r"t\.csv: column 'extra' is not in the schema"):
        Encoder(schema, source="t.csv", columns=["sex", "x", "patient", "extra"])


def test_codes_follow_the_schema_and_not_the_table():
    schema = Schema((SEX, NUMBER))
    codes = encode(pl.DataFrame({"x": [25, 5], "sex": ["m", "f"]}), schema)
    assert codes.tolist() == [[1, 2], [0, 0]]
    assert codes.dtype == schema.code_dtype
    assert codes.flags.c_contiguous


def test_wide_codes():
    feature = Feature("zip", categories=tuple(str(i) for i in range(70_000)))
    codes = encode(pl.DataFrame({"zip": ["69999", "0"]}), Schema((feature,)))
    assert codes.dtype == np.uint32
    assert codes[:, 0].tolist() == [69_999, 0]


# -- values outside the schema ------------------------------------------------------------


def test_unknown_values_are_counted_and_not_shown(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"sex,x\n{SECRET},1\nf,{SECRET}\n{SECRET},{SECRET}\n,3\n")
    reader = open_table(path)
    with pytest.raises(DataError) as caught:
        list(encode_table(reader, Schema((SEX, NUMBER))))
    message = str(caught.value)
    assert "t.csv: column 'sex': 2 values are not in the schema" in message
    assert 'unknown = "category"' in message
    assert "t.csv: column 'sex': 1 value is missing" in message
    assert 'missing = [""]' in message
    assert "column 'x': 2 values are not numbers" in message
    assert SECRET not in message


def test_counts_add_up_over_batches():
    encoder = Encoder(Schema((SEX,)), source="t", columns=["sex"])
    for _ in range(3):
        assert encoder.encode(pl.DataFrame({"sex": ["m", "q", None]})).tolist() == [[1], [0], [0]]
    with pytest.raises(DataError, match=r"3 values are not(.|\n)*3 values are missing"):
        encoder.finish()


def test_unknown_category():
    feature = Feature("s", categories=("a",), unknown="category", missing=("NA",))
    assert codes_of(feature, ["a", "zz", None, "NA", " NA "]) == [0, 1, 2, 2, 2]
    assert column(feature, [0, 1, 2]).to_list() == ["a", "(other)", None]
    only = Feature("s", unknown="category")
    assert codes_of(only, ["p", "q"]) == [0, 0]
    with pytest.raises(DataError, match="1 value is missing"):
        codes_of(only, ["p", None])


# -- matching -----------------------------------------------------------------------------


def test_text_is_matched_exactly():
    feature = Feature("s", categories=("7", "007", " x", "x", " "), missing=("", "x "))
    assert codes_of(feature, ["007", "7", " x", "x", " ", "", "  ", None, "x "]) == [
        *(1, 0, 2, 3, 4),
        *(5, 5, 5, 5),
    ]


def test_not_applicable_is_not_missing():
    feature = Feature("s", categories=("a",), not_applicable=("n/a", "na"), missing=("",))
    assert codes_of(feature, ["a", "n/a", "na", ""]) == [0, 1, 1, 2]
    assert column(feature, [0, 1, 2]).to_list() == ["a", "n/a", None]


@pytest.mark.parametrize(
    ("values", "categories", "dtype"),
    [
        ([1, 2, 3], ("1", "2", "3"), "int64"),
        ([1.0, 2.5, -3.0], ("1", "2.5", "-3"), "double"),
        ([True, False, True], ("false", "true"), "bool"),
        ([True, False, True], ("False", "True"), "bool"),
        ([dt.date(2020, 1, 2)], ("2020-01-02",), "date32"),
        ([dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 60)], None, "timestamp[us]"),
        (["u", "v"], ("v", "u"), "dictionary"),
    ],
)
def test_typed_values_round_trip(values, categories, dtype):
    categories = categories or ("2020-01-02", "2020-01-02T03:04:05.000060")
    feature = Feature("a", categories=categories, missing=("",), dtype=dtype)
    codes = codes_of(feature, [*values, None])
    assert codes[-1] == len(categories)
    back = column(feature, codes)
    assert back.to_list() == [*values, None]
    assert back.dtype != pl.String or isinstance(values[0], str)


def test_times_with_zones_and_other_types():
    winter = dt.datetime(2020, 1, 2, 3)
    zoned = pl.Series([winter]).dt.replace_time_zone("Europe/Paris")
    feature = Feature("a", categories=("2020-01-02T03:00:00",))
    codes = codes_of(feature, zoned)
    assert column(feature, codes, dtypes={"a": zoned.dtype}).equals(zoned)
    never = Feature("a", categories=("2020-03-29T02:30:00",))
    assert column(never, [0], dtypes={"a": zoned.dtype}).dtype == pl.String
    assert codes_of(Feature("a", categories=("P1D",)), [dt.timedelta(days=1)]) == [0]
    assert codes_of(Feature("a", categories=("x",), missing=("",)), [None], dtype=pl.Null) == [1]
    assert codes_of(NUMBER, [None], dtype=pl.Null) == [3]


def test_integers_with_gaps_in_pandas():
    frame = pd.DataFrame({"a": [1, None, 3]})
    schema = Schema((Feature("a", categories=("1", "3"), missing=("",)),))
    codes = encode(frame, schema)
    assert codes[:, 0].tolist() == [0, 2, 1]
    out = to_kind(decode(codes, schema, dtypes=open_table(frame).dtypes), "pandas", frame)
    pd.testing.assert_frame_equal(out, frame)


def test_texts_that_files_make_of_values():
    whole = Feature("a", categories=("1", "2"), dtype="int64", missing=("",))
    assert codes_of(whole, ["1.0", "2"]) == [0, 1]
    truth = Feature("a", categories=("false", "true"), dtype="bool")
    assert codes_of(truth, ["True", "FALSE"]) == [1, 0]
    formula = Feature("a", categories=("=x", "'-y", "-y"))
    assert codes_of(formula, ["'=x", "=x", "'-y", "-y"]) == [0, 0, 1, 2]
    with pytest.raises(DataError, match="1 value is"):
        codes_of(formula, ["'x"])
    assert codes_of(Feature("a", categories=("b",), missing=("",)), ["(missing)"]) == [1]


def test_categorical_columns():
    for dtype in (pl.Categorical, pl.Enum(["f", "m", "zzz"])):
        assert codes_of(SEX, pl.Series(["m", "f"], dtype=dtype)) == [1, 0]
    pandas = pd.DataFrame({"sex": pd.Categorical(["m", "f"], ["zzz", "m", "f"])})
    schema = Schema((SEX,))
    codes = encode(pandas, schema)
    assert codes[:, 0].tolist() == [1, 0]
    out = to_kind(decode(codes, schema, dtypes=open_table(pandas).dtypes), "pandas", pandas)
    assert out["sex"].cat.categories.tolist() == ["f", "m"]


# -- numbers ------------------------------------------------------------------------------

BINNED = [-1e9, 0, 9.99, 10, 20, 30, 31, float("inf"), float("-inf"), -9, None, float("nan")]
BINNED_CODES = [0, 0, 0, 1, 2, 2, 2, 2, 0, 3, 3, 3]


def test_bins():
    assert codes_of(NUMBER, BINNED) == BINNED_CODES
    texts = [None if value is None else str(value) for value in BINNED]
    assert codes_of(NUMBER, texts) == BINNED_CODES
    assert codes_of(NUMBER, [" 5 ", "-9.0", " ", "1e1", "[10, 20)", "[20, 30]"]) == [
        *(0, 3, 3, 1, 1, 2)
    ]
    assert codes_of(NUMBER, [5, -9, 200], dtype=pl.Int16) == [0, 3, 2]
    assert codes_of(NUMBER, ["15"], dtype=pl.Categorical) == [1]
    with pytest.raises(DataError, match="1 value is not a number"):
        codes_of(NUMBER, ["1_0"])


@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(-25, 25), min_size=1, max_size=20),
)
def test_bins_against_their_definition(edges, values):
    edges = sorted(edges)
    feature = Feature("x", kind="numeric", edges=tuple(edges))
    last = len(edges) - 2

    def slow(value):
        inside = [i for i in range(last + 1) if edges[i] <= value < edges[i + 1]]
        return inside[0] if inside else (0 if value < edges[0] else last)

    assert codes_of(feature, values) == [slow(value) for value in values]


@settings(max_examples=60)
@given(
    st.sampled_from(["int64", "uint8", "int16", "double", "float", "string", ""]),
    st.lists(st.floats(0, 200, width=16), min_size=2, max_size=6, unique=True),
    st.booleans(),
    st.sampled_from([(), ("50",), ("50", "51", "x")]),
    st.integers(0, 9),
)
def test_drawn_numbers_fall_in_their_bin(dtype, edges, whole, special, seed):
    edges = sorted({float(round(edge)) if whole or "int" in dtype else edge for edge in edges})
    if len(edges) < 2:
        edges = [0.0, 120.0]
    feature = Feature("x", kind="numeric", edges=tuple(edges), dtype=dtype, missing=special)
    schema = Schema((feature,))
    codes = np.tile(np.arange(feature.category_count, dtype=schema.code_dtype), 20)[:, None]
    frame = decode(codes, schema, words(len(codes), seed))
    again = encode(frame, schema)
    taken = {50.0, 51.0} if special else set()
    for code in range(feature.bin_count):
        low, high = edges[code], edges[code + 1]
        whole_values = {float(v) for v in range(int(low), int(high) + (code == len(edges) - 2))}
        if "int" in dtype and whole_values <= taken:
            continue
        assert set(again[codes[:, 0] == code, 0].tolist()) == {code}
    if special:
        assert frame["x"].null_count() == 20


class AtOneNumber:
    """A shape whose values are all one number."""

    def __init__(self, number):
        self.number = number

    def values(self, bins, ranks):
        return np.full(len(bins), self.number)


@pytest.mark.parametrize(
    ("edges", "decimals", "missing", "number"),
    [
        ((0.0, 3.0), 0, ("1",), 1.0),
        ((0.0, 3.0), 0, ("0", "1", "2"), 1.0),
        ((0.0, 1.0), 0, ("0",), 0.0),
        ((0.0, 1.0), 0, ("0", "1", "0.5"), 1.0),
        ((0.0, 0.05), 2, ("0.01", "0.02"), 0.01),
        ((0.0, 1.0), 1, ("0.1", "0.3"), 0.1),
    ],
)
@pytest.mark.parametrize("dtype", ["double", "float", "string"])
@pytest.mark.parametrize("shaped", [False, True])
def test_no_drawn_number_means_missing(edges, decimals, missing, number, dtype, shaped):
    options = {"kind": "numeric", "edges": edges, "decimals": decimals, "missing": missing}
    feature = Feature("x", dtype=dtype, **options)
    schema = Schema((feature,))
    shapes = {"x": AtOneNumber(number)} if shaped else {}
    decoder = Decoder(schema, shapes=shapes)
    codes = np.zeros((400, 1), dtype=schema.code_dtype)
    drawn = decoder.decode(codes, words(decoder.words_needed(400)))
    assert encode(drawn, schema)[:, 0].tolist() == [0] * 400
    numbers = drawn["x"].cast(pl.Float64)
    assert numbers.is_between(edges[0], edges[-1]).all()


def test_whole_numbers_are_uniform_to_the_last():
    feature = Feature("x", kind="numeric", edges=(0, 2, 4), dtype="int8", missing=("3",))
    values = column(feature, [0, 1] * 500)
    assert values.dtype == pl.Int8
    assert set(values[::2]) == {0, 1}
    assert set(values[1::2]) == {2, 4}
    assert 180 < (values[::2] == 0).sum() < 320


def test_special_codes_of_numbers():
    plain = Feature(
        "x",
        kind="numeric",
        edges=(0, 1),
        missing=("",),
        not_applicable=("-8",),
        unknown="category",
        dtype="int64",
    )
    assert column(plain, [1, 2, 3]).to_list() == [None, -8, None]
    assert codes_of(plain, [-8, None, 0]) == [2, 3, 0]
    text = Feature("x", kind="numeric", edges=(0, 9), not_applicable=("none",), unknown="category")
    values = column(text, [0, 1, 2])
    assert values.dtype == pl.String
    assert values[1:].to_list() == ["(other)", "none"]
    assert codes_of(text, values) == [0, 1, 2]
    nulls = Feature("x", kind="numeric", edges=(0, 9), unknown="category")
    assert codes_of(nulls, column(nulls, [0, 1])) == [0, 1]


def test_labels():
    frame = column(NUMBER, [0, 1, 2, 3], how="labels")
    assert frame.to_list() == ["[0, 10)", "[10, 20)", "[20, 30]", None]
    assert codes_of(NUMBER, frame) == [0, 1, 2, 3]


def test_types_that_cannot_hold_the_categories():
    assert column(Feature("a", categories=("007", "8"), dtype="int64"), [0]).dtype == pl.String
    assert column(Feature("a", categories=("8",), dtype="int64"), [0]).dtype == pl.Int64
    other = Feature("a", categories=("8",), dtype="int64", unknown="category")
    assert column(other, [0, 1]).to_list() == ["8", "(other)"]
    assert column(Feature("a", categories=("300",), dtype="uint8"), [0]).dtype == pl.String
    wide = Feature("x", kind="numeric", edges=(0, 300), dtype="uint8")
    assert column(wide, [0]).dtype == pl.Float64


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (pa.int32(), pl.Int32),
        (pl.Int32, pl.Int32),
        (pa.large_string(), pl.String),
        (pa.timestamp("us"), pl.String),
        (pa.float32(), pl.Float32),
        (pa.decimal128(5, 2), pl.Float64),
        (pa.dictionary(pa.int8(), pa.string()), pl.Enum),
    ],
)
def test_types_seen_in_the_input(seen, expected):
    feature = Feature("a", categories=("1", "2"))
    assert column(feature, [1, 0], dtypes={"a": seen}).dtype == expected
    fixed = Feature("a", categories=("1", "2"), dtype="int8")
    assert column(fixed, [1, 0], dtypes={"a": pl.Float64}).dtype == pl.Int8


# -- tables -------------------------------------------------------------------------------


def test_decoding_in_parts_equals_decoding_at_once():
    schema = Schema((NUMBER, SEX, Feature("y", kind="numeric", edges=(0.0, 1.0))))
    generator = np.random.default_rng(3)
    codes = np.stack([generator.integers(0, c, 5000) for c in schema.category_counts], axis=1)
    codes = codes.astype(schema.code_dtype)
    decoder = Decoder(schema)
    assert decoder.words_needed(10) == 20
    whole = decoder.decode(codes, words(decoder.words_needed(len(codes))))
    stream = RandomStream(1).substream()
    parts = [
        decoder.decode(part, stream.take(decoder.words_needed(len(part))))
        for part in np.array_split(codes, 7)
    ]
    assert pl.concat(parts).equals(whole)
    assert dict(whole.schema) == decoder.schema
    turned = Decoder(schema, columns=["id", "y", "sex"])
    draws = words(turned.words_needed(len(codes)))
    assert turned.decode(codes, draws).equals(whole.select("y", "sex"))
    with pytest.raises(ParameterError, match="random words"):
        decoder.decode(codes)
    with pytest.raises(ParameterError, match="labels"):
        Decoder(schema, how="other")


TEXT = st.text(max_size=4).filter(lambda text: text.strip() and "\0" not in text)


@given(st.data())
def test_every_category_survives(data):
    texts = data.draw(st.lists(TEXT, min_size=2, max_size=6, unique=True))
    feature = Feature(
        "a", categories=tuple(texts[1:]), not_applicable=tuple(texts[:1]), missing=("",)
    )
    schema = Schema((feature,))
    values = data.draw(st.lists(st.sampled_from([*texts, None]), min_size=1, max_size=9))
    frame = pl.DataFrame({"a": pl.Series(values, dtype=pl.String)})
    codes = encode(frame, schema)
    assert decode(codes, schema).equals(frame)


@settings(max_examples=50)
@given(st.data())
def test_every_category_survives_a_csv_file(tmp_path_factory, data):
    alphabet = st.text("ab=+-@\t\r\n\",' 1é", min_size=1, max_size=4).filter(str.strip)
    texts = data.draw(st.lists(alphabet, min_size=1, max_size=6, unique=True))
    texts = [text for text in texts if "'" + text not in texts]
    feature = Feature("a", categories=tuple(texts), missing=("",), dtype="string")
    schema = Schema((feature, SEX) if data.draw(st.booleans()) else (feature,))
    codes = np.arange(len(texts) + 1, dtype=schema.code_dtype)[:, None]
    codes = np.hstack([codes] + [codes * 0] * (len(schema.features) - 1))
    path = tmp_path_factory.mktemp("csv") / "o.csv"
    write_table(path, decode(codes, schema))
    assert (encode(path, schema) == codes).all()


@pytest.mark.parametrize("how", ["values", "labels"])
@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.arrow"])
def test_tables_survive_files(tmp_path, name, how):
    categories = tuple(f"c{i}" for i in range(300))
    schema = Schema(
        (
            NUMBER,
            Feature("c", categories=categories, missing=("NA",)),
            Feature("k", kind="ordinal", categories=("1", "2"), dtype="int64", missing=("",)),
            Feature("y", kind="numeric", edges=(0.0, 0.1, 0.7), missing=("",)),
        )
    )
    generator = np.random.default_rng(7)
    codes = np.stack([generator.integers(0, c, 40_000) for c in schema.category_counts], axis=1)
    codes = codes.astype(schema.code_dtype)
    decoder = Decoder(schema, how=how)
    with open_writer(tmp_path / name) as writer:
        for part in np.array_split(codes, 3):
            writer.write(decoder.decode(part, words(decoder.words_needed(len(part)))))
    assert (encode(tmp_path / name, schema) == codes).all()
