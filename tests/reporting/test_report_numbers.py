"""Reports of deliberately bad releases: the headline names the fault, everywhere alike."""

import json
from html import unescape

import bad_releases as bad
import numpy as np
import pytest
from scipy import stats

import pegsynth
from command import pegs
from pegsynth.evaluation.evaluate import options_of
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.evaluation.figure_problems import (
    number_problems,
    regression_problems,
)
from pegsynth.evaluation.problems import FALSE_ALARMS
from pegsynth.evaluation.utility.number_records import numbers_found
from pegsynth.evaluation.utility.regression_records import compare
from pegsynth.publishing.report.html import render
from pegsynth.publishing.report.verdict import verdict
from pegsynth.publishing.report.wording import Lookup
from significance import ALPHA

ROWS = 5_000
CLOSE = "As close as chance allows."


@pytest.fixture(scope="module")
def original():
    return bad.table(ROWS, 1)


def evaluated(original, synthetic, schema):
    return pegsynth.evaluate(original, synthetic, schema, formulas=[bad.FORMULA])


@pytest.mark.parametrize("name", bad.FAULTS)
def test_the_headline_names_the_fault(original, name):
    spoil, words = bad.FAULTS[name]
    schema = bad.schema(bad.WIDE)
    found = evaluated(original, spoil(bad.bootstrap(original, 7)), schema)
    said = verdict(Lookup(found))
    assert "Numbers are off: " in said["utility"]
    assert words in said["utility"], said["utility"]
    assert said["off"]
    page = unescape(render(found))
    assert said["utility"] in page
    for fault in found.faults:
        assert f"<li>{fault}</li>" in page
    assert found.summary["utility_faults"] == len(found.faults) > 0


def test_codes_alone_would_have_seen_nothing(original):
    """What the verdict on numbers is for: tables of codes are as close as chance allows."""
    schema = bad.schema(bad.WIDE)
    for name in ("shuffled in bins", "without a heap", "cut"):
        spoil, _ = bad.FAULTS[name]
        found = evaluated(original, spoil(bad.bootstrap(original, 7)), schema)
        assert verdict(Lookup(found))["utility"].endswith(
            "On average, tables of codes are as close as chance allows."
        )


def test_a_bootstrap_and_the_table_itself_are_as_close_as_chance_allows(original):
    for synthetic in (original, bad.bootstrap(original, 3)):
        found = evaluated(original, synthetic, bad.schema())
        assert verdict(Lookup(found))["utility"] == CLOSE
        assert found.faults == ()
        assert found.summary["utility_faults"] == 0


def blamed(original, synthetic, schema):
    tables = read_tables(original, [synthetic], schema, threads=1)
    numbers = numbers_found(tables, schema)
    (formula,) = options_of(schema, formulas=[bad.FORMULA]).formulas
    codes = [each.T for each in (tables.original, *tables.synthetic)]
    compared = compare(formula, codes, schema, tables.values)
    return [
        *number_problems(numbers.sides, numbers.pairs, numbers.moments),
        *regression_problems([compared]),
    ]


def test_bootstraps_and_fresh_samples_are_not_blamed():
    """A report blames chance with a probability of at most FALSE_ALARMS.

    So many reports in 60 that are blamed have a probability of at most ALPHA.
    """
    schema, runs = bad.schema(), 60
    wrong = 0
    for seed in range(runs // 2):
        original = bad.table(800, 100 + seed)
        wrong += bool(blamed(original, bad.bootstrap(original, seed), schema))
        wrong += bool(blamed(original, bad.table(800, 500 + seed), schema))
    most = int(stats.binom.isf(ALPHA, runs, FALSE_ALARMS))
    assert wrong <= most


def test_without_the_bounds_of_chance_bootstraps_would_be_blamed():
    """The twin: tolerances alone, chance bounded at a level of 1, blame most small bootstraps."""
    schema = bad.schema()
    original = bad.table(300, 1)
    tables = [
        read_tables(original, [bad.bootstrap(original, seed)], schema, threads=1)
        for seed in range(8)
    ]
    found = [number_problems(numbers_found(t, schema).sides, (), level=20.0) for t in tables]
    assert np.mean([bool(each) for each in found]) > 0.5


def test_terminal_page_and_file_agree(original, tmp_path):
    schema = bad.schema()
    schema.save(tmp_path / "schema.toml")
    original.write_csv(tmp_path / "o.csv")
    bad.scaled(bad.bootstrap(original, 7)).write_csv(tmp_path / "s.csv")
    files = {"--json": tmp_path / "m.json", "--report": tmp_path / "r.html"}
    outcome = pegs(
        "evaluate",
        *(tmp_path / "o.csv", tmp_path / "s.csv", "--schema", tmp_path / "schema.toml"),
        *(part for pair in files.items() for part in pair),
    )
    assert outcome.code == 0, outcome.err
    content = json.loads(files["--json"].read_text())
    listed = [
        r["note"] for r in content["records"] if r["name"] == "utility_faults" and r["subject"]
    ]
    headline = next(
        line.removeprefix("utility: ")
        for line in outcome.out.split("\n")
        if line.startswith("utility: ")
    )
    assert listed
    assert content["summary"]["utility_faults"] == len(listed)
    assert "the mean of income is" in headline
    assert headline in files["--report"].read_text()
    for words in listed:
        assert f"  off: {words}" in outcome.out
    rules = next(r["note"] for r in content["records"] if r["name"] == "utility_faults")
    for rule in rules.split("\n"):
        assert rule in unescape(files["--report"].read_text())
    assert content["verdict"]["utility"] == headline
    assert f"risk: {content['verdict']['risk']}" in outcome.out
    assert content["verdict"]["risk"] in unescape(files["--report"].read_text())
    assert "\nutility_faults " in outcome.out
    assert "risk: " in outcome.out


def test_labels_are_not_judged_and_it_is_said(original):
    schema = bad.schema()
    label = schema.features[0].labels[0]
    labels = original.with_columns(age=bad.pl.lit(label))
    found = evaluated(original, labels, schema)
    sentences = verdict(Lookup(found))["utility_sentences"]
    assert any("The numbers of age were not judged" in each for each in sentences)


def test_several_tables_are_judged_by_their_mean(original):
    tables = [bad.scaled(bad.bootstrap(original, seed)) for seed in (1, 2)]
    found = evaluated(original, tables, bad.schema())
    assert any(each.startswith("the mean of income is") for each in found.faults)


def test_the_frame_has_every_figure(original):
    found = evaluated(original, bad.bootstrap(original, 3), bad.schema())
    names = set(found.to_frame()["name"])
    assert {
        "value_mean",
        "value_sd",
        "value_quantile",
        "value_zeros",
        "value_heap",
        "value_tail",
        "kolmogorov_distance",
        "wasserstein_distance",
        "pearson_correlation",
        "spearman_correlation",
        "utility_faults",
    } <= names
    (income,) = (each for each in found.distributions if each.feature == "income")
    assert "<svg" in income.plot().svg
    assert "<svg" in found.plot("kolmogorov_distance").svg
