"""``pegs evaluate``: what it prints and writes, and how it refuses."""

import json
import os
import stat

import polars as pl
import pytest

from command import SECRET, check_refused, done, pegs, snapshot
from pegsynth.evaluation import Metrics


@pytest.fixture
def tables(folder):
    """Add two synthetic tables and a hold-out of the same columns."""
    table = pl.read_csv(folder / "data.csv", infer_schema=False)
    for number, name in enumerate(("s1", "s2", "holdout")):
        table.sample(200, with_replacement=True, seed=number).write_csv(folder / f"{name}.csv")
    return folder


@pytest.fixture
def no_figures(monkeypatch):
    """Leave the figures out, which take most of the time."""
    monkeypatch.setattr("pegsynth.publishing.report.html.write_figures", lambda metrics, folder: [])


def evaluate(folder, *arguments):
    return pegs("evaluate", *arguments, "--schema", folder / "schema.toml")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_summary_is_printed_and_nothing_is_written(tables):
    before = snapshot(tables)
    outcome = evaluate(tables, tables / "data.csv", tables / "s1.csv")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("measure ")
    for name in ("tvd1", "tvd2", "pmse_ratio", "conditional_distance"):
        assert f"\n{name} " in outcome.out
    assert "regression_distance: not computed: no regression formula was given" in outcome.out
    assert snapshot(tables) == before


def test_everything_is_written_for_its_owner_only(tables, no_figures):
    report, metrics = tables / "report.html", tables / "metrics.json"
    outcome = evaluate(
        tables,
        tables / "data.csv",
        tables / "s1.csv",
        tables / "s2.csv",
        *("--report", report, "--json", metrics, "--per-record"),
        *("--holdout", tables / "holdout.csv", "--target", "a"),
        *("--formula", "n ~ a", "--formula", "c ~ a + n"),
        *("--known", "a,b", "--infer", "c", "--known", "a", "--infer", "n"),
        *("--threads", 1),
    )
    assert outcome.code == 0, outcome.err
    found = Metrics.from_json(metrics.read_bytes())
    assert found.record("coefficient", "n ~ a :: a[y]").value is not None
    assert found.record("intruder_error", "c | a, b").value is not None
    assert found.record("intruder_error", "n | a").value is not None
    assert found.record("auc_synthetic", "a").low is not None
    rows = tables / "metrics-per-record-INTERNAL.parquet"
    assert pl.read_parquet(rows).height == 300
    assert [mode(path) for path in (report, metrics, rows)] == [0o600] * 3
    assert "CONFIDENTIAL" in outcome.err
    assert "INTERNAL ONLY" in outcome.err
    page = report.read_text()
    assert "nothing is known about a guarantee" in page.lower()


@pytest.mark.slow
def test_figures_are_written_beside_the_page(tables):
    outcome = evaluate(
        tables, tables / "data.csv", tables / "s1.csv", "--report", tables / "r.html"
    )
    assert outcome.code == 0, outcome.err
    figures = sorted((tables / "r-figures").iterdir())
    assert {path.suffix for path in figures} == {".png", ".svg"}
    assert {mode(path) for path in figures} == {0o600}


def test_the_ledger_comes_first_on_the_page(tables, no_figures):
    done(
        *("synthesize", tables / "data.csv", "--schema", tables / "schema.toml"),
        *("--method", "pegs", "--epsilon", 1, "--rows", 50, "-o", tables / "out.csv"),
        *("--seed-pool", "uniform", "--order", "public", "--heads", 1),
    )
    outcome = evaluate(
        tables,
        tables / "data.csv",
        tables / "out.csv",
        *("--report", tables / "r.html", "--ledger", tables / "out.csv.privacy.json"),
    )
    assert outcome.code == 0, outcome.err
    page = (tables / "r.html").read_text()
    assert "Differentially private" in page
    assert page.index("Differentially private") < page.index("wo-way tables")


def test_a_schema_nobody_reviewed_will_do(tables):
    schema = tables / "schema.toml"
    schema.write_text(schema.read_text().replace("reviewed = true", "reviewed = false"))
    assert evaluate(tables, tables / "data.csv", tables / "s1.csv").code == 0


def test_globs_and_kinds_of_files(tables):
    table = pl.read_csv(tables / "s1.csv", infer_schema=False)
    table.head(100).write_parquet(tables / "part-1.parquet")
    table.tail(100).write_parquet(tables / "part-2.parquet")
    table.write_ipc(tables / "s1.arrow")
    results = []
    for number, source in enumerate(("s1.csv", "part-*.parquet", "s1.arrow")):
        target = tables / f"{number}.json"
        outcome = evaluate(tables, tables / "data.csv", tables / source, "--json", target)
        assert outcome.code == 0, outcome.err
        results.append(json.loads(target.read_text())["summary"])
    assert results[0] == results[1] == results[2]


def test_faults_of_a_synthetic_table_are_said(tables, no_figures):
    table = pl.read_csv(tables / "s1.csv", infer_schema=False)
    values = [table["a"][0], *[SECRET] * (table.height - 1)]
    strange = table.drop("b").with_columns(pl.Series("a", values), pl.lit("1").alias("extra"))
    strange.write_csv(tables / "strange.csv")
    outcome = evaluate(
        tables,
        *(tables / "data.csv", tables / "strange.csv", "--json", tables / "m.json"),
        *("--report", tables / "r.html"),
    )
    assert outcome.code == 0, outcome.err
    assert "missing column: b: not in synthetic table 1" in outcome.out
    assert "unknown values: a: share of values" in outcome.out
    assert "extra columns: synthetic table 1" in outcome.out
    written = [(tables / name).read_text() for name in ("m.json", "r.html")]
    assert not any(SECRET in text for text in (outcome.out, outcome.err, *written))
    assert "missing_column" in written[0]
    assert "Missing column" in written[1]


def test_a_column_without_a_listed_value_is_refused(tables):
    table = pl.read_csv(tables / "s1.csv", infer_schema=False)
    table.with_columns(pl.lit(SECRET).alias("a")).write_csv(tables / "strange.csv")
    before = snapshot(tables)
    outcome = evaluate(
        tables,
        *(tables / "data.csv", tables / "strange.csv", "--json", tables / "m.json"),
    )
    check_refused(outcome, "strange.csv", "column 'a' of synthetic table 1", "as the schema lists")
    assert snapshot(tables) == before


def test_tables_without_a_common_column_are_refused(tables):
    (tables / "other.csv").write_text("x,y\n1,2\n")
    outcome = evaluate(tables, tables / "data.csv", tables / "other.csv")
    check_refused(outcome, "other.csv", "data.csv", "no column in common", "columns of the schema")
    assert outcome.out == ""


def test_a_hold_out_that_is_a_part_of_the_original_is_named(tables, no_figures):
    numbers = [f"{i / 8:.3f}" for i in range(400)]
    (tables / "wide.csv").write_text("i,j\n" + "".join(f"{n},{n}\n" for n in numbers))
    (tables / "part.csv").write_text("i,j\n" + "".join(f"{n},{n}\n" for n in numbers[:60]))
    edges = [i / 8 for i in range(401)]
    features = [f'name = "{name}"\nkind = "numeric"\nedges = {edges}\n' for name in "ij"]
    schema = "reviewed = true\n" + "".join(f"[[features]]\n{text}" for text in features)
    (tables / "wide.toml").write_text(schema)
    outcome = pegs(
        *("evaluate", tables / "wide.csv", tables / "wide.csv", "--schema", tables / "wide.toml"),
        *("--holdout", tables / "part.csv", "--report", tables / "r.html"),
    )
    assert outcome.code == 0, outcome.err
    words = "60 of the 60 rows of the hold-out are rows of the original"
    assert f"warning: {words}" in outcome.err
    assert "Hold-out rows among the original rows" in (tables / "r.html").read_text()


def test_an_empty_synthetic_table_is_said(tables, no_figures):
    (tables / "empty.csv").write_text("a,b,c,n\n")
    outcome = evaluate(
        tables, tables / "data.csv", tables / "empty.csv", "--report", tables / "r.html"
    )
    assert outcome.code == 0, outcome.err
    assert "tvd1: not computed: no synthetic table has a row" in outcome.out
    assert "empty table: synthetic table 1" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["data.csv", "absent.csv"], ["absent.csv", "no such file"]),
        (["absent.csv", "s1.csv"], ["absent.csv", "no such file"]),
        (["data.csv", "schema.toml"], ["schema.toml", "extension"]),
        (["data.csv", "s1.csv", "--holdout", "absent.csv"], ["absent.csv"]),
        (["data.csv", "s1.csv", "--ledger", "absent.json"], ["absent.json"]),
        (["data.csv", "s1.csv", "--ledger", "data.csv"], ["data.csv"]),
        (["data.csv", "s1.csv", "--formula", "n ~ zzz"], ["zzz"]),
        (["data.csv", "s1.csv", "--formula", "n ~ exec(1)"], ["cannot be read"]),
        (["data.csv", "s1.csv", "--target", "zzz"], ["zzz"]),
        (["data.csv", "s1.csv", "--known", "zzz"], ["zzz"]),
        (["data.csv", "s1.csv", "--per-record"], ["--per-record", "--json"]),
        (["data.csv", "s1.csv", "--threads", "0"], ["--threads"]),
        (["data.csv", "s1.csv", "--json", "s1.csv"], ["s1.csv", "read as input"]),
        (["data.csv", "s1.csv", "--report", "schema.toml"], ["schema.toml", "read as input"]),
        (["data.csv", "s1.csv", "--report", "x", "--json", "x"], ["same file"]),
        (["data.csv", "s1.csv", "--json", "absent/m.json"], ["absent/m.json"]),
        (["data.csv"], ["SYNTHETIC"]),
    ],
)
def test_what_cannot_be_done_is_refused(tables, monkeypatch, arguments, names):
    monkeypatch.chdir(tables)
    before = snapshot(tables)
    check_refused(evaluate(tables, *arguments), *names)
    assert snapshot(tables) == before


def test_the_original_must_fit_its_schema(tables):
    table = pl.read_csv(tables / "data.csv", infer_schema=False)
    table.with_columns(pl.lit(SECRET).alias("a")).write_csv(tables / "odd.csv")
    check_refused(evaluate(tables, tables / "odd.csv", tables / "s1.csv"), "odd.csv", "'a'")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tables):
    (tables / "s1.csv").chmod(0)
    check_refused(evaluate(tables, tables / "data.csv", tables / "s1.csv"), "s1.csv")
