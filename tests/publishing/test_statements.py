"""Every sentence of every document of a release is true of that run.

A sentence of `statements.STATEMENTS` stands in the document of a run exactly where it holds, and
nothing else stands there: what is left when all sentences are taken out must be empty. Facts come
from `told_run`, which asks neither the code that writes documents nor the other documents.
"""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from paper_runs import ABOUT, RUNS, Run, write_run
from statements import (
    CROISSANT,
    DCAT,
    HOW,
    PRIVACY,
    QUALITY,
    README,
    REGISTRY,
    SIGNED,
    STATEMENTS,
    Holds,
    always,
)
from told_run import Told, prose

import pegsynth
from contract import contract_schema, contract_table
from pegsynth.publishing.privacy_pages import all_messages

WHOLE = (HOW, README, QUALITY, REGISTRY, CROISSANT, DCAT)
"""Documents in which nothing else may stand."""
_NAMES = re.compile(
    r"\bPure DP|Approximate DP|Synthetic data\b|Synthetic tables|Invented visits|"
    r"synthetic-tables-[\d-]+|invented-visits-[a-z0-9-]+|Office of Invented Statistics|Government|"
    r"Healthcare|Nowhere|teaching|Central|One release|Non-interactive|Draft|\d{4}-\d\d-\d\d|"
    r"\b(row|unit|visit|patient|household)\b|synthetic data|pegsynth [\d.]+[^~]*"
)
"""Names and figures that records hold beside sentences."""

LANGUAGE_PARTS: dict[str, Holds] = {
    "schema_categories": lambda t: t.schema.reviewed,
    "schema_edges": lambda t: t.schema.reviewed and not t.private_edges,
    "schema_bounds": lambda t: bool(t.private_edges),
    "schema_drafted_from_data": lambda t: t.drafted,
    "schema_drafted_rules": lambda t: t.drafted_rules,
    "rules_drafted": lambda t: t.drafted_rules,
    "assumed_public-rules": lambda t: bool(t.schema.rules) and not t.drafted_rules,
    "unlisted_refused": always,
    "unlisted_category": lambda t: bool(t.found),
    "done_policy": lambda t: bool(t.flag("--k")) and t.private,
    "done_policy_alone": lambda t: bool(t.flag("--k")) and not t.private,
    "claim_none": lambda t: t.guarantee["kind"] == "none",
}


def wrong_in(document: str, text: str, told: Told) -> list[tuple[str, str]]:
    """Return the sentences that stand where they do not hold, or are missing where they do."""
    wrong = []
    for each in STATEMENTS:
        if document not in each.documents:
            continue
        expected, times = each.holds(told), len(each.pattern.findall(text))
        right = times == expected if type(expected) is int else (times > 0) == expected
        if not right:
            wrong.append((each.words, f"{document}: found {times}, expected {expected}"))
    return wrong


def unknown_in(document: str, text: str) -> str:
    """Return what is left of a text without the sentences that are known."""
    for each in STATEMENTS:
        if document in each.documents:
            text = each.pattern.sub(" ", text)
    if document in (REGISTRY, CROISSANT, DCAT):
        text = _NAMES.sub(" ", text)
    return re.sub(r"[\W_]+", " ", text).strip()


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_every_document_is_true_of_its_run(run, tmp_path):
    told = Told(run, write_run(run, tmp_path))
    texts = {name: told.text(name) for each in STATEMENTS for name in each.documents}
    assert not [w for name, text in texts.items() if text for w in wrong_in(name, text, told)]
    assert not {name: left for name in WHOLE if (left := unknown_in(name, texts[name]))}
    check_lists(told)
    if told.flag("--language"):
        for language in told.flag("--language").split(","):
            check_language(told, language)


def check_lists(told: Told) -> None:
    """Columns and files that are listed are those that are there, in order."""
    readme = (told.public / README).read_text()
    listed = [
        re.findall(r"^\| ([^|]+) \|", part, flags=re.MULTILINE)[1:]
        for part in re.findall(r"## Columns.*?(?=\n## )", readme, flags=re.DOTALL)
    ]
    tables = [cols for name, cols in told.columns.items() if "-weights." not in name]
    kinds = [list(each) for each in dict.fromkeys(map(tuple, tables))]
    assert listed == kinds
    files = re.findall(r"^\| `([^`]+)` \|", readme.partition("## Files")[2], flags=re.MULTILINE)
    assert files == sorted(path.name for path in told.public.iterdir())
    if not (told.public / CROISSANT).exists():
        return
    records = json.loads((told.public / CROISSANT).read_text())["recordSet"]
    fields = {each["@id"]: [f["name"] for f in each["field"]] for each in records}
    assert fields == {name.rpartition(".")[0]: cols for name, cols in told.columns.items()}


def check_language(told: Told, language: str) -> None:
    """The page in another language says the same."""
    text = told.text(f"PRIVACY.{language}.md")
    for key, holds in LANGUAGE_PARTS.items():
        words = re.escape(all_messages()[key][language]).replace(r"\{names\}", ".*?")
        assert bool(re.search(words, text)) == holds(told), (language, key)


def test_a_sentence_too_many_or_too_few_is_found(tmp_path):
    """Broken twins: documents of one run beside the facts of another, and an unknown sentence."""
    runs = {}
    for run in RUNS:
        if run.name in ("all measured", "dates", "drafted"):
            (tmp_path / run.name).mkdir()
            runs[run.name] = Told(run, write_run(run, tmp_path / run.name))
    for document, ours, theirs in (
        (HOW, "all measured", "dates"),
        (PRIVACY, "all measured", "drafted"),
        (REGISTRY, "drafted", "all measured"),
        (SIGNED, "drafted", "dates"),
    ):
        assert wrong_in(document, runs[theirs].text(document), runs[ours])
    text = runs["dates"].text(HOW)
    assert not unknown_in(HOW, text)
    assert unknown_in(HOW, f"{text} Rows are never the same.") == "Rows are never the same"


@pytest.mark.parametrize("more", [{}, {"replicates": 3}, {"decode": "labels"}], ids=str)
def test_a_release_that_is_saved_says_the_same(tmp_path, more):
    """`Release.save` has the ledger and the tables alone, and leaves no sentence out."""
    asked = {"rows": 60, "epsilon": 5.0, "delta": 1e-9, "method": "pegs-once", "threads": 1}
    made = pegsynth.synthesize(contract_table(), contract_schema(), **asked | more)
    made.save(tmp_path / "saved")
    stated = {"replicates": 0} | more
    flags = ["--method", "pegs-once", *(x for k, v in stated.items() for x in (f"--{k}", v))]
    told = Told(Run("saved", flags=tuple(flags)), tmp_path / "saved")
    for document in (HOW, README, REGISTRY, CROISSANT):
        text = told.text(document)
        assert not wrong_in(document, text, told)
        assert not unknown_in(document, text)
    check_lists(told)


def test_a_resampled_table_does_not_call_itself_synthetic(tmp_path):
    folder = write_run(Run("resampled", flags=("--method", "bootstrap"), about=ABOUT), tmp_path)
    beside = json.loads((folder / "public" / "synthetic-1.csv-metadata.json").read_text())
    assert beside["dc:type"] == "resampled data"
    assert "not synthetic" in prose(folder / "public" / README)


def test_weights_are_written_with_six_digits_and_none_is_lost(tmp_path):
    flags = ("--method", "pegs-once", "--epsilon", 1, "--replicates", 5)
    folder = write_run(Run("weights", flags=flags), tmp_path)
    table = pl.read_csv(folder / "public" / "synthetic-1-weights.csv", infer_schema=False)
    weights = table.select(table.columns[-6:])
    for text in weights.unpivot()["value"]:
        assert 1 <= len(re.sub(r"e.*|\.", "", text).strip("0")) <= 6
    least = weights.cast(pl.Float64).select(pl.all().min() / pl.all().mean())
    assert min(least.row(0)) > 0
