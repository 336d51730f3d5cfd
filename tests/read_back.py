"""Tables of awkward features, written and read again: the codes must be the same."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import strategies as st

from pegsynth.codec.codec import Decoder
from pegsynth.codec.encoding import column_encoders
from pegsynth.codec.levels import merged_rare
from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.feature import missing_code_of
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding, exact
from pegsynth.schema.temporal import chain
from pegsynth.schema.toml import loads
from pegsynth.schema.toml_text import dumps
from pegsynth.tables.csv_read import unprotect
from pegsynth.tables.table_input import opened
from pegsynth.tables.table_output import open_writer

TEXT = "aBüß019 .,;=+-@'\"()/\n_"
SOURCE_TYPES = (
    *(None, pl.String(), pl.Float64(), pl.Float32(), pl.Int64(), pl.Boolean(), pl.Date()),
    *(pl.Datetime("us"), pl.Datetime("us", "Europe/Berlin"), pl.Time(), pl.Categorical()),
)
ZONED = "timestamp[us, tz=Europe/Berlin]"
PLAIN = (Dialect(),)
"""Where cells have no types, numbers are read as the dialect writes them."""
DIALECTS = (
    Dialect(),
    Dialect(separator=";", decimal=","),
    Dialect(separator=";", decimal=",", thousands=".", encoding="latin-1"),
    Dialect(separator="tab", encoding="utf-16"),
)


@dataclass(frozen=True)
class Case:
    """A table as a release has it.

    Parameters
    ----------
    schema
        The codebook.
    codes
        Every category of every feature, at least twice.
    wanted
        The codes that are read again.
    frame
        The same as values.
    """

    schema: Schema
    codes: np.ndarray
    wanted: np.ndarray
    frame: pl.DataFrame

    def _repr_pretty_(self, printer, cycle):
        """Say what was tried in short; a whole schema takes hundreds of lines."""
        printer.text(f"{dumps(self.schema)} as {dict(self.frame.schema)}")


def codes_of(source, schema):
    """Return codes of a table, one more than the last for values that have none."""
    encoders = column_encoders(schema, spare=True)
    with opened(source, dialect=schema.dialect) as reader:
        hints = {each.feature.name: each.hint for each in encoders if each.hint is not None}
        parts = [
            np.stack([each.encode_batch(batch) for each in encoders], axis=1)
            for batch in reader.batches(schema.names, hints=hints)
        ]
    return np.concatenate(parts)


def check(case, source, schema=None):
    """A table that was written must be read as the codes that it was made of."""
    found = codes_of(source, schema or case.schema)
    for place, feature in enumerate(case.schema.features):
        lost = np.flatnonzero(found[:, place] != case.wanted[:, place])
        told = [(feature.labels[case.codes[row, place]], found[row, place]) for row in lost]
        assert not told, f"{feature.name}, {case.frame[feature.name].dtype}: {told}"


def written(path, case, schema=None):
    """Write a case as a file of ours; return its name."""
    with open_writer(path, codebook=schema or case.schema) as writer:
        for piece in case.frame.iter_slices(7):
            writer.write(piece)
    return str(path)


# What features there are


def _texts():
    awkward = st.text(TEXT, min_size=1, max_size=6).filter(lambda text: text == text.rstrip())
    usual = st.sampled_from(["NA", "nan", "true", "1.0", "1", "01", "2020-01-01", "None", "a  b"])
    return _unique(awkward | usual)


def _unique(texts):
    """Lists of texts that CSV and SPSS can tell apart."""
    return st.lists(texts, min_size=1, max_size=6, unique_by=unprotect)


def _numbers(numbers):
    return st.lists(numbers, min_size=1, max_size=6, unique=True).map(lambda found: map(str, found))


def _moments(kind, *, least=dt.datetime(2000, 1, 3), seconds=90 * 86_400):
    """Texts of times within some weeks of one winter, in which clocks are left alone."""
    whole = st.integers(0, seconds // 2).map(lambda n: least + dt.timedelta(seconds=n))
    return st.lists(whole, min_size=2, max_size=5, unique=True).map(
        lambda found: [_moment_text(each, kind) for each in sorted(found)]
    )


def _moment_text(moment, kind):
    if kind == "date":
        return moment.date().isoformat()
    if kind == "time":
        return moment.time().isoformat()
    return moment.isoformat().removesuffix("T00:00:00")


LISTED = {
    "text": (_texts(), ("", "string", "dictionary", "double", "int64")),
    "codes": (
        _numbers(st.integers(-130, 300) | st.integers(-(2**62), 2**62)),
        ("", "int64", "int32", "int16", "int8", "uint8", "double", "float", "string", "bool"),
    ),
    "zeros": (
        st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True).map(
            lambda found: [f"{each:03d}" for each in found]
        ),
        ("", "string", "int64", "double"),
    ),
    "decimals": (
        _numbers(st.integers(-999, 999).map(lambda n: n / 8) | st.sampled_from([0.1, 1e20, 1e-7])),
        ("", "double", "float", "string", "decimal128(20, 3)"),
    ),
    "truth": (
        st.sampled_from(
            [("false", "true"), ("True", "False"), ("TRUE", "FALSE"), ("0", "1"), ("true",)]
        ),
        ("", "bool", "string", "int64", "double"),
    ),
    "days": (_moments("date"), ("", "date32[day]", "timestamp[us]", ZONED, "string")),
    "moments": (_moments("datetime"), ("", "timestamp[us]", "timestamp[ms]", ZONED, "string")),
    "clock": (_moments("time"), ("", "time64[us]", "string")),
}
BINNED = {
    "numeric": ("", "int64", "int16", "int8", "uint8", "double", "float", "string"),
    "date": ("", "date32[day]", "timestamp[us]", "string", ZONED),
    "datetime": ("", "timestamp[us]", "timestamp[ns]", "string", ZONED),
    "time": ("", "time64[us]", "string"),
    "duration": ("", "string"),
}


MISSING = ((), ("",), ("", "-9"), ("-9", "-8"), ("", "NA", "-99.5"), ("-99,5",), ("3", "-99.5"))
NO_DATE = ((), ("",), ("", "9999-12-31"), ("", "2000-01-20"), ("2000-01-20", "2000-02-01"))


@st.composite
def _special(draw, among=MISSING):
    """Missing codes, apart or not, "not applicable", and a category for all that is not listed."""
    missing = draw(st.sampled_from(among))
    return {
        "missing": missing,
        "keep_missing_codes": bool(missing) and draw(st.booleans()),
        "not_applicable": draw(st.sampled_from([(), ("77",), ("none",)])),
        "unknown": draw(st.sampled_from(["error", "category"])),
    }


@st.composite
def features(draw, name):
    """A feature, and the type that its original column had."""
    if draw(st.booleans()):
        texts, types = LISTED[draw(st.sampled_from(sorted(LISTED)))]
        kind = draw(st.sampled_from(["nominal", "ordinal"]))
        held = {"kind": kind, "categories": tuple(dict.fromkeys(draw(texts)))}
    else:
        kind = draw(st.sampled_from(sorted(BINNED)))
        types = BINNED[kind]
        held = {"kind": kind, "edges": draw(_edges(kind))}
        if kind == "numeric":
            held["decimals"] = draw(st.sampled_from([None, 0, 2]))
    stated = {"dtype": draw(st.sampled_from(types)), **draw(_special())}
    for less in ({}, {"not_applicable": ()}, {"missing": (), "keep_missing_codes": False}):
        try:
            feature = draw(recoded(Feature(name, **held, **(stated | less))))
            return feature, draw(st.sampled_from(SOURCE_TYPES))
        except SchemaError:
            # A category is a missing code too, or a whole number has decimals.
            held.pop("decimals", None)
    return Feature(name, categories=("a",)), None


@st.composite
def recoded(draw, feature):
    """The feature, or one whose values are recoded, if files can tell the outcome apart (R31)."""
    numbers = st.sampled_from([None, None, 0, 5, 40])
    rules = {"top": draw(numbers), "bottom": draw(numbers)}
    rules["round"] = draw(st.sampled_from([None, 0.1, 0.5, 1, 5]))
    if not feature.binned:
        texts = draw(st.lists(st.sampled_from(feature.categories), unique=True))
        name = draw(st.sampled_from(["group", "7", *feature.categories]))
        rules["groups"] = {name: texts} if texts else {}
        rules["hierarchy"] = draw(st.none() | _hierarchies(feature.categories))
        rules["rare"] = draw(st.sampled_from([None, "paid"]))
    try:
        found = replace(feature, recoding=Recoding(**rules))
        if found.merges_rare:
            found = merged_rare(found, np.arange(found.category_count) % 3 * 8, 1.0)
    except SchemaError:
        return feature
    listed = found.categories
    if len({unprotect(text) for text in listed if text == text.rstrip()}) < len(listed):
        return feature
    if found.binned and rules["round"] and not _multiple_everywhere(found, exact(rules["round"])):
        return feature
    return found


def _hierarchies(texts):
    parents = st.sampled_from(["up", "8", "up (a)"])
    listed = st.lists(parents, min_size=len(texts), max_size=len(texts))
    pairs = listed.map(lambda above: Hierarchy.of(dict(zip(texts, above, strict=True))))
    return pairs | st.just(Hierarchy(prefixes=(2,)))


def _multiple_everywhere(feature, step):
    """No rounded value falls into a bin without a multiple."""
    ends = [math.ceil(exact(edge) / step) for edge in feature.edges]
    ends[-1] = math.floor(exact(feature.edges[-1]) / step) + 1
    return all(first < end for first, end in pairwise(ends))


@st.composite
def later(draw, name, other):
    """A date that is counted from another one."""
    day = 1 if other.kind == "date" else 86_400
    steps = st.integers(0, 10).map(lambda n: n * day) | st.integers(0, 10 * day)
    edges = draw(st.lists(steps, min_size=2, max_size=4, unique=True).map(sorted))
    # A bin that is no wider than there are dates with a meaning may have no other date.
    wide = min(high - low for low, high in pairwise(edges)) > 2
    stated = draw(_special(NO_DATE if wide else NO_DATE[:3]))
    if other.category_count > other.bin_count and "" not in stated["missing"]:
        stated["missing"] = ("", *stated["missing"])
    dtype = draw(st.sampled_from(BINNED[other.kind]))
    feature = Feature(
        name, kind=other.kind, after=other.name, edges=tuple(map(float, edges)), dtype=dtype,
        **stated,
    )  # fmt: skip
    return feature, draw(st.sampled_from(SOURCE_TYPES))


def _edges(kind):
    if kind == "numeric":
        whole = st.lists(st.integers(0, 120), min_size=2, max_size=5, unique=True)
        finer = st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True)
        return st.one_of(
            whole.map(lambda found: tuple(map(float, sorted(found)))),
            finer.map(lambda found: tuple(each / 4 for each in sorted(found))),
        )
    if kind == "duration":
        steps = st.lists(st.integers(0, 400_000), min_size=2, max_size=5, unique=True)
        return steps.map(lambda found: tuple(map(float, sorted(found))))
    if kind == "time":
        return _moments("time", least=dt.datetime(2000, 1, 3), seconds=86_399)
    return _moments(kind).filter(lambda found: len(set(found)) == len(found))


@st.composite
def cases(draw, *, most=8, dialects=DIALECTS):
    """Features of all kinds in one table, with rows of every category."""
    chosen = [draw(features(f"x{place}")) for place in range(draw(st.integers(1, most)))]
    for place, other in enumerate(
        [each for each, _ in chosen if each.kind in ("date", "datetime")]
    ):
        for name in draw(st.sampled_from([(), (f"a{place}",), (f"a{place}", f"b{place}")])):
            chosen.append(draw(later(name, other)))
            other = chosen[-1][0]
    # A companion, so that no row is a blank line, and what it means.
    columns = (
        *(feature for feature, _ in chosen),
        Feature("y", categories=("u", "v")),
        Feature("z", label_of="y", value_labels={"u": "upper", "v": "lower"}),
    )
    schema = Schema(columns, reviewed=True, dialect=draw(st.sampled_from(dialects)))
    chains = [chain(feature, schema.features) for feature in schema.features]
    counts = [[each.category_count for each in line] for line in chains]
    rows = max(2 * max(each[0] for each in counts), *map(math.prod, counts))
    # Dates that are counted from others meet all categories of these.
    codes = np.stack([np.arange(rows) // math.prod(each[1:]) % each[0] for each in counts], axis=1)
    codes = codes.astype(schema.code_dtype)
    types = {each.name: dtype for each, dtype in chosen if dtype is not None}
    how = draw(st.sampled_from(["values", "values", "labels"]))
    decoder = Decoder(schema, how=how, dtypes=types, listed=draw(st.booleans()))
    words = np.random.default_rng(draw(st.integers(0, 9))).integers(
        0, 1 << 64, decoder.words_needed(rows), dtype=np.uint64
    )
    frame = decoder.decode(codes, words)
    wanted = list(_wanted(schema, codes, frame, how))
    return Case(loads(dumps(schema)), codes, np.stack(wanted, axis=1), frame)


def _wanted(schema, codes, frame, how):
    """Yield the codes that are read.

    Numbers have one gap for "missing" and for "other", and a bin that holds nothing but a number
    that means "missing" is what that number means. No date is known that is counted from one that
    is not.
    """
    for place, feature in enumerate(schema.features):
        column = codes[:, place].copy()
        for other in chain(feature, schema.features)[1:] if how == "values" else ():
            unknown = codes[:, schema.index(other.name)] >= other.bin_count
            gap = column if feature.missing_code is None else feature.missing_code
            column = np.where(unknown & (column < feature.bin_count), gap, column)
        if frame[feature.name].dtype.is_integer() and feature.kind == "numeric":
            column = _bins_of_special_numbers(feature, column)
        typed = frame[feature.name].dtype not in (pl.String, pl.Enum)
        if feature.binned and typed and feature.unknown_code is not None:
            gap = feature.missing_code
            column[column == feature.unknown_code] = feature.unknown_code if gap is None else gap
        yield column


def _bins_of_special_numbers(feature, codes):
    special = dict.fromkeys(feature.not_applicable, feature.not_applicable_code)
    special |= {text: missing_code_of(feature, text) for text in feature.missing}
    for text, code in special.items():
        for place, (low, high) in enumerate(pairwise(feature.edges)):
            last = place == feature.bin_count - 1
            held = [str(n) for n in range(int(low), int(high) + last)]
            if held == [text]:
                codes = np.where(codes == place, code, codes)
    return codes
