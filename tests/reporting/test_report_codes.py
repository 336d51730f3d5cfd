"""Reports of releases with faults of groups, rows and models: each headline names the fault."""

import tomllib
from html import unescape

import bad_codes as bad
import msgspec
import numpy as np
import pytest
from scipy import stats

import pegsynth
from pegsynth.evaluation.cell_problems import CellTables, cell_problems
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.evaluation.problems import FALSE_ALARMS, counts_explained
from pegsynth.privacy import Ledger, NoisyCounts
from pegsynth.publishing.report.html import render
from pegsynth.publishing.report.verdict import verdict, with_verdict
from pegsynth.publishing.report.wording import Lookup
from pegsynth.schema.toml import loads
from pegsynth.schema.toml_text import dumps
from significance import ALPHA

ROWS = 5_000


@pytest.fixture(scope="module")
def original():
    return bad.table(ROWS, 1)


def evaluated(original, synthetic, **more):
    return pegsynth.evaluate(original, synthetic, bad.schema(), formulas=[bad.FORMULA], **more)


@pytest.mark.parametrize("name", bad.FAULTS)
def test_the_headline_names_the_fault(original, name):
    spoil, kind, words = bad.FAULTS[name]
    target = bad.TARGET if kind == "Predictions change" else None
    found = with_verdict(evaluated(original, spoil(bad.bootstrap(original, 7)), target=target))
    headline = found.verdict["utility"]
    assert f"{kind}: " in headline
    assert words in headline, headline
    page = unescape(render(found))
    assert headline in page
    for fault in found.faults:
        assert f"<li>{fault}</li>" in page
    assert found.summary["utility_faults"] == len(found.faults) > 0
    assert pegsynth.evaluation.Metrics.from_json(found.to_json()).verdict == found.verdict


def test_a_bootstrap_is_as_close_as_chance_allows(original):
    found = evaluated(original, bad.bootstrap(original, 3), target=bad.TARGET)
    assert verdict(Lookup(found))["utility"] == "As close as chance allows."


def findings(original, synthetic, **more):
    schema = bad.schema()
    tables = read_tables(original, [synthetic], schema, threads=1)
    sides = (np.ascontiguousarray(each.T) for each in (tables.original, *tables.synthetic))
    first, second = sides
    return cell_problems(CellTables(schema, first, (second,)), **more)[0]


def test_bootstraps_and_fresh_samples_are_not_blamed_for_their_codes():
    """So many reports in 60 that are blamed have a probability of at most ALPHA."""
    runs, wrong = 60, 0
    for seed in range(runs // 2):
        original = bad.table(700, 100 + seed)
        wrong += bool(findings(original, bad.bootstrap(original, seed)))
        wrong += bool(findings(original, bad.table(700, 500 + seed)))
    assert wrong <= int(stats.binom.isf(ALPHA, runs, FALSE_ALARMS))


def test_without_the_bounds_of_chance_they_would_be_blamed():
    """The twin: chance bounded at a level of 1 for every comparison."""
    original = bad.table(700, 1)
    blamed = [findings(original, bad.bootstrap(original, seed), level=1e4) for seed in range(5)]
    assert all(blamed)


@pytest.mark.parametrize("rows", [(40, 40), (30, 60)])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_two_counts_of_one_population_are_blamed_as_seldom_as_promised(rows, share):
    """The oracle: both binomial laws, enumerated."""
    alpha = 0.05
    first, second = (stats.binom.pmf(np.arange(n + 1), n, share) for n in rows)
    blamed = sum(
        first[a] * second[b]
        for a in range(rows[0] + 1)
        for b in range(rows[1] + 1)
        if not counts_explained(a, b, rows, alpha)
    )
    assert blamed <= alpha
    assert not counts_explained(0, rows[1], rows, alpha)


def test_drafted_rules_bear_their_mark_and_can_be_read(original):
    found = evaluated(original, bad.impossible(bad.bootstrap(original, 7)))
    drafts = [record.note for record in found.records if record.name == "drafted_rule"]
    (rule,) = tomllib.loads(drafts[0])["rules"]
    assert rule["forbid"] == {"sex": ["M"], "diagnosis": ["birth"]}
    assert rule["drafted_from_data"] is True
    text = f"{dumps(bad.schema())}\n{drafts[0]}"
    assert loads(text).rules[0].drafted_from_data
    page = unescape(render(found))
    assert "drafted_from_data = true" in page
    assert "Use one only if somebody knows from elsewhere" in page


def test_what_the_noise_explains_is_said(original):
    noisy = NoisyCounts.gaussian(30, cells=1, purpose="marginals", features=("race",), levels=(5,))
    ledger = Ledger((msgspec.structs.replace(noisy, table_cells=5),))
    release = pegsynth.Release([bad.group_lost(original)], ledger, bad.schema())
    found = evaluated(original, release)
    (words,) = (f for f in found.faults if f.startswith("race = asian vanishes"))
    assert "noise alone moves this count by up to 60 rows" in words


def test_near_constant_columns_do_not_dilute_the_mean(original):
    found = evaluated(original, bad.group_grown(original))
    assert found.summary["tvd2_weighted"] > 1.2 * found.summary["tvd2"]
    record = found.record("tvd2_weighted")
    assert record.value > record.baseline


def test_every_attack_is_shown_in_its_strongest_form(original):
    holdout = bad.table(1_000, 9)
    found = with_verdict(evaluated(original, original[:1_000], holdout=holdout))
    areas = {r.subject: r.value for r in found.records if r.name == "membership_auc"}
    assert len(areas) == 2
    assert found.summary["membership_auc"] == max(areas.values())
    page = unescape(render(found))
    assert f"shown: {max(areas, key=areas.get)}" in page
    assert "Worse than the reference" in found.verdict["risk"]
    assert "Uniques that reappear" in found.verdict["risk"]


def test_risks_above_their_reference_are_named():
    """Unique rows, more of them than in the original at equal size."""
    original = bad.table(300, 1).with_columns(race=bad.pl.lit("white"))
    said = verdict(Lookup(evaluated(original, bad.table(300, 2))))
    assert said["risk"].startswith("Worse than the reference: ")
    assert "Unique rows" in said["risk"]
    assert any("a synthetic row is nobody" in each for each in said["risk_sentences"])
