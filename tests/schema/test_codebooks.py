"""Codebooks of other programs: what they tell becomes the schema, and the way back."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import check_refused, pegs
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.codebooks import WRITTEN, read_codebook, write_codebook
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.toml import loads

pyreadstat = pytest.importorskip("pyreadstat")

BOOK = Schema(
    (
        Feature("id", role="identifier"),
        Feature(
            "sex",
            categories=("1", "2"),
            missing=("", "-9"),
            dtype="int64",
            label="sex & more <b>",
            value_labels=(("1", "male"), ("2", "female"), ("-9", "refused")),
        ),
        Feature("grade", "ordinal", categories=("low", "high"), missing=("",), dtype="string"),
        Feature("age", "numeric", edges=(0.0, 50.0, 120.0), missing=("",), dtype="int64"),
    ),
    reviewed=True,
)
ENDING = {"ddi": "xml"}


def written(folder, name, content):
    path = Path(folder, name)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def told(schema):
    return {
        each.name: (each.categories, each.missing, each.label, dict(each.value_labels))
        for each in schema.features
        if each.kind != "numeric"
    }


@pytest.mark.parametrize("form", WRITTEN)
def test_what_is_written_is_read_again(tmp_path, form):
    path = written(tmp_path, f"b.{ENDING.get(form, 'json')}", write_codebook(BOOK, form))
    back = read_codebook(path)
    assert not back.reviewed
    assert back.drafted_from_data == ()
    wanted = told(BOOK)
    if form == "sdv":
        wanted = {name: (*each[:2], "", each[3]) for name, each in wanted.items()}
    assert told(back) == wanted
    assert (back["age"].edges[0], back["age"].edges[-1]) == (0, 120)
    if form != "csvw":
        assert back["grade"].kind == "ordinal"
    if form != "ddi":
        assert back["id"].role == "identifier"


TEXTS = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(
    codes=st.lists(TEXTS, min_size=1, max_size=5, unique=True),
    missing=st.lists(TEXTS, max_size=2, unique=True),
    label=TEXTS,
    form=st.sampled_from(sorted(WRITTEN)),
)
def test_codes_and_missing_codes_survive(tmp_path_factory, codes, missing, label, form):
    missing = tuple(text for text in missing if text not in codes)
    feature = Feature(
        "x",
        categories=tuple(codes),
        missing=("", *missing),
        value_labels=((codes[0], label), *((text, label) for text in missing)),
        dtype="string",
    )
    folder = tmp_path_factory.mktemp("c")
    path = written(
        folder, f"b.{ENDING.get(form, 'json')}", write_codebook(Schema((feature,)), form)
    )
    back = read_codebook(path)["x"]
    assert back.categories == feature.categories
    assert back.missing == feature.missing
    shown = {code: text for code, text in back.value_labels if text != code}
    assert shown == {code: text for code, text in feature.value_labels if text != code}


@pytest.mark.parametrize("extension", ["sav", "zsav", "dta"])
def test_headers_are_codebooks(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    frame = pl.DataFrame({"sex": [1.0, 2.0, -9.0], "town": ["a", "b", "c"], "age": [1.0, 2.0, 3.0]})
    labels = {"sex": {1: "male", 2: "female", -9: "refused"}, "age": {99: "99 or more"}}
    common = {"variable_value_labels": labels, "column_labels": {"sex": "the sex"}}
    if extension == "dta":
        pyreadstat.write_dta(frame, path, **common)
    else:
        pyreadstat.write_sav(
            frame,
            path,
            missing_ranges={"sex": [-9]},
            variable_measure={"age": "scale"},
            compress=extension == "zsav",
            **common,
        )
    schema = read_codebook(path)
    sex = schema["sex"]
    assert sex.label == "the sex"
    assert dict(sex.value_labels) == {"1": "male", "2": "female", "-9": "refused"}
    assert sex.dtype == "double"
    if extension != "dta":
        assert sex.categories == ("1", "2")
        assert sex.missing == ("", "-9")
        assert schema["age"].private_edges
        assert "OPEN: the codebook tells no limits" in schema["age"].notes[0]
    assert schema["town"].private_categories
    assert "OPEN: the codebook tells no values" in schema["town"].notes[0]
    assert schema.drafted_from_data == ()


def test_a_header_is_read_without_a_row(tmp_path):
    path = tmp_path / "t.sav"
    frame = pl.DataFrame({"sex": [1.0, 2.0] * 5000})
    pyreadstat.write_sav(frame, path, variable_value_labels={"sex": {1: "m", 2: "f"}})
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 16 * 4000])
    assert read_codebook(path)["sex"].categories == ("1", "2")


def test_missing_ranges_take_the_labelled_codes(tmp_path):
    path = tmp_path / "t.sav"
    frame = pl.DataFrame({"x": [1.0, -9.0]})
    labels = {"x": {1: "a", -8: "b", -9: "c"}}
    pyreadstat.write_sav(
        frame, path, variable_value_labels=labels, missing_ranges={"x": [{"lo": -99, "hi": -1}]}
    )
    assert set(read_codebook(path)["x"].missing) == {"", "-8", "-9"}


@pytest.mark.parametrize(
    ("name", "content", "categories", "kind"),
    [
        ("d.json", {"x": 3}, ("0", "1", "2"), "nominal"),
        (
            "nist.json",
            {"x": {"description": "area", "values": {"25-01": "A", "25-02": "B", "N": "n/a"}}},
            ("25-01", "25-02"),
            "nominal",
        ),
        (
            "nist.json",
            {"x": {"description": "age", "values": {"0 .. 9": "years"}}},
            "0123456789",
            "",
        ),
        (
            "p.json",
            {"schema": {"x": {"kind": "categorical", "values": ["a", "b"]}}},
            ("a", "b"),
            "",
        ),
        ("d.json", {"x": {"possible_values": ["a", "b", 3]}}, ("a", "b", "3"), "nominal"),
        ("d.json", {"x": ["a", "b"]}, ("a", "b"), "nominal"),
        (
            "d.json",
            {"x": {"min_value": 0, "max_value": 1, "type": "integer"}},
            ("0", "1"),
            "ordinal",
        ),
        ("d.json", {"attributes": [{"name": "x", "values": ["01", "02"]}]}, ("01", "02"), ""),
        ("p.json", {"schema": {"x": {"dtype": "uint8", "min": 0, "max": 2}}}, ("0", "1", "2"), ""),
        (
            "package.json",
            {
                "resources": [
                    {"schema": {"fields": [{"name": "x", "constraints": {"enum": ["a"]}}]}}
                ]
            },
            ("a",),
            "",
        ),
        (
            "w.json",
            {"tableSchema": {"columns": [{"titles": "x", "datatype": {"format": "^(a|b)$"}}]}},
            ("a", "b"),
            "",
        ),
        (
            "s.json",
            {"tables": {"t": {"columns": {"x": {"sdtype": "boolean"}, "k": {"sdtype": "id"}}}}},
            ("false", "true"),
            "",
        ),
    ],
)
def test_what_other_programs_have_is_read(tmp_path, name, content, categories, kind):
    found = read_codebook(written(tmp_path, name, content))["x"]
    assert found.categories == tuple(categories)
    assert not kind or found.kind == kind


def test_numbers_with_limits_are_binned(tmp_path):
    fields = [{"name": "x", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}}]
    found = read_codebook(written(tmp_path, "t.json", {"fields": fields}))["x"]
    assert (found.kind, found.edges[0], found.edges[-1]) == ("numeric", 0, 1000)


def test_dialects_of_codebooks_are_taken(tmp_path):
    book = replace(BOOK, dialect=Dialect(separator=";", encoding="windows-1252"))
    path = written(tmp_path, "w.json", write_codebook(book, "csvw"))
    assert read_codebook(path).dialect == book.dialect


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "not valid JSON"),
        ("a.json", "[]", "no codebook that is known"),
        ("a.json", {"x": None}, "no codebook that is known"),
        ("a.json", {"fields": []}, "describes no column"),
        ("a.json", {"fields": [{"type": "string"}]}, "has no name"),
        ("a.json", {"columns": {"x": {"sdtype": "id"}}}, "nothing but identifiers"),
        ("a.xml", "<codeBook>", "not valid XML"),
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a/>', "declares a document type"),
        ("a.csv", "code,label\n1,a\n", "say with --feature"),
        ("a.yaml", "x: [1]", "no codebook that is known"),
        ("a.doc", "x", "no codebook that is known"),
        ("a.sav", "x", "truncated or is not an SPSS file"),
    ],
)
def test_what_is_none_is_refused(tmp_path, name, content, words):
    path = written(tmp_path, name, content)
    with pytest.raises(SchemaError, match=words) as refused:
        read_codebook(path)
    assert str(refused.value).startswith(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for name in ("a.json", "a.sav", "a.xml"):
        with pytest.raises(SchemaError, match=r"cannot be read|no such file"):
            read_codebook(tmp_path / name)


def test_lists_of_codes_are_about_one_feature(tmp_path):
    path = written(tmp_path, "l.csv", "code;label\n01;eins\n02;zwei\n")
    schema = read_codebook(path, feature="x")
    assert schema["x"].categories == ("01", "02")
    assert dict(schema["x"].value_labels) == {"01": "eins", "02": "zwei"}
    for content, words in (
        ("1,a\n1,b\n", "twice"),
        ("1,a,b\n", "two columns"),
        ("", "two columns"),
    ):
        with pytest.raises(SchemaError, match=words):
            read_codebook(written(tmp_path, "l.csv", content), feature="x")


def test_the_command_takes_and_gives_codebooks(tmp_path):
    BOOK.save(tmp_path / "s.toml")
    book = tmp_path / "book.xml"
    done = pegs("schema", tmp_path / "s.toml", "--to", "ddi", "-o", book)
    assert done.code == 0, done.err
    done = pegs("schema", "--from", book, "-o", tmp_path / "n.toml")
    assert done.code == 0, done.err
    assert "no row was read" in done.err
    assert told(Schema.load(tmp_path / "n.toml")) == told(BOOK)
    codes = written(tmp_path, "l.csv", "a,Anna\nb,Bert\n")
    done = pegs("schema", "--from", codes, "--feature", "grade", "-o", tmp_path / "n.toml")
    assert done.code == 0, done.err
    assert Schema.load(tmp_path / "n.toml")["grade"].categories == ("a", "b")
    check_refused(pegs("schema", "--from", book, "-o", tmp_path / "s.toml"), "is reviewed")
    check_refused(pegs("schema", tmp_path / "s.toml", "--to", "x", "-o", book), "--to is one of")
    check_refused(pegs("schema", "t.csv", "--from", book, "-o", "x"), "takes one table")
    with pytest.raises(ParameterError):
        write_codebook(BOOK, "excel")


def test_a_draft_is_not_given_to_others(tmp_path):
    drafted = Schema((Feature("x", categories=("a",), drafted_from_data=True),))
    drafted.save(tmp_path / "d.toml")
    done = pegs("schema", tmp_path / "d.toml", "--to", "csvw", "-o", tmp_path / "o.json")
    check_refused(done, "nobody reviewed it")
    assert not (tmp_path / "o.json").exists()


def test_open_questions_are_comments_of_the_draft(tmp_path):
    content = {"fields": [{"name": "x", "type": "integer"}, {"name": "y", "type": "boolean"}]}
    path = written(tmp_path, "t.json", content)
    assert pegs("schema", "--from", path, "-o", tmp_path / "s.toml").code == 0
    text = (tmp_path / "s.toml").read_text()
    assert "# OPEN: the codebook tells no limits" in text
    assert loads(text)["x"].private_edges
    assert loads(text)["y"].categories == ("false", "true")
