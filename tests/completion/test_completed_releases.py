"""Completed tables by command and in Python: the release and its ledger do not change (R23)."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pegsynth
from command import SECRET, check_refused, done, pegs
from pegsynth import DataError, Feature, ParameterError, Schema
from pegsynth.pipeline.request import Request

SEX = Feature("=sex", categories=("=f", "m"), missing=("",))
WARD = Feature("ward", categories=("007", "7", SECRET))
PAY = Feature("pay", "numeric", edges=(0.0, 10.0, 20.0, 50.0), missing=("",))
BOOK = Schema((PAY, SEX, WARD), reviewed=True)
ONCE = ("--epsilon", 5, "--delta", 1e-6, "--method", "pegs-once", "--rows-in", 400)


def original(rows=400):
    random = np.random.default_rng(1)
    pay = np.round(random.exponential(12, rows).clip(0, 50), 1)
    return pl.DataFrame(
        {
            "pay": pl.Series(pay).set(pl.Series(random.random(rows) < 0.2), None),
            "=sex": pl.Series(random.choice(["=f", "m"], rows)).set(
                pl.Series(random.random(rows) < 0.3), None
            ),
            "ward": random.choice(["007", "7"], rows),
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    original().write_parquet(folder / "data.parquet")
    BOOK.save(folder / "schema.toml")
    return folder


def held(folder):
    """Every file of a folder by its name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def released(home, folder, *flags):
    done(
        *("release", home / "data.parquet", "--schema", home / "schema.toml", "--public-only"),
        *("--rows", 150, "--datasets", 3, "--threads", 1, "-o", folder, *flags),
    )
    return held(folder / "public")


@pytest.mark.parametrize("flags", [ONCE, ("--epsilon-per-row", 5)], ids=["pegs-once", "pegs"])
def test_the_same_tables_and_ledger_with_and_without(home, tmp_path, flags):
    plain = released(home, tmp_path / "plain", *flags, "--seed", 3)
    more = released(home, tmp_path / "more", *flags, "--seed", 3, "--complete", "--imputations", 2)
    # Pages that list the files of the folder list those of completed tables too.
    listing = {"README.md", "SHA256SUMS", "croissant.json", "dcat.jsonld"}
    same = set(plain) - {"HOW-TO-ANALYSE.md", "dp-registry.yaml", "release.intoto.json", *listing}
    assert {name: more[name] for name in same} == {name: plain[name] for name in same}
    names = {f"completed-{k}-{j}.csv" for k in (1, 2, 3) for j in (1, 2)}
    assert set(more) - set(plain) == names | {f"{name}-metadata.json" for name in names}
    assert all(name.encode() in more["SHA256SUMS"] for name in names)


def test_completed_files_differ_from_the_table_in_missing_cells_alone(home, tmp_path):
    released(home, tmp_path / "out", *ONCE, "--complete")
    release = pegsynth.Release.load(tmp_path / "out")
    assert [len(versions) for versions in release.completed] == [3, 3, 3]
    for raw, versions in zip(release.frames, release.completed, strict=True):
        assert sum(raw.null_count().row(0)) > 0
        for each in versions:
            assert sum(each.null_count().row(0)) == 0
            for name in raw.columns:
                seen = raw[name].is_not_null()
                assert each[name].filter(seen).equals(raw[name].drop_nulls())
    pooled = pegsynth.pooled(lambda rows: (rows["pay"].mean(), 1.0), release)
    assert pooled.combined.rule == "own-noise"


def test_a_completed_release_may_be_replaced(home, tmp_path):
    released(home, tmp_path / "out", *ONCE, "--complete")
    found = released(home, tmp_path / "out", *ONCE, "--force")
    assert not any(name.startswith("completed") for name in found)


def test_one_table_comes_completed(home, tmp_path):
    out, model = tmp_path / "out.csv", tmp_path / "model.pegs"
    schema = ("--schema", home / "schema.toml")
    done("synthesize", home / "data.parquet", *schema, "--rows", 90, *ONCE, "--complete", "-o", out)
    assert sum(pl.read_csv(out).null_count().row(0)) == 0
    done("fit", home / "data.parquet", *schema, *ONCE, "-o", model)
    done("sample", model, "--rows", 90, "--complete", "-o", tmp_path / "sampled.parquet")
    assert sum(pl.read_parquet(tmp_path / "sampled.parquet").null_count().row(0)) == 0
    ledgers = [(tmp_path / f"{name}.privacy.json").read_text() for name in ("out.csv",)]
    assert all("imput" not in text for text in ledgers)


def test_impute_does_to_files_what_a_release_does(home, tmp_path):
    released(home, tmp_path / "out", *ONCE, "--complete", "--seed", 8)
    public = tmp_path / "out" / "public"
    done(
        *("impute", public / "synthetic-1.csv", public / "synthetic-2.csv"),
        *("--schema", public / "schema.toml", "-o", tmp_path / "own", "--seed", 8),
    )
    found = held(tmp_path / "own")
    assert set(found) == {f"completed-{k}-{j}.csv" for k in (1, 2) for j in (1, 2, 3)}
    assert all(data == (public / name).read_bytes() for name, data in found.items())


def test_impute_writes_one_file(home, tmp_path):
    original().write_parquet(tmp_path / "table.parquet")
    out = tmp_path / "out.parquet"
    done(
        *("impute", tmp_path / "table.parquet", "--schema", home / "schema.toml"),
        *("-o", out, "--imputations", 1),
    )
    assert pl.read_parquet(out).schema == pl.read_parquet(tmp_path / "table.parquet").schema


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--imputations", 3), "--imputations requires --complete"),
        (("--complete", "--imputations", 1), "at least 2"),
        (("--complete", "--imputations", 0), "at least 2"),
        (("--complete", "--replicates", 5, *ONCE), "state --datasets instead"),
        (("--complete", "--synthesize", "pay"), "leave one of the two out"),
        (("--complete", "--where", "pay=", *ONCE), "keeps 'pay' missing in every row"),
    ],
)
def test_flags_that_do_not_go_together(home, tmp_path, flags, message):
    outcome = pegs(
        *("release", home / "data.parquet", "--schema", home / "schema.toml", "--rows", 50),
        *("-o", tmp_path / "out", *flags),
    )
    check_refused(outcome, message)
    assert not (tmp_path / "out").exists()


def test_a_given_value_is_no_hindrance(home, tmp_path):
    done(
        *("release", home / "data.parquet", "--schema", home / "schema.toml", "--rows", 50),
        *("-o", tmp_path / "out", "--complete", "--where", "ward=7", "--public-only", *ONCE),
    )
    for table in pegsynth.Release.load(tmp_path / "out").completed[0]:
        assert set(table["ward"]) == {7}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ((WARD,), "no feature of the schema has missing values"),
        ((WARD, Feature("empty", missing=("",))), "'empty' has no value but missing"),
    ],
)
def test_schemas_that_leave_nothing_to_complete(features, message):
    table = pl.DataFrame({f.name: ["7"] * 20 if f is WARD else [None] * 20 for f in features})
    table = table.cast(pl.String)
    book = Schema(features, reviewed=True)
    with pytest.raises(ParameterError, match=message):
        pegsynth.synthesize(table, book, rows=5, alpha=1, method="pegs", complete=True)


def test_tables_that_leave_nothing_to_impute(home, tmp_path):
    whole = original().drop_nulls()
    whole.write_csv(tmp_path / "whole.csv")
    asked = ("--schema", home / "schema.toml", "-o", tmp_path / "out")
    outcome = pegs("impute", tmp_path / "whole.csv", *asked)
    check_refused(outcome, "whole.csv", "no value is missing; use the table as it is")
    original().with_columns(pl.lit(None, pl.Float64).alias("pay")).write_csv(tmp_path / "no.csv")
    check_refused(pegs("impute", tmp_path / "no.csv", *asked), "no.csv", "column 'pay'")
    original().with_columns(pl.lit(SECRET * 2).alias("ward")).write_csv(tmp_path / "odd.csv")
    check_refused(pegs("impute", tmp_path / "odd.csv", *asked), "odd.csv", "column 'ward'")
    check_refused(pegs("impute", tmp_path / "lost.csv", *asked), "lost.csv")
    check_refused(pegs("impute", tmp_path / "no.csv", *asked, "--imputations", 0), "imputations")
    assert not (tmp_path / "out").exists()
    asked = ("--schema", home / "schema.toml", "-o", tmp_path / "out.csv")
    check_refused(pegs("impute", tmp_path / "no.csv", *asked), "name a folder with -o")
    outcome = pegs("impute", tmp_path / "no.csv", *asked[:2], "-o", tmp_path / "no.csv")
    check_refused(outcome, "read as input")


def test_the_kind_of_a_dataframe_stays():
    table = original().to_pandas()
    release = pegsynth.synthesize(
        table, BOOK, rows=80, datasets=2, alpha=1, method="pegs", complete=True, imputations=2
    )
    assert all(isinstance(each, pd.DataFrame) for each in release.completed[1])
    assert release.completed[1][1].isna().sum().sum() == 0
    again = pegsynth.impute(release, imputations=2)
    assert [len(versions) for versions in again] == [2, 2]
    assert isinstance(again[0][0], pd.DataFrame)
    assert again[0][0].dtypes.equals(release.frames[0].dtypes)


def test_a_saved_release_keeps_its_completed_tables(tmp_path):
    release = pegsynth.synthesize(
        original(), BOOK, rows=80, datasets=2, method="cart", complete=True
    )
    release.save(tmp_path / "out")
    loaded = pegsynth.Release.load(tmp_path / "out")
    assert [len(versions) for versions in loaded.completed] == [3, 3]
    assert "**nested**" in (tmp_path / "out/public/HOW-TO-ANALYSE.md").read_text()


def test_models_sample_completed_tables(tmp_path):
    model = pegsynth.fit(original(), BOOK, epsilon=5, delta=1e-6, method="pegs-once")
    assert model.sample(60, complete=True).null_count().row(0) == (0, 0, 0)
    release = model.sample(60, datasets=2, complete=True, imputations=2)
    assert [len(versions) for versions in release.completed] == [2, 2]
    assert not model.sample(60, datasets=2).completed
    with pytest.raises(ParameterError, match="imputations requires datasets"):
        model.sample(60, complete=True, imputations=2)
    with pytest.raises(ParameterError, match="imputations requires complete"):
        model.sample(60, imputations=2)
    model.save(tmp_path / "model.pegs")
    assert model.sample(60, complete=True).null_count().row(0) == (0, 0, 0)


def test_python_refuses_what_the_command_refuses():
    with pytest.raises(ParameterError, match="pegs impute"):
        Request(complete=True, engine="spark")
    with pytest.raises(ParameterError, match="state the schema"):
        pegsynth.impute(original())
    with pytest.raises(ParameterError, match="no table to complete"):
        pegsynth.impute([], BOOK)
    with pytest.raises(DataError, match="no value is missing"):
        pegsynth.impute(original().drop_nulls(), BOOK)


def test_models_that_cannot_be_completed(tmp_path):
    model = pegsynth.fit(
        original(), BOOK, epsilon=5, delta=1e-6, method="pegs-once", rows=50, replicates=3
    )
    with pytest.raises(ParameterError, match="cannot be combined with replicate weights"):
        model.sample(60, complete=True)
    partial = pegsynth.PeGS(synthesize="pay", alpha=1, no_guarantee=True)
    partial.fit(original(), schema=BOOK)
    with pytest.raises(ParameterError, match="keeps original ones"):
        partial._fitted.sample(400, complete=True)


def test_categories_that_are_found_privately_are_completed_too():
    """Until a release has found them the schema lists none (R29)."""
    sex = Feature("=sex", categories="private", missing=("",))
    book = Schema((PAY, sex, WARD), reviewed=True)
    release = pegsynth.synthesize(
        original(2000), book, rows=200, epsilon=20, delta=1e-6, method="pegs-once", complete=True
    )
    for completed in release.completed[0]:
        assert completed.null_count().row(0) == (0, 0, 0)
