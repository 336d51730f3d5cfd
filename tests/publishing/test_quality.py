"""The quality statement: from codebook and ledger alone, and true of both."""

import json
import math
from html import unescape

import msgspec
import pytest

import pegsynth
from pegsynth.privacy import Ledger, NoisyCounts, UnitBound
from pegsynth.publishing.quality import quality_fields, quality_html, quality_markdown
from pegsynth.schema import Feature, Schema

SCHEMA = Schema(
    (
        Feature("a", categories=("x", "y", "z")),
        Feature("b", categories=("0", "1")),
        Feature("c|d", categories=("p", "q")),
    ),
    reviewed=True,
)


def counts(deviation, features, levels):
    made = NoisyCounts.gaussian(
        deviation, cells=1, purpose="table", features=features, levels=levels
    )
    return msgspec.structs.replace(made, table_cells=math.prod(levels))


LEDGER = Ledger(
    (
        UnitBound(rows_per_unit=4),
        counts(10, ("a",), (3,)),
        counts(4, ("a", "b"), (2, 2)),
        counts(3, ("b", "c|d"), (2, 2)),
    )
)


def test_every_field_follows_from_the_ledger():
    found = quality_fields(SCHEMA, LEDGER)
    assert found["rows_per_unit"] == 4
    first, second, _ = found["published_tables"]
    assert (first["cells"], first["noise_sd"], first["merged"]) == (3, 10, [])
    assert (second["cells"], second["noise_sd"], second["merged"]) == (4, 4, ["a"])
    assert first["smallest_trusted_cell"] == math.ceil(1.96 * 10 / 0.1)
    assert found["pairs_held"] == [["a", "b"], ["b", "c|d"]]
    assert found["pairs_not_held"] == [["a", "c|d"]]
    assert found["triples_held"] == []
    groups = {each["feature"]: each["noise_sd"] for each in found["features"]}
    # The table in which a is merged does not count its categories; b is a sum of two cells.
    assert groups["a"] == 10
    assert groups["b"] == pytest.approx(3 * math.sqrt(2), rel=1e-3)


def test_pages_hold_the_same_and_nothing_breaks_them():
    found = quality_fields(SCHEMA, LEDGER)
    text, page = quality_markdown(found), unescape(quality_html(found))
    for words in ("a, b", "supported by a published table", "not supported", "196"):
        assert words in text
        assert words in page
    assert "b, c\\|d" in text
    assert "b, c|d" in page


def test_methods_without_tables_say_so():
    found = quality_fields(SCHEMA, Ledger((counts(10, ("a",), (3,)),)))
    assert found["published_tables"]
    found = quality_fields(SCHEMA, Ledger(()))
    assert found["published_tables"] == []
    assert "publishes no tables" in found["note"]


def test_a_release_with_a_guarantee_has_one_and_no_other(tmp_path):
    frame = pegsynth.datasets.discharge(300, seed=1)
    schema = pegsynth.datasets.discharge_schema()
    made = pegsynth.synthesize(
        frame, schema, method="pegs-once", epsilon=4, delta=1e-6, rows=50, rows_in=300
    )
    made.save(tmp_path / "with")
    found = json.loads((tmp_path / "with/public/QUALITY.json").read_text())
    assert found["published_tables"]
    assert found == json.loads(json.dumps(quality_fields(made.schema, made.ledger)))
    assert "QUALITY.html" in (tmp_path / "with/public/SHA256SUMS").read_text()
    bare = pegsynth.synthesize(frame, schema, method="bootstrap", rows=50)
    bare.save(tmp_path / "without")
    assert not (tmp_path / "without/public/QUALITY.json").exists()


def test_code_is_marked_up_and_criteria_are_told():
    fields = quality_fields(SCHEMA, LEDGER)
    fields |= {"before_counting": ["Numbers of `a<b` were cut.", "A `lonely mark"]}
    fields |= {"accepted_by": {"single": 0.02, "pair": 0.05}}
    page = quality_html(fields)
    assert "Numbers of <code>a&lt;b</code> were cut." in page
    assert "A `lonely mark" in page
    for text in (page, quality_markdown(fields)):
        assert "criteria that were stated before: single at most 2.00%, pair at most 5.00%" in text
