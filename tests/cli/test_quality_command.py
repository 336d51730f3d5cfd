"""``pegs release --quality`` and ``--accept``: bought figures, charged whatever comes of them."""

import json

import polars as pl
import pytest

from command import pegs
from pegsynth.codec.codec import encode_table
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.evaluation.utility.distances import evaluate_codes
from pegsynth.privacy import Ledger
from pegsynth.schema import Feature, Schema
from pegsynth.tables.table_input import open_table

ROWS = 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("quality")
    discharge(ROWS, seed=1).write_csv(root / "stays.csv")
    discharge_schema().save(root / "schema.toml")
    return root


def released(root, name, *more, method="pegs-once"):
    return pegs(
        *("release", root / "stays.csv", "--schema", root / "schema.toml", "-o", root / name),
        *("--method", method, "--rows", ROWS, "--rows-in", ROWS, "--epsilon", 8),
        *("--delta", 1e-6, "--public-only", *more),
    )


def codes(path, schema):
    import numpy as np

    with open_table(str(path), dialect=schema.dialect) as reader:
        return np.concatenate(list(encode_table(reader, schema)))


@pytest.mark.parametrize("method", ["pegs-once", "marginal"])
def test_bought_distances_are_near_the_truth_and_in_the_ledger(folder, method):
    made = released(
        folder, method, "--quality", 0.2, "--quality-table", "sex,MDC,cat", method=method
    )
    assert made.code == 0, made.err
    public = folder / method / "public"
    bought = json.loads((public / "QUALITY.json").read_text())["bought"]
    ledger = Ledger.from_json((public / "privacy.json").read_bytes())
    assert ledger.guarantee.epsilon <= 8
    assert ledger.guarantee.epsilon > 7.9
    assert {"quality", "quality total"} <= {getattr(e, "purpose", "") for e in ledger.events}
    schema = Schema.load(public / "schema.toml")
    original, synthetic = (
        codes(path, schema) for path in (folder / "stays.csv", public / "synthetic-1.csv")
    )
    truth = evaluate_codes(original, [synthetic], schema)
    for each in bought["distances"]:
        name = f"tvd{len(each['features'])}"
        record = truth.record(name, ", ".join(each["features"]))
        share = each["share"]
        if record is not None:
            # Six times the noise; the noisy total moves a share by less.
            assert abs(share["value"] - record.value) < 3 * (share["high"] - share["value"]) + 0.01
    assert ["sex", "MDC", "cat"] in [each["features"] for each in bought["distances"]]
    assert "Total variation distances that were paid for" in (public / "QUALITY.md").read_text()


def test_a_release_that_is_not_accepted_is_paid_for_and_not_published(folder):
    (folder / "strict.toml").write_text("pair = 0.001\n")
    for number in (1, 2):
        made = released(folder, "strict", "--quality", 0.2, "--accept", folder / "strict.toml")
        assert made.code == 1
        assert "not accepted" in made.err
        assert not (folder / "strict").exists()
        spent = folder / f"strict.refused-{number}.privacy.json"
        assert Ledger.from_json(spent.read_bytes()).guarantee.epsilon == pytest.approx(8, rel=1e-3)
    (folder / "mild.toml").write_text("single = 1\npair = 1.0\ntable = 1\n")
    named = ("--quality-table", "sex,MDC,cat")
    made = released(folder, "mild", "--quality", 0.2, *named, "--accept", folder / "mild.toml")
    assert made.code == 0, made.err
    found = json.loads((folder / "mild/public/QUALITY.json").read_text())
    assert found["accepted_by"] == {"single": 1.0, "pair": 1.0, "table": 1.0}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--accept", "none.toml"), "require --quality"),
        (("--quality", 2), "between 0 and 1"),
        (("--quality", 0.1, "--quality-table", "nobody"), "nobody"),
        (("--quality", 0.1, "--accept", "none.toml"), "cannot be read"),
        (("--quality", 0.1, "--replicates", 5), "--replicates"),
    ],
)
def test_what_cannot_be_bought_is_refused_before_anything_is_read(folder, more, words):
    made = released(folder, "refused", *more)
    assert made.code == 2
    assert words in made.err
    assert not (folder / "refused").exists()


def test_bad_criteria_are_refused(folder):
    for text, words in (("", "no criterion"), ("pears = 0.1", "pears"), ("pair = 2", "pair")):
        (folder / "bad.toml").write_text(text)
        made = released(folder, "refused", "--quality", 0.1, "--accept", folder / "bad.toml")
        assert made.code == 2
        assert words in made.err


def test_declared_analyses_and_tables_are_bought_without_being_named(folder):
    (folder / "declared.toml").write_text(
        '[[analyses]]\nformula = "charge ~ los + C(sev)"\n\n'
        '[[tables_wanted]]\nfeatures = ["sex", "cat", "sev"]\n'
    )
    (folder / "analysis.toml").write_text("analysis = 0.0001\n")
    more = ("--analyses", folder / "declared.toml", "--quality", 0.2)
    made = released(folder, "declared", *more)
    assert made.code == 0, made.err
    public = folder / "declared" / "public"
    bought = json.loads((public / "QUALITY.json").read_text())["bought"]
    declared = {name: set(e["features"]) for e in bought["distances"] for name in e["declared"]}
    assert declared == {
        "charge ~ los + C(sev)": {"charge", "los", "sev"},
        "sex, cat, sev": {"sex", "cat", "sev"},
    }
    assert bought["declared_not_bought"] == []
    ledger = Ledger.from_json((public / "privacy.json").read_bytes())
    (event,) = [e for e in ledger.events if getattr(e, "purpose", "") == "quality"]
    # All figures are priced, those of declared analyses among them (R34).
    assert event.cells == len(bought["distances"]) + ("units_cut" in bought)
    assert ledger.guarantee.epsilon <= 8
    assert "(declared: charge ~ los + C(sev))" in (public / "QUALITY.md").read_text()
    made = released(folder, "unfit", *more, "--accept", folder / "analysis.toml")
    assert made.code == 1
    assert "the criterion analysis allows 0.01%" in made.err


def test_a_criterion_that_no_figure_answers_is_refused_before_anything_is_read(folder):
    (folder / "analysis.toml").write_text("analysis = 0.1\n")
    made = released(folder, "none", "--quality", 0.2, "--accept", folder / "analysis.toml")
    assert made.code == 2
    assert "declares no analysis" in made.err
    (folder / "table.toml").write_text("table = 0.1\n")
    made = released(folder, "none", "--quality", 0.2, "--accept", folder / "table.toml")
    assert made.code == 2
    assert "--quality-table" in made.err


def test_tables_of_units_are_bought_too(folder):
    """The column of the unit is in the original alone; units that the cap cuts have a figure."""
    schema = discharge_schema()
    table = discharge(ROWS, seed=1).with_columns(pl.int_range(ROWS).floordiv(3).alias("person"))
    table.write_csv(folder / "people.csv")
    person = Feature("person", role="identifier")
    Schema((person, *schema.columns), unit="person", rows_per_unit=2, reviewed=True).save(
        folder / "people.toml"
    )
    made = pegs(
        *("release", folder / "people.csv", "--schema", folder / "people.toml"),
        *("-o", folder / "people", "--method", "pegs-once", "--rows", 500, "--epsilon", 8),
        *("--delta", 1e-6, "--public-only", "--quality", 0.2),
    )
    assert made.code == 0, made.err
    public = folder / "people" / "public"
    bought = json.loads((public / "QUALITY.json").read_text())["bought"]
    cut = bought["units_cut"]
    # Nearly all of 1,334 people have three rows; ten half widths are never passed.
    assert abs(cut["value"] - ROWS // 3) < 10 * (cut["high"] - cut["value"])
    assert Ledger.from_json((public / "privacy.json").read_bytes()).guarantee.epsilon <= 8
