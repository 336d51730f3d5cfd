"""What a draft tells its reviewer: roles, missing codes, who is alone, what goes together."""

import random

import polars as pl

from command import pegs
from pegsynth.schema import Schema, suggest
from pegsynth.schema.toml import dumps
from pegsynth.schema.words import names_codes


def hospital(rows=2000):
    source = random.Random(1)
    diagnoses = [(f"25{i}", f"name {i}") for i in range(6)]
    lines = []
    for _ in range(rows):
        code, name = source.choice(diagnoses)
        sex = source.choice("FM")
        lines.append(
            {
                "patient_id": f"p{source.randint(1, 900)}",
                "age": source.randint(0, 60),
                "sex": sex,
                "dx_code": code,
                "dx_name": name,
                "visits": source.choice([1, 2, 3, 99]),
                "births": "no" if sex == "M" else source.choice(["yes", "no"]),
                "ward": "A" if source.random() < 0.999 else "B",
                "site": "only",
            }
        )
    return pl.DataFrame(lines)


SCHEMA = Schema.draft(hospital())
EVERY = Schema.draft(hospital(), min_count=1)


def notes(name, schema=SCHEMA):
    return " | ".join(schema[name].notes)


def test_repeating_identifiers_are_suggested_as_units():
    assert 'set unit = "patient_id" under [table]' in notes("patient_id")
    assert " with 1, " in notes("patient_id")


def test_numbers_that_are_called_identifiers_are_suggested_as_units():
    """A panel: 300 people with 4 rows each, and a number for each row."""
    panel = pl.DataFrame(
        {
            "rownames": range(1_200),
            "id": [number // 4 for number in range(1_200)],
            "type_id": [number % 3 for number in range(1_200)],
            "wage": [number * 7 % 400 for number in range(1_200)],
        }
    )
    schema = Schema.draft(panel)
    drafted = {each.name: " | ".join(each.notes) for each in schema.columns}
    assert schema.names == ("type_id", "wage")
    assert 'set unit = "id" under [table]' in drafted["id"]
    assert "300 with 4" in drafted["id"]
    assert drafted["rownames"] == "numbers the rows; dropped"
    assert "unit" not in drafted["type_id"] + drafted["wage"]


def test_names_suggest_roles():
    assert 'consider role = "quasi-identifier"' in notes("age")
    assert 'consider role = "quasi-identifier"' in notes("sex")
    assert suggest.role_note("TotalCharge") == suggest.role_note("total_charge")
    assert "sensitive" in suggest.role_note("TotalCharge")[0]
    assert suggest.role_note("page") == suggest.role_note("package") == ()


def test_codes_are_told_from_counts():
    for name in ("admission_type_id", "policePrecinct", "race4", "vote", "ICD_code"):
        assert names_codes(name), name
    for name in ("visits", "age_group", "class_size", "votes", "model_year", "id_card_age"):
        assert not names_codes(name), name
    assert SCHEMA["visits"].kind == "ordinal"
    assert SCHEMA["dx_code"].kind == "nominal"


def test_codes_of_groups_are_categories_and_keys_of_people_are_not():
    """26 codes of a disposition, 60 schools, 400 patients, and rows of children by household."""
    rows = range(6_000)
    frame = pl.DataFrame(
        {
            "discharge_disposition_id": [each % 26 for each in rows],
            "schoolid": [3_000 + each % 60 for each in rows],
            "patient_nbr": [9_000_000 + each % 400 * 7 for each in rows],
            "childid": [each // 4 * 3 for each in rows],
            "license_number": [f"S{each // 2}" for each in rows],
            "last_name": [f"name {each % 40}" for each in rows],
            "covid": [each % 20 for each in rows],
            "employees": [each * 37 % 900 for each in rows],
        }
    )
    schema = Schema.draft(frame)
    assert schema.names == ("discharge_disposition_id", "schoolid", "covid", "employees")
    assert schema["discharge_disposition_id"].kind == schema["schoolid"].kind == "nominal"
    assert schema["covid"].kind == schema["employees"].kind == "numeric"
    for name in ("patient_nbr", "childid"):
        assert "if it names people, set unit" in notes(name, schema)


def test_there_is_one_remark_a_column_and_it_is_the_one_that_most_hangs_on():
    for schema in (SCHEMA, EVERY):
        assert all(len(column.notes) <= 1 for column in schema.columns)
    assert "set unit" in notes("patient_id")
    # By its name it is a sensitive code; that it says what another column says comes first.
    frame = hospital().with_columns(diagnosis=pl.col("dx_code"))
    assert "one to one" in notes("diagnosis", Schema.draft(frame))


def test_nearly_constant_columns_give_no_hints():
    """Each of 6 races happens to have one value of a drug that nearly nobody takes."""
    rows = range(3_000)
    frame = pl.DataFrame(
        {
            "race": [f"r{each % 6}" for each in rows],
            "drug": ["yes" if each % 6 == 0 and each < 1_200 else "no" for each in rows],
        }
    ).filter(~((pl.col("race") == "r0") & (pl.col("drug") == "no")))
    assert frame["drug"].n_unique() == 2
    assert "drug" not in notes("race", Schema.draft(frame))


def test_usual_missing_codes_are_asked_about():
    assert 'does "99" mean that nothing is known?' in notes("visits")
    assert suggest.missing_note({"a": 3, "Unknown": 4}) != ()
    assert suggest.missing_note({str(n): 1 for n in range(100)}) == ()
    assert suggest.missing_note({"1": 5, "2": 5, "-9": 1}) != ()


def test_constants_and_rare_categories_are_shown():
    assert "constant" not in notes("site") + notes("ward")
    assert SCHEMA["ward"].unknown == "category"
    assert 'rows of rare categories: "B" ' in notes("ward", EVERY)


def test_pairs_and_impossible_combinations_are_pointed_out():
    assert "corresponds to 'dx_code' one to one" in notes("dx_name")
    assert 'never with sex = "M"' in notes("births")
    assert "drafted_from_data = true" in notes("births")
    assert SCHEMA.rules == ()


def test_details_are_told_their_parent():
    frame = pl.DataFrame(
        {"chapter": [n // 5 for n in range(20)] * 10, "detail": list(range(20)) * 10}
    )
    schema = Schema.draft(frame.cast(pl.String))
    assert any('consider parent = "chapter"' in note for note in schema["detail"].notes)


def test_suggestions_are_confidential_comments():
    assert "never with" in dumps(SCHEMA, notes=True)
    assert "never with" not in dumps(SCHEMA)


def test_every_column_has_its_fate_told(tmp_path):
    hospital(200).write_csv(tmp_path / "t.csv")
    done = pegs("schema", tmp_path / "t.csv", "-o", tmp_path / "s.toml")
    assert done.code == 0
    for name in hospital(1).columns:
        assert f"  {name} " in done.err
    assert "dropped as an identifier" in done.err or "numeric" in done.err


def test_question_marks_are_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1.5,x\n?,y\n2.5,?\n" * 20)
    schema = Schema.draft(str(tmp_path / "t.csv"))
    assert schema["a"].categories == ("1.5", "2.5")
    assert schema["b"].categories == ("x", "y")
    assert "?" in schema["b"].missing
