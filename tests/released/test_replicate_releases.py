"""Replicates as users get them: `--replicates`, `--datasets`, `--shared-noise`, `supported`."""

import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from contract import contract_schema, contract_table
from pegsynth.errors import ParameterError
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.inference.choice import design_of, rule_for, weights_of
from pegsynth.inference.combining_rules import ReplicateDesign
from pegsynth.schema import Feature, Schema

SCHEMA, TABLE = contract_schema(), contract_table(2000)
ONCE = {"method": "pegs-once", "epsilon": 20.0}


def options_of(ledger):
    return [a.parameters for a in ledger.assumptions if a.code == "public-options"]


def share(table, weights):
    return {"y": np.average(table["a"].to_numpy() == "y", weights=weights)}


def test_several_tables_have_noise_of_their_own_unless_it_is_shared():
    own = pegsynth.synthesize(TABLE, SCHEMA, rows=500, datasets=3, **ONCE)
    shared = pegsynth.synthesize(TABLE, SCHEMA, rows=500, datasets=3, shared_noise=True, **ONCE)
    assert [frame.height for frame in own] == [500] * 3
    assert options_of(own.ledger)[0]["noise"] == "own"
    assert options_of(shared.ledger)[0]["noise"] == "shared"
    assert rule_for(own.ledger, 3).rule == "own-noise"
    assert rule_for(shared.ledger, 3).rule == "plug-in"
    # One table has no other to share its noise with.
    assert "noise" not in options_of(pegsynth.synthesize(TABLE, SCHEMA, rows=9, **ONCE).ledger)[0]


def test_own_noise_shows_in_the_spread_of_the_tables():
    """At a small epsilon shared noise hides: tables agree with each other and not with the truth.

    The ratio of spreads is about 80 here; that it falls below 2 by chance is less likely than
    1e-6 (F with 9 and 9 degrees of freedom at 1600).
    """
    loud = {"method": "pegs-once", "epsilon": 0.5, "rows": 2000, "datasets": 10}
    spreads = [
        np.std([(frame["a"] == "y").mean() for frame in release])
        for release in (
            pegsynth.synthesize(TABLE, SCHEMA, **loud),
            pegsynth.synthesize(TABLE, SCHEMA, shared_noise=True, **loud),
        )
    ]
    assert spreads[0] > 2 * spreads[1]


def test_weights_for_every_row(tmp_path):
    release = pegsynth.synthesize(TABLE, SCHEMA, rows=400, replicates=5, **ONCE)
    (frame,) = release
    names = ["pegs_weight", *(f"pegs_weight_{k}" for k in range(1, 6))]
    assert frame.columns[-6:] == names
    assert frame.height == 400
    assert float(frame["pegs_weight"].sum()) == pytest.approx(2000, rel=0.1)
    assert options_of(release.ledger)[0]["replicates"] == 5
    found = pegsynth.replicated(share, frame, ledger=release.ledger).to_frame()
    truth = float((TABLE["a"] == "y").mean())
    assert abs(float(found["estimate"][0]) - truth) < 0.1


def test_a_model_gives_replicates_for_nothing(tmp_path):
    model = pegsynth.fit(TABLE, SCHEMA, rows=300, **ONCE)
    weighted = model.replicates(4)
    assert weighted.columns[-1] == "pegs_weight_4"
    found = pegsynth.replicated(share, weighted, ledger=model.ledger)
    assert found.combined.rule == "replicate-weights"
    release = model.sample(100, datasets=3)
    assert rule_for(release.ledger, 3).rule == "own-noise"
    assert release.ledger.guarantee == model.ledger.guarantee
    model.save(tmp_path / "m.pegs")
    again = pegsynth.load(tmp_path / "m.pegs")
    assert again.replicates(3, rows=50).height == 50
    assert rule_for(again.sample(60, datasets=2).ledger, 2).rule == "own-noise"


def test_what_cannot_be_replicated():
    with pytest.raises(ParameterError, match="replicates requires method pegs-once, pegs-tables"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=9, method="pegs", epsilon=5.0, replicates=5)
    with pytest.raises(ParameterError, match="leave one of them out"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=9, datasets=2, replicates=5, **ONCE)
    with pytest.raises(ParameterError, match="must be 0, or 2 to 1000"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=9, replicates=1, **ONCE)
    model = pegsynth.fit(TABLE, SCHEMA, method="pegs", epsilon=5.0, rows=50)
    with pytest.raises(ParameterError, match="weight_name are settled when"):
        model.replicates(3)


# What the weights are called

PERSON = Feature("id", role="identifier")
KILOS = Feature("weight", kind="numeric", edges=(0.0, 60.0, 80.0, 200.0))
CLINIC = pl.DataFrame(
    {
        "id": [str(k) for k in range(300)],
        "sex": ["f", "m", "m"] * 100,
        "weight": [50.0 + k % 60 for k in range(300)],
        "weight_1": [1, 2, 3] * 100,
        "weight_2": [3, 2, 1] * 100,
    }
)
SEX = Feature("sex", categories=("f", "m"))
DROPPED = tuple(Feature(name, role="identifier") for name in ("weight", "weight_1", "weight_2"))


@pytest.mark.parametrize(
    "columns", [(KILOS, *DROPPED[1:]), DROPPED], ids=["a feature", "a column that is dropped"]
)
@pytest.mark.parametrize("name", [None, "w"])
def test_a_column_named_weight_does_not_stand_in_the_way(tmp_path, columns, name):
    book = Schema((PERSON, SEX, *columns), reviewed=True)
    book.save(tmp_path / "schema.toml")
    CLINIC.write_csv(tmp_path / "data.csv")
    called = () if name is None else ("--weight-name", name)
    name = name or "pegs_weight"
    done(*("release", tmp_path / "data.csv", "--schema", tmp_path / "schema.toml"),
         *("--method", "pegs-once", "--epsilon", 20, "--rows", 200, "--replicates", 3, *called),
         *("-o", tmp_path / "run"))  # fmt: skip
    release = pegsynth.Release.load(tmp_path / "run")
    weights = [name, *(f"{name}_{k}" for k in (1, 2, 3))]
    assert release.weights[0].columns == weights
    assert release.frames[0].columns == ["sex", *(c.name for c in columns if not c.dropped)]
    assert list(weights_of(release.ledger)) == weights
    listed = [column.name for column in release.schema.columns]
    assert listed == [column.name for column in book.columns]
    women = release.replicated(
        lambda rows, by: np.average(rows["sex"].to_numpy() == "f", weights=by)
    )
    assert float(women.to_frame()["estimate"][0]) == pytest.approx(1 / 3, abs=0.1)
    public = tmp_path / "run" / "public"
    page = (public / "HOW-TO-ANALYSE.md").read_text()
    for code in (f"weights = ~{name},", f"[pw={name}]", f"weight {name};", f"^{name}(_[0-9]+)?$"):
        assert code in page
    ran = subprocess.run(
        [sys.executable, "-c", re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]],
        cwd=public, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    # Whoever judges the tables counts rows by their weights, told of the name or not.
    for schema in (tmp_path / "schema.toml", public / "schema.toml"):
        tables = read_tables(
            str(tmp_path / "data.csv"),
            [str(public / "synthetic-1.csv")],
            Schema.load(schema),
            threads=1,
        )
        assert tables.weighted


@pytest.mark.parametrize(
    "taken",
    [
        Feature("pegs_weight", categories=("a", "b")),
        Feature("pegs_weight_2", categories=("a", "b")),
        Feature("pegs_weight", role="identifier"),
        Feature("PEGS_Weight_1", categories=("a", "b")),
    ],
    ids=["a feature", "a replicate", "a column that is dropped", "another case"],
)
def test_names_that_are_taken_are_refused_before_anything_is_read(tmp_path, taken):
    book = Schema((SEX, taken), reviewed=True)
    asked = {"rows": 9, "replicates": 3, **ONCE}
    with pytest.raises(ParameterError, match="choose another name with weight_name"):
        pegsynth.synthesize("no-such-table.csv", book, **asked)
    data = pl.DataFrame({"sex": ["f", "m"] * 20, taken.name: ["a", "b"] * 20})
    (frame,) = pegsynth.synthesize(data, book, weight_name="w", **asked)
    assert frame.columns[-4:] == ["w", "w_1", "w_2", "w_3"]
    model = pegsynth.fit(data, book, rows=9, **ONCE)
    assert model.replicates(2, weight_name="w").columns[-1] == "w_2"
    with pytest.raises(ParameterError, match="weight_name"):
        model.replicates(3)


def test_the_unit_is_a_name_too():
    unit = Schema((SEX,), reviewed=True, unit="pegs_weight", rows_per_unit=1)
    with pytest.raises(ParameterError, match="weight_name"):
        pegsynth.synthesize("no-such-table.csv", unit, rows=9, replicates=3, **ONCE)


@pytest.mark.parametrize("name", ["", "1st", "a b", "poids_é", "w" * 25, 'w"', "_w"])
def test_names_that_other_programs_do_not_take(name):
    with pytest.raises(ParameterError, match="weight_name"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=9, replicates=3, weight_name=name, **ONCE)
    with pytest.raises(ParameterError, match="requires replicates"):
        pegsynth.synthesize(TABLE, SCHEMA, rows=9, weight_name="w", **ONCE)


# Through the command


@pytest.fixture
def home(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    TABLE.write_csv(tmp_path / "data.csv")
    return tmp_path


def test_a_saved_model_is_sampled_with_weights(home):
    model, out = home / "m.pegs", home / "t.csv"
    done("fit", home / "data.csv", "--schema", home / "schema.toml", "--method", "pegs-once",
         "--epsilon", 20, "-o", model)  # fmt: skip
    done("sample", model, "--rows", 50, "--replicates", 4, "--weight-name", "w", "-o", out)
    assert pl.read_csv(out).columns[-5:] == ["w", "w_1", "w_2", "w_3", "w_4"]
    done("sample", model, "--rows", 50, "--replicates", 4, "-o", out)
    assert pl.read_csv(out).columns[-5:] == [
        "pegs_weight",
        *(f"pegs_weight_{k}" for k in range(1, 5)),
    ]
    ledger = pegsynth.Ledger.from_json((home / "t.csv.privacy.json").read_text())
    assert rule_for(ledger, 1).rule == "replicate-weights"
    told = done("inspect", model, "--analysis", "s ~ a + b", "--analysis", "n ~ d").out
    assert re.search(
        r"^(supported|supported by bins only|merged|not supported): ", told, re.MULTILINE
    )
    support = pegsynth.supported(model, "s ~ a + b")
    assert support.status in told
    check_refused(pegs("inspect", home / "schema.toml", "--analysis", "s ~ a"), "--analysis")


@pytest.mark.parametrize("flags", [("--replicates", 6), ("--datasets", 3)], ids=["weights", "own"])
@pytest.mark.parametrize("decode", ["values", "labels"])
def test_the_page_of_a_release_runs(home, flags, decode):
    asked = ("--epsilon", 20, "--method", "pegs-once", "--rows", 300, "--decode", decode)
    done("release", home / "data.csv", "--schema", home / "schema.toml", *asked, *flags,
         "--public-only", "-o", home / "run")  # fmt: skip
    public = home / "run" / "public"
    page = (public / "HOW-TO-ANALYSE.md").read_text()
    assert ("svrepdesign" in page) == (flags[0] == "--replicates")
    assert ("(1 + 1/K) b" in page) == (flags[0] == "--datasets")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=public, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "share" in ran.stdout


def test_a_release_has_20_replicates_in_a_file_of_their_own_by_default(home):
    asked = ("--epsilon", 20, "--method", "pegs-once", "--rows", 300, "--format", "parquet")
    release = ("release", home / "data.csv", "--schema", home / "schema.toml", *asked)
    done(*release, "-o", home / "run")
    public = home / "run" / "public"
    weights = pl.read_parquet(public / "synthetic-1-weights.parquet")
    assert weights.columns == ["row", "pegs_weight", *(f"pegs_weight_{k}" for k in range(1, 21))]
    assert weights["row"].to_list() == list(range(1, 301))
    assert weights["pegs_weight"].n_unique() == 1
    assert float(weights["pegs_weight"].sum()) == pytest.approx(2000, rel=0.1)
    assert pl.read_parquet(public / "synthetic-1.parquet").columns == list(SCHEMA.names)
    assert Schema.load(public / "schema.toml").names == SCHEMA.names
    ledger = pegsynth.Ledger.from_json((public / "privacy.json").read_text())
    assert design_of(ledger) == ReplicateDesign(20)
    metrics = json.loads((home / "run" / "internal" / "metrics.json").read_text())["records"]
    assert any("20 replicate weights" in each["note"] for each in metrics)
    for name in ("croissant.json", "README.md", "SHA256SUMS"):
        assert "synthetic-1-weights.parquet" in (public / name).read_text()
    found = pegsynth.Release.load(home / "run")
    assert found.weighted[0].width == len(SCHEMA.names) + 21
    kept = found.save(home / "again")
    again = pegsynth.Release.load(kept.folder)
    np.testing.assert_allclose(again.weights[0].to_numpy(), found.weights[0].to_numpy())
    done(*release, "--replicates", 0, "-o", home / "none")
    assert not list((home / "none" / "public").glob("*weights*"))


@pytest.mark.parametrize(
    "asked",
    [
        {"datasets": 2},
        {"complete": True},
        {"method": "pegs", "epsilon": 5.0},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_a_release_that_cannot_have_replicates_has_none(tmp_path, asked):
    asked = {**ONCE, **asked}
    told = {"folder": tmp_path / "run", "rows": 100, "public_only": True}
    release = pegsynth.release(TABLE, SCHEMA, **told, **asked)
    assert weights_of(release.ledger) == ()
    assert release.weights == []


def test_rows_do_not_depend_on_whether_they_have_weights():
    asked = {"rows": 400, "seed": 5, **ONCE}
    (plain,) = pegsynth.synthesize(TABLE, SCHEMA, **asked)
    (frame,) = pegsynth.synthesize(TABLE, SCHEMA, replicates=3, **asked)
    assert frame.select(plain.columns).equals(plain)


def test_rows_with_given_values_stand_for_the_original_rows_that_have_them():
    truth = int((TABLE["a"] == "y").sum())
    asked = {"rows": 500, "replicates": 4, "where": {"a": "y"}, **ONCE}
    (frame,) = pegsynth.synthesize(TABLE, SCHEMA, **asked)
    assert set(frame["a"]) == {"y"}
    sums = frame.select("^pegs_weight.*$").sum().row(0)
    np.testing.assert_allclose(sums, truth, rtol=0.15)


def test_a_release_with_weights_inside_is_judged_and_its_codebook_knows_them(home):
    asked = ("--epsilon", 20, "--method", "pegs-once", "--rows", 300, "--replicates", 3)
    done("release", home / "data.csv", "--schema", home / "schema.toml", *asked, "-o", home / "run",
         "--weights-inside")  # fmt: skip
    assert (home / "run" / "internal" / "report.html").is_file()
    book = Schema.load(home / "run" / "public" / "schema.toml")
    assert [c.name for c in book.columns if c.role == "identifier"][-1] == "pegs_weight_3"
    assert book.names == SCHEMA.names
    assert pegsynth.Release.load(home / "run").frames[0].width == len(SCHEMA.names) + 4


@pytest.mark.parametrize("flags", [("--replicates", 5), ("--datasets", 3)], ids=["weights", "own"])
def test_regressions_have_replicate_intervals_in_the_file_on_the_page_and_in_the_terminal(
    home, flags
):
    formula = "s ~ C(d)"
    asked = ("--epsilon", 20, "--method", "pegs-once", "--rows", 300, *flags, "--formula", formula)
    done("release", home / "data.csv", "--schema", home / "schema.toml", *asked, "-o", home / "run")
    public, internal = home / "run" / "public", home / "run" / "internal"
    found = json.loads((internal / "metrics.json").read_text())["records"]
    terms = [each for each in found if each["name"] == "coefficient" and each["value"] is not None]
    said = "5 replicate weights" if flags[0] == "--replicates" else "noise of their own"
    assert terms
    assert all(said in each["note"] for each in terms)
    assert all("supported" in each["note"] or "merged" in each["note"] for each in terms)
    page = (internal / "report.html").read_text()
    assert said in page
    tables = sorted(public.glob("synthetic-*.csv"))
    shown = done(
        *("evaluate", home / "data.csv", *tables, "--schema", public / "schema.toml"),
        *("--ledger", public / "privacy.json", "--formula", formula),
    ).out
    assert f"regression {formula}" in shown
    assert said in shown
    for each in terms:
        value, low, high = (f"{each[field]:.4g}" for field in ("value", "low", "high"))
        assert re.search(rf"{re.escape(value)} +{re.escape(low)} +{re.escape(high)}", shown)
        assert each["low"] < each["value"] < each["high"]
