"""Missing codes that are kept apart: each is a category, and comes back as it was."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, pegs
from pegsynth import DataError, Feature, Rule, Schema, SchemaError
from pegsynth.codec.codec import decode, encode
from pegsynth.methods.completion import completed_frames
from pegsynth.random import RandomStream
from pegsynth.schema.feature import missing_codes
from pegsynth.schema.toml import dumps, loads

KEPT = {"missing": ("", "-8", "-9"), "keep_missing_codes": True}
PAY = Feature("pay", "numeric", edges=(0.0, 10.0, 50.0), dtype="int64", **KEPT)
TRUST = Feature("trust", categories=("low", "high"), not_applicable=("-7",), **KEPT)
BOOK = Schema((PAY, TRUST), reviewed=True)
TABLE = pl.DataFrame(
    {
        "pay": [5, None, -8, -9, 20, -8],
        "trust": ["low", "-8", None, "-9", "-7", "high"],
    }
)


def words(rows):
    return RandomStream(1).substream().take(rows * 4)


def test_every_code_has_a_category():
    assert PAY.category_count == 2 + 3
    assert list(missing_codes(PAY)) == [2, 3, 4]
    assert PAY.labels[2:] == ("(missing)", "(missing: -8)", "(missing: -9)")
    assert list(missing_codes(TRUST)) == [3, 4, 5]
    assert PAY.missing_code == 2
    together = Feature("pay", "numeric", edges=(0.0, 10.0), missing=("", "-8"))
    assert list(missing_codes(together)) == [together.missing_code]


@pytest.mark.parametrize("written", ["frame", "text"])
def test_codes_come_back_as_they_were(written, tmp_path):
    table = TABLE
    if written == "text":
        TABLE.write_csv(tmp_path / "table.csv")
        table = str(tmp_path / "table.csv")
    codes = encode(table, BOOK)
    assert codes[:, 0].tolist() == [0, 2, 3, 4, 1, 3]
    assert codes[:, 1].tolist() == [0, 4, 3, 5, 2, 1]
    back = decode(codes, BOOK, words(6))
    assert back["pay"].to_list()[1:4] == [None, -8, -9]
    assert back["pay"].dtype == pl.Int64
    assert back["trust"].to_list() == TABLE["trust"].to_list()
    assert (encode(back, BOOK) == codes).all()
    labels = decode(codes, BOOK, how="labels")
    assert labels["pay"].to_list()[1:4] == [None, "-8", "-9"]
    assert (encode(labels, BOOK) == codes).all()


def test_codes_that_are_no_numbers_make_a_column_text():
    pay = Feature("pay", "numeric", edges=(0.0, 10.0), missing=("", "refused", "-9"))
    assert decode(np.array([[1]], np.uint8), Schema((pay,)), words(1))["pay"].to_list() == [None]
    kept = Schema((pegsynth.Feature(**{**vars_of(pay), "keep_missing_codes": True}),))
    back = decode(np.array([[0], [1], [2], [3]], np.uint8), kept, words(4))
    assert back["pay"].dtype == pl.String
    assert back["pay"].to_list()[1:] == [None, "refused", "-9"]
    assert encode(back, kept)[:, 0].tolist() == [0, 1, 2, 3]


def vars_of(feature):
    return {name: getattr(feature, name) for name in ("name", "kind", "edges", "missing")}


def test_spaces_around_a_code_are_nothing():
    codes = encode(pl.DataFrame({"pay": [" -8", "-9 "], "trust": ["-8 ", " "]}), BOOK)
    assert codes.tolist() == [[3, 4], [4, 3]]


def test_an_empty_cell_that_is_not_listed_is_refused():
    """It is none of the codes, and none of them may be put in its place."""
    book = Schema(
        (Feature("trust", categories=("low",), missing=("-8",), keep_missing_codes=True),)
    )
    with pytest.raises(DataError, match="1 value is missing"):
        encode(pl.DataFrame({"trust": ["low", None]}), book)


def test_a_schema_file_and_its_rules_name_each_code():
    rules = (Rule.forbid(pay=["-8"], trust=["-9"]),)
    book = Schema((PAY, TRUST), rules=rules, reviewed=True)
    text = dumps(book)
    assert text.count("keep_missing_codes = true") == 2
    again = loads(text)
    assert again == book
    assert dict(again.rules[0].forbidden) == {0: {3}, 1: {5}}
    assert "keep_missing_codes" not in dumps(Schema((Feature("x", categories=("a",)),)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": ()}, "requires missing"),
        ({"missing": ("-8", "-8")}, "listed twice"),
        ({"missing": ("-8", " -8")}, "listed twice"),
        ({"keep_missing_codes": "yes"}, "true or false"),
        ({"categories": ("a", "-8")}, "both as a category and as missing"),
        ({"categories": ("(missing: -8)",)}, "rename it"),
    ],
)
def test_what_cannot_be_kept_is_refused(options, message):
    with pytest.raises(SchemaError, match=message):
        Feature("x", **{"categories": ("a",), **KEPT, **options})


def test_a_wrong_value_in_a_file(tmp_path):
    text = 'reviewed = true\n[[features]]\nname = "x"\ncategories = ["a"]\nmissing = ["-8"]\n'
    (tmp_path / "schema.toml").write_text(text + "keep_missing_codes = 1\n")
    check_refused(pegs("schema", "check", tmp_path / "schema.toml"), "keep_missing_codes")


def survey(rows=600):
    random = np.random.default_rng(2)
    pay = pl.Series(np.where(random.random(rows) < 0.2, 0, random.integers(1, 50, rows)))
    lost = random.random(rows)
    pay = pay.set(pl.Series(lost < 0.1), -8).set(pl.Series(lost > 0.8), -9)
    trust = pl.Series(random.choice(["low", "high", "-7", "-8"], rows))
    return pl.DataFrame({"pay": pay, "trust": trust})


@pytest.mark.parametrize("edges", ["public", "private"])
def test_a_release_keeps_the_codes_apart_and_completes_all_of_them(edges):
    """With private edges every code is a cell of the noisy tree (R21)."""
    private = replace(BOOK.with_feature("pay", edges="private"), reviewed=True)
    book = private if edges == "private" else BOOK
    release = pegsynth.synthesize(
        survey(), book, rows=600, method="pegs-once", epsilon=50, delta=1e-6, complete=True
    )
    (drawn,) = release.frames
    shares = [(drawn["pay"] == code).mean() for code in (-8, -9)]
    assert shares == pytest.approx([0.1, 0.2], abs=0.06)
    for completed in release.completed[0]:
        assert completed["pay"].min() >= 0
        assert completed["pay"].null_count() == 0
        assert set(completed["trust"]) == {"low", "high", "-7"}


def test_completing_leaves_other_cells_alone():
    table = survey()
    (completed,) = completed_frames(table, BOOK, RandomStream(3))
    seen = ~table["pay"].is_in([-8, -9])
    assert completed["pay"].filter(seen).equals(table["pay"].filter(seen))
