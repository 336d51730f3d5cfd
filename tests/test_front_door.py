"""`fit`, `load`, `plan`, `release`, `Release.save`, `audit` and `report` as analysts call them."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pegsynth
from contract import contract_schema, contract_table
from pegsynth.errors import BudgetError, DataError, ModelError, OutputError, ParameterError

SCHEMA, TABLE = contract_schema(), contract_table()
ONCE = {"method": "pegs-once", "epsilon": 3.0}


def test_a_model_is_fitted_sampled_saved_and_loaded(tmp_path):
    model = pegsynth.fit(TABLE, SCHEMA, **ONCE)
    assert model.sample(30).height == 30
    assert model.rows_left is None
    release = model.sample(20, datasets=3, where={"a": "y"})
    assert [frame.height for frame in release] == [20, 20, 20]
    assert all(set(frame["a"]) == {"y"} for frame in release)
    assert release.ledger.guarantee.epsilon == pytest.approx(3.0)
    model.save(tmp_path / "m.pegs")
    again = pegsynth.load(tmp_path / "m.pegs")
    assert again.schema == SCHEMA
    assert again.sample(7).height == 7
    assert set(again.sample(9, where={"a": "z"})["a"]) == {"z"}
    assert "pegs-once model of 5 features, any number of rows" in repr(again)


def test_one_budget_for_the_model_in_memory_and_for_its_file(tmp_path):
    """Once it is saved, both spend from the record beside the file."""
    model = pegsynth.fit(TABLE, SCHEMA, method="pegs", epsilon=5.0, rows=100)
    model.sample(40)
    model.save(tmp_path / "m.pegs")
    again = pegsynth.load(tmp_path / "m.pegs")
    assert again.rows_left == model.rows_left == 60
    model.sample(50)
    assert again.rows_left == model.rows_left == 10
    for each in (model, again):
        with pytest.raises(BudgetError, match="covers 10 more rows"):
            each.sample(11)
    assert again.sample(10).height == 10
    assert model.rows_left == 0


def test_no_way_around_the_record_of_a_saved_model(tmp_path):
    """A second file, or the session in memory, would each spend the same budget again."""
    model = pegsynth.fit(TABLE, SCHEMA, method="pegs", epsilon=5.0, rows=100)
    assert model.session.left() == 100
    model.save(tmp_path / "m.pegs")
    with pytest.raises(BudgetError, match="second record of the same budget"):
        model.save(tmp_path / "n.pegs")
    assert not (tmp_path / "n.pegs").exists()
    with pytest.raises(BudgetError, match="spent through that file"):
        _ = model.session
    free = pegsynth.fit(TABLE, SCHEMA, **ONCE)
    for name in ("a.pegs", "b.pegs"):
        free.save(tmp_path / name)
    assert free.session.left() is None


def test_where_is_part_of_the_price_elsewhere(tmp_path):
    model = pegsynth.fit(TABLE, SCHEMA, method="pegs", epsilon=5.0, rows=100)
    with pytest.raises(ParameterError, match="where is settled when a model of pegs is fitted"):
        model.sample(5, where={"a": "y"})
    model.save(tmp_path / "m.pegs")
    with pytest.raises(ParameterError, match="leave out where"):
        pegsynth.load(tmp_path / "m.pegs").sample(5, where={"a": "y"})


def test_a_model_keeps_the_kind_of_table_it_was_fitted_to():
    model = pegsynth.fit(TABLE.to_pandas(), SCHEMA, **ONCE)
    assert isinstance(model.sample(5), pd.DataFrame)
    assert all(isinstance(frame, pd.DataFrame) for frame in model.sample(5, datasets=2))


def test_a_loaded_model_samples_what_was_fitted(tmp_path, monkeypatch):
    for kind, made in ((pd.DataFrame, TABLE.to_pandas()), (pa.Table, TABLE.to_arrow())):
        file = tmp_path / f"{kind.__name__}.pegs"
        pegsynth.fit(made, SCHEMA, **ONCE).save(file)
        assert isinstance(pegsynth.load(file).sample(5), kind)
        assert isinstance(pegsynth.load(file).sample(5, datasets=2).frames[1], kind)
    pegsynth.fit(TABLE, SCHEMA, **ONCE).save(tmp_path / "polars.pegs")
    assert isinstance(pegsynth.load(tmp_path / "polars.pegs").sample(5), pl.DataFrame)
    # Where there is no pandas, a model that was fitted to its tables can be sampled, too.
    monkeypatch.setattr(pegsynth.api.fitted, "find_spec", lambda name: None)
    assert isinstance(pegsynth.load(tmp_path / "DataFrame.pegs").sample(5), pl.DataFrame)


def test_the_method_is_chosen_as_a_release_would():
    model = pegsynth.fit(TABLE, SCHEMA, epsilon=3.0, rows=50)
    planned = pegsynth.plan(SCHEMA, epsilon=3.0, rows=50)
    assert model.plan.method == planned.best.method


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "pegs"}, BudgetError, "method pegs is fitted under a budget"),
        ({"method": "pegs", "epsilon": 1.0}, ParameterError, "rows is needed"),
        ({"datasets": 3, **ONCE}, ParameterError, "no argument 'datasets'"),
        ({"resume": "file", **ONCE}, ParameterError, "resume requires"),
    ],
)
def test_fits_that_cannot_be(options, error, words):
    with pytest.raises(error, match=words):
        pegsynth.fit(TABLE, SCHEMA, **options)


def test_a_file_that_is_no_model(tmp_path):
    with pytest.raises(ModelError, match="there is no such model file"):
        pegsynth.load(tmp_path / "m.pegs")


def test_a_plan_reads_no_data_and_needs_a_budget():
    planned = pegsynth.plan(SCHEMA, epsilon=2.0, delta=1e-6, rows=100, visits=5)
    assert [each.method for each in planned.predictions][:3] == ["pegs", "pegs-rs", "pegs-capped"]
    assert planned.predictions[2].plan.options.visits == 5
    with pytest.raises(BudgetError, match="a plan needs epsilon"):
        pegsynth.plan(SCHEMA, rows=100)


def test_a_release_folder_from_python(tmp_path):
    folder = tmp_path / "run"
    release = pegsynth.release(TABLE, SCHEMA, folder=folder, rows=40, datasets=2, **ONCE)
    assert (folder / "internal" / "report.html").is_file()
    assert release.folder == folder
    assert [frame.height for frame in release] == [40, 40]
    told = json.loads((folder / "public" / "privacy.json").read_text())
    assert told["guarantee"]["epsilon"] == pytest.approx(3)
    assert pegsynth.Release.load(folder / "public").frames[0].equals(release.frames[0])
    with pytest.raises(OutputError, match="exists"):
        pegsynth.release(TABLE, SCHEMA, folder=folder, rows=40, **ONCE)
    with pytest.raises(ParameterError, match="format is csv or parquet"):
        pegsynth.release(TABLE, SCHEMA, folder=tmp_path / "x", rows=4, table_format="xls", **ONCE)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_a_release_is_saved_with_its_papers(tmp_path, table_format):
    release = pegsynth.synthesize(TABLE.to_pandas(), SCHEMA, rows=30, datasets=2, **ONCE)
    saved = release.save(tmp_path / "out", table_format=table_format)
    public = saved.folder / "public"
    names = {path.name for path in public.iterdir()}
    assert {"privacy.json", "PRIVACY.md", "HOW-TO-ANALYSE.md", "schema.toml"} <= names
    assert {f"synthetic-{number}.{table_format}" for number in (1, 2)} <= names
    again = pegsynth.Release.load(tmp_path / "out")
    assert again.ledger == release.ledger
    first = pl.from_pandas(release.frames[0])
    assert again.frames[0].select("a", "d").equals(first.select("a", "d"))
    with pytest.raises(OutputError):
        release.save(tmp_path / "out")
    release.save(tmp_path / "out", force=True)
    with pytest.raises(DataError, match=r"no privacy\.json"):
        pegsynth.Release.load(tmp_path)


def test_an_evaluation_becomes_a_page(tmp_path):
    release = pegsynth.synthesize(TABLE, SCHEMA, rows=200, **ONCE)
    found = pegsynth.evaluate(TABLE, release, SCHEMA)
    page = pegsynth.report(found, tmp_path / "r.html", ledger=release.ledger)
    assert page.stat().st_mode & 0o777 == 0o600
    assert "epsilon" in page.read_text()


def test_an_audit_from_python():
    findings = pegsynth.audit("marginal")
    assert findings
    assert all(finding.holds for finding in findings)
    with pytest.raises(ParameterError, match="method is one of"):
        pegsynth.audit("nonsense")
