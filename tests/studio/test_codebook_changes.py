"""Forms of the codebook: what they change, and that the shown code changes the same."""

from __future__ import annotations

import random

import polars as pl
import pytest

from pegsynth.errors import PegsynthError
from pegsynth.schema import Schema
from pegsynth.schema.toml import load
from pegsynth.studio.codebook_changes import apply, suggestions

ROWS = 600
TABLE = pl.DataFrame(
    {
        "patient": [f"p{n // 3}" for n in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "ward": [("a1", "a2", "b1")[n % 3] for n in range(ROWS)],
        "wing": [("a", "a", "b")[n % 3] for n in range(ROWS)],
        "births": [str(n % 5) if n % 2 == 0 else "0" for n in range(ROWS)],
        "grade": [(1, 2, 3, -99)[n % 4] for n in range(ROWS)],
        "charge": [n * 1.25 for n in range(ROWS)],
        "day": [f"2024-01-{n % 28 + 1:02d}" for n in range(ROWS)],
    }
)


@pytest.fixture
def file(tmp_path):
    Schema.draft(TABLE).save(tmp_path / "schema.toml")
    return tmp_path / "schema.toml"


def told(**fields):
    return {name: [value] if isinstance(value, str) else value for name, value in fields.items()}


def changed(file, **fields):
    """Apply a form, and run the code that it shows on what was there before."""
    before = file.read_bytes()
    _, code = apply(file, told(**fields))
    after = file.read_bytes()
    other = file.with_name("other.toml")
    other.write_bytes(before)
    exec(code.replace("'schema.toml'", repr(str(other))), {})
    assert other.read_bytes() == after
    return load(file, notes=True)


def notes(schema, name):
    return [each for each in suggestions(schema) if each.column == name]


def test_remarks_stay_until_they_are_dismissed(file):
    before = load(file, notes=True)
    after = changed(file, what="bulk", role="other", chosen=["ward"])
    assert [column.notes for column in after.columns] == [column.notes for column in before.columns]
    found = next(suggestions(before))
    name, place = found.column, found.place
    apply(file, told(what="suggestion", do="dismiss", name=name, place=str(place)))
    assert len(notes(load(file, notes=True), name)) == len(notes(before, name)) - 1


@pytest.mark.parametrize(
    ("name", "what"),
    [("patient", "unit"), ("births", "role"), ("grade", "missing"), ("births", "rule")],
)
def test_a_suggestion_is_accepted(file, name, what):
    before = load(file, notes=True)
    if what == "rule" and not any(each.what == "rule" for each in suggestions(before)):
        pytest.skip("this draft suggests no rule")
    (found,) = [each for each in suggestions(before) if each.what == what][:1]
    apply(
        file,
        told(what="suggestion", do="accept", name=found.column, place=str(found.place)),
    )
    after = load(file, notes=True)
    assert found.note not in after[found.column].notes
    if what == "unit":
        assert after.unit == found.value
    elif what == "missing":
        assert set(found.value) <= set(after[found.column].missing)
        assert not set(found.value) & set(after[found.column].categories)
    elif what == "rule":
        assert after.rules[-1].drafted_from_data
    else:
        assert after[found.column].role == found.value


def test_all_roles_are_accepted_at_once(file):
    wanted = {each.column for each in suggestions(load(file, notes=True)) if each.what == "role"}
    apply(file, told(what="suggestion", do="roles"))
    after = load(file, notes=True)
    assert wanted
    assert not [each for each in suggestions(after) if each.what == "role"]
    assert all(after[name].role != "other" for name in wanted)


def test_what_every_kind_of_remark_means():
    """The texts are those of `schema.suggest`; a change there must not pass unseen."""
    from pegsynth.schema import suggest
    from pegsynth.studio.codebook_changes import _meaning

    assert _meaning(suggest.role_note("diagnosis")[0]) == ("role", "sensitive")
    assert _meaning(suggest.role_note("age")[0]) == ("role", "quasi-identifier")
    assert _meaning(suggest.missing_note({"1": 5, "2": 5, "-99": 1})[0]) == ("missing", ("-99",))
    frame = TABLE.select("ward", "wing", "sex").with_columns(
        other=pl.col("ward").replace_strict({"a1": "x", "a2": "y", "b1": "z"}),
        never=pl.when(pl.col("sex") == "f").then(pl.lit("g")).otherwise(pl.col("sex")),
        fine=pl.concat_str("ward", "sex", pl.int_range(ROWS) % 2),
    )
    listed = {name: frame[name].unique().to_list() for name in frame.columns}
    found = {_meaning(note)[0] for _, note in suggest.together(frame, listed)}
    assert found == {"role", "parent", "rule"}
    repeated = dict(suggest.unit_notes(TABLE, ["patient"]))
    assert _meaning(repeated["patient"]) == ("unit", "patient")


def test_a_panel_is_set_and_taken_back(file):
    schema = changed(
        file, what="unit", unit="patient", rows_per_unit="3", time="day", fixed=["sex"]
    )
    assert (schema.panel.time, schema.panel.most, schema.panel.fixed) == ("day", 3, ("sex",))
    schema = changed(file, what="unit", unit="patient", rows_per_unit="2", time="")
    assert schema.panel is None
    assert (schema.unit, schema.rows_per_unit) == ("patient", 2)
    assert changed(file, what="unit", unit="", rows_per_unit="1").unit is None


def test_a_hierarchy_is_set_kept_and_taken_back(file, tmp_path):
    (tmp_path / "wings.csv").write_text("code,parent\na1,a\na2,a\nb1,b\n")
    same = {"what": "feature", "name": "ward", "role": "other", "kind": "nominal"}
    listed = {"categories": "a1\r\na2\r\nb1"}
    schema = changed(file, **same, **listed, hierarchy="wings.csv")
    assert schema["ward"].categories == ("a", "b")
    schema = changed(file, **same, hierarchy="as it is", categories="a\r\nb", label="wing")
    assert schema["ward"].recoding.hierarchy is not None
    assert changed(file, **same, hierarchy="", categories="a\r\nb")["ward"].recoding is None


def test_edges_are_shown_exactly(file):
    """A page that rounds would change what it only shows."""
    from pegsynth.studio.codebook_forms import details

    changed(
        file,
        what="feature",
        name="charge",
        role="other",
        kind="numeric",
        edges="0 0.1234567891 800",
    )
    schema = load(file)
    place = [column.name for column in schema.columns].index("charge")
    assert details(schema, place, None, may_see=True)["edges"] == "0 0.1234567891 800"


def forms(draw):
    """Return a random form; many are refused, as those of people are."""
    name = draw.choice([*TABLE.columns])
    role = draw.choice(["", "other", "sensitive", "quasi-identifier", "identifier", "drop"])
    return draw.choice(
        [
            {
                "what": "bulk",
                "chosen": draw.sample(TABLE.columns, 2),
                "role": role,
                "kind": draw.choice(["", "nominal", "ordinal"]),
                "private": draw.choice(["", "categories", "edges"]),
                "missing": draw.choice(["", "-99", "?"]),
            },
            {
                "what": "feature",
                "name": name,
                "role": role or "other",
                "kind": draw.choice(["nominal", "ordinal", "numeric"]),
                "categories": draw.choice(["a\nb\nc", "0\n1\n2", ""]),
                "edges": draw.choice(["", "0 10 100", "1 0"]),
                "private": draw.choice(["", "categories", "edges"]),
                "lowest": draw.choice(["", "0"]),
                "top": draw.choice(["", "50"]),
                "round": draw.choice(["", "5"]),
                "hierarchy": draw.choice(["", "prefix:1", "as it is"]),
                "parent": draw.choice(["", "wing"]),
                "unknown": draw.choice(["error", "category"]),
                "label": draw.choice(["", 'a "label"']),
            },
            {
                "what": "unit",
                "unit": draw.choice(["", "patient", name]),
                "rows_per_unit": draw.choice(["1", "3"]),
                "time": draw.choice(["", "", "day"]),
            },
            {
                "what": "rule",
                "feature_a": "sex",
                "values_a": "f",
                "feature_b": draw.choice(["ward", "wing"]),
                "values_b": draw.choice(["a", "b1", "a1\na2"]),
            },
            {"what": "review", "reviewer": "R", "declared": "yes"},
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_code_of_random_changes_gives_the_same_file(file, seed):
    draw = random.Random(seed)
    done = 0
    for _ in range(25):
        before = file.read_bytes()
        try:
            changed(file, **forms(draw))
            done += 1
        except PegsynthError:
            assert file.read_bytes() == before
    assert done >= 5
