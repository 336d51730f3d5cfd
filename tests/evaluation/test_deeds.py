"""What the cap and other deeds did to the original: counted exactly, against a plain loop."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.publishing.facts import RunFacts
from pegsynth.publishing.report.html import render
from pegsynth.publishing.report.verdict import verdict
from pegsynth.publishing.report.wording import Lookup
from pegsynth.schema import Feature, Schema
from pegsynth.schema.recoding import Recoding

GROUPS = (("north", ("n1", "n2")),)


def schema(k=2):
    return Schema(
        (
            Feature("patient", role="identifier"),
            Feature("readmitted", categories=("yes", "no")),
            Feature("age", kind="numeric", edges=(0, 50, 100), dtype="int64", missing=("-99",)),
            Feature("ward", categories=("a", "b"), unknown="category"),
            Feature("area", categories=("n1", "n2", "south"), recoding=Recoding(groups=GROUPS)),
        ),
        unit="patient",
        rows_per_unit=k,
        reviewed=True,
    )


@pytest.fixture
def table():
    draw = np.random.default_rng(1)
    units = draw.integers(0, 100, 300)
    often = np.bincount(units)[units] > 2
    return pl.DataFrame(
        {
            "patient": [f"p{unit}" for unit in units],
            "readmitted": np.where(often, "yes", "no"),
            "age": np.where(draw.random(300) < 0.1, -99, draw.integers(-5, 110, 300)),
            "ward": draw.choice(["a", "b", "c", "d"], 300),
            "area": draw.choice(["n1", "n2", "south"], 300),
        }
    )


def test_deeds_are_counted_exactly(table):
    found = pegsynth.evaluate(table, table, schema())
    rows = Counter(table["patient"])
    assert found.record("cap_rows").value == sum(max(0, c - 2) for c in rows.values()) / 300
    assert found.record("cap_units").value == sum(c > 2 for c in rows.values()) / len(rows)
    kept = defaultdict(float)
    for unit, answer in zip(table["patient"], table["readmitted"], strict=True):
        kept[answer] += min(1, 2 / rows[unit])
    before = table["readmitted"].to_list().count("yes") / 300
    after = kept["yes"] / sum(kept.values())
    effect = found.record("cap_effect", "readmitted")
    assert effect.value == pytest.approx(before - after)
    assert f"from {1 - before:.2%} to {1 - after:.2%}" in effect.note or (
        f"from {before:.2%} to {after:.2%}" in effect.note
    )
    ages = [age for age in table["age"] if age != -99]
    beyond = sum(age < 0 or age > 100 for age in ages)
    assert found.record("values_bounded", "age").value == beyond / 300
    unlisted = sum(ward in "cd" for ward in table["ward"])
    assert found.record("values_unlisted", "ward").value == unlisted / 300
    recoded = sum(area != "south" for area in table["area"])
    assert found.record("values_recoded", "area").value == recoded / 300
    assert any("The cap of rows per unit leaves out" in s for s in said(found))
    assert "Before anything was counted" in render(found)


def said(found):
    return verdict(Lookup(found))["utility_sentences"]


def test_a_cap_that_cuts_nobody_moves_nothing(table):
    found = pegsynth.evaluate(table, table, schema(k=50))
    assert found.record("cap_rows").value == 0
    assert not [r for r in found.records if r.name == "cap_effect"]
    assert not any("The cap" in sentence for sentence in said(found))


def test_public_papers_explain_and_hold_no_count(table, tmp_path):
    """They follow from codebook and ledger alone: two tables have the same section."""
    sections = []
    for frame in (table, table[:150]):
        made = pegsynth.synthesize(
            frame, schema(), method="pegs-once", epsilon=2, delta=1e-6, rows=20, rows_in=300
        )
        sections.append(RunFacts(made.schema, made.ledger).preprocessing)
    assert sections[0] == sections[1]
    for words in ("At most 2 rows of one `patient`", "`ward`", "`age` below 0", "`area`"):
        assert words in " ".join(sections[0])
    made.save(tmp_path / "out")
    page = (tmp_path / "out/public/HOW-TO-ANALYSE.md").read_text()
    assert "\n".join(f"- {sentence}" for sentence in sections[0]) in page


@pytest.mark.parametrize("categories", [("1", "2"), ("1.0", "2.0")])
@pytest.mark.parametrize("values", [["1", "2.0", "3"], [1.0, 2.0, 3.0], [1, 2, 3]])
def test_other_spellings_are_not_recoded(categories, values):
    recoding = Recoding(groups=(("low", (categories[0], "3")),))
    area = Feature("area", categories=categories, dtype="double", recoding=recoding)
    table = pl.DataFrame({"area": pl.Series(values * 20), "ward": ["a", "b", "b"] * 20})
    book = Schema((area, Feature("ward", categories=("a", "b"))), reviewed=True)
    found = pegsynth.evaluate(table, table, book)
    assert found.record("values_recoded", "area").value == pytest.approx(2 / 3)
