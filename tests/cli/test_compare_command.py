"""``pegs compare`` and what ``pegs release`` measures on request."""

import json
from html import unescape

import pytest

from command import pegs
from pegsynth.datasets import discharge, discharge_schema

BUDGETS = (1, 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("compare")
    discharge(1_500, seed=1).write_csv(root / "stays.csv")
    discharge(400, seed=2).write_csv(root / "never.csv")
    discharge_schema().save(root / "schema.toml")
    for epsilon in BUDGETS:
        made = released(root, f"at-{epsilon}", "--epsilon", epsilon)
        assert made.code == 0, made.err
    return root


def released(root, name, *more):
    return pegs(
        *("release", root / "stays.csv", "--schema", root / "schema.toml", "-o", root / name),
        *("--method", "marginal", "--rows", 500),
        *("--holdout", root / "never.csv", "--target", "I(charge > 25000)"),
        *("--formula", "los ~ age.yrs", *more),
    )


def test_release_measures_what_was_asked_for(folder):
    found = json.loads((folder / "at-1/internal/metrics.json").read_text())
    names = {(r["name"], r["subject"]) for r in found["records"] if r["value"] is not None}
    assert ("auc_synthetic", "I(charge > 25000)") in names
    assert ("coefficient", "los ~ age.yrs :: age.yrs") in names
    assert ("membership_auc", "nearest released row") in names
    assert found["verdict"]["utility"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--target", "nobody"), "nobody"),
        (("--formula", "los ~ nobody"), "nobody"),
        (("--public-only",), "--public-only"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_spent(folder, more, words):
    made = released(folder, "refused", "--epsilon", 1, *more)
    assert made.code == 2
    assert words in made.err
    assert not (folder / "refused").exists()


def test_a_hold_out_that_lacks_a_column_is_refused(folder):
    discharge(50, seed=2).drop("sex").write_csv(folder / "lacking.csv")
    made = released(folder, "refused", "--epsilon", 1, "--holdout", folder / "lacking.csv")
    assert made.code == 2
    assert "lacks the column 'sex'" in made.err
    assert not (folder / "refused").exists()


def test_releases_stand_side_by_side(folder):
    page = folder / "side.html"
    outcome = pegs("compare", *(folder / f"at-{e}" for e in BUDGETS), "--report", page)
    assert outcome.code == 0, outcome.err
    metrics = [json.loads((folder / f"at-{e}/internal/metrics.json").read_text()) for e in BUDGETS]
    text = unescape(page.read_text())
    for words in ("at-1", "at-8", "ε = 1", "ε = 8", "Risk and utility on one map"):
        assert words in text
    for each in metrics:
        assert each["verdict"]["utility"] in text
        assert each["verdict"]["risk"] in text
        assert f"{100 * each['summary']['tvd2']:.2f}%" in outcome.out
    assert page.stat().st_mode & 0o077 == 0
    assert list((folder / "side-figures").glob("map-*.svg"))


def test_every_release_is_shown_in_the_same_form_of_an_attack(folder):
    outcome = pegs("compare", *(folder / f"at-{e}" for e in BUDGETS))
    (line,) = (each for each in outcome.out.split("\n") if each.startswith("Membership, area"))
    subject = line.partition(": ")[2].partition("  ")[0]
    for e in BUDGETS:
        found = json.loads((folder / f"at-{e}/internal/metrics.json").read_text())
        (value,) = (
            r["value"]
            for r in found["records"]
            if r["name"] == "membership_auc" and r["subject"] == subject
        )
        assert f"{value:.3g}" in line


def test_what_cannot_be_compared_is_refused(folder, tmp_path):
    one = folder / "at-1"
    for arguments, words in (
        ((one,), "at least two"),
        ((one, one), "given twice"),
        ((one, tmp_path), "no saved figures"),
    ):
        outcome = pegs("compare", *arguments)
        assert outcome.code == 2
        assert words in outcome.err
