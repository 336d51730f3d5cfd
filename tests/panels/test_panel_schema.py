"""What a schema says of a panel, and the codebook of the folded table (R24)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from panel_tables import PERSON, SEX, STATE, TIMES, panel_book

from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.panel import ABSENT, Panel
from pegsynth.schema.toml import dumps, loads
from pegsynth.schema.wide_schema import gap_edges, long_schema, wide_schema

TEXT = """
reviewed = true
[panel]
unit = "patient"
time = "year"
most = 3
fixed = ["sex"]
[[features]]
name = "patient"
role = "identifier"
[[features]]
name = "sex"
categories = ["f", "m"]
[[features]]
name = "year"
kind = "ordinal"
categories = [2020, 2021, 2022]
[[features]]
name = "ward"
categories = ["a", "b"]
"""


def test_a_panel_is_read_and_written():
    schema = loads(TEXT)
    assert schema.panel == Panel("patient", "year", 3, ("sex",))
    assert (schema.unit, schema.rows_per_unit) == ("patient", 1)
    assert loads(dumps(schema)) == schema
    wide = wide_schema(schema)
    assert loads(dumps(wide)) == wide
    assert wide_schema(wide) is wide
    gaps = replace(panel_book("number"), panel=Panel("person", "when", 2, (), (0, 1, 5)))
    assert loads(dumps(gaps)) == gaps


@pytest.mark.parametrize("kind", TIMES)
def test_the_long_codebook_comes_back(kind):
    schema = panel_book(kind)
    assert long_schema(wide_schema(schema)) == schema
    assert long_schema(schema) is schema


def test_the_folded_table_has_fixed_features_once_and_others_at_every_position():
    wide = wide_schema(loads(TEXT))
    names = ["sex", "year_1", "ward_1", "patient_rows", "year_2", "ward_2", "year_3", "ward_3"]
    assert list(wide.names) == names
    assert wide["patient_rows"].categories == ("1", "2", "3")
    assert wide["ward_1"].not_applicable == ()
    assert wide["ward_2"].not_applicable == (ABSENT,)


def test_rules_hold_in_every_unit():
    wide = wide_schema(loads(TEXT))
    place = {name: wide.index(name) for name in wide.names}
    line = dict.fromkeys(wide.names, 0) | {"patient_rows": 1, "year_3": 3, "ward_3": 2}
    good = [line[name] for name in wide.names]

    def broken(**changes):
        codes = list(good)
        for name, code in changes.items():
            codes[place[name]] = code
        import numpy as np

        return bool(wide.breaks_a_rule(np.array([codes]))[0])

    assert not broken()
    assert broken(ward_2=2), "a row that counts is absent"
    assert broken(ward_3=0), "a row that does not count is there"
    assert broken(patient_rows=2), "a row is missing at the end"
    assert broken(year_1=1), "the time runs backwards"
    assert not broken(year_2=2)


def test_rules_of_the_schema_hold_at_every_position():
    schema = loads(TEXT).with_rules(Rule.forbid(sex="m", ward="a", label="no"))
    wide = wide_schema(schema)
    assert sum(rule.label == "no" for rule in wide.rules) == 3
    assert [rule.label for rule in long_schema(wide).rules] == ["no"]


def test_own_values_that_are_not_applicable_become_a_category():
    ward = Feature("ward", categories=("a",), not_applicable=("-8",))
    schema = Schema((PERSON, TIMES["ordinal"], ward), panel=Panel("person", "when", 2))
    assert wide_schema(schema)["ward_2"].labels == ("a", "-8", ABSENT)


def test_the_time_between_rows_has_edges_that_follow_from_the_time():
    assert gap_edges(TIMES["number"]) == (0, 1, 2, 4, 8, 16, 20)
    stated = replace(panel_book("date"), panel=Panel("person", "when", 2, (), (0, 30, 365)))
    assert wide_schema(stated)["when_2"].edges == (0, 30, 365)
    assert wide_schema(stated)["when_2"].after == "when_1"
    private = replace(panel_book("number"), panel=Panel("person", "when", 2, (), "private"))
    gap = wide_schema(private)["when_2"]
    assert (gap.private_edges, gap.lowest, gap.highest) == (True, 0, 20)


def edited(**lines):
    text = TEXT
    for key, line in lines.items():
        at = next(each for each in TEXT.splitlines() if each.startswith(f"{key} ="))
        text = text.replace(at, line, 1)
    return text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (edited(most="most = 0"), "most must be a whole number from 1 to 64"),
        (edited(time='time = "ward"'), "'ward', which is nominal and has no order"),
        (edited(time='time = "patient"'), "'patient', which is not a modelled feature"),
        (edited(fixed='fixed = ["year"]'), "'year' is the time; it is not fixed"),
        (edited(fixed='fixed = ["age"]'), "fixed names 'age'"),
        (edited(fixed='fixed = ["sex"]\ngaps = "some"'), "gaps are a list of numbers"),
        (edited(fixed='fixed = ["sex"]\ngaps = [0, 1]'), "'year' is ordinal"),
        (edited(fixed='fixed = ["sex"]\nsize = 2'), "the key 'size' is not known"),
        (TEXT + '[table]\nunit = "ward"\n', "names the unit 'ward' and .panel. another one"),
        (TEXT + "[table]\nrows_per_unit = 3\n", "rows_per_unit cannot be combined with .panel."),
    ],
)
def test_what_cannot_be_is_refused(text, message):
    with pytest.raises(SchemaError, match=message):
        loads(text)


def test_names_that_the_folded_table_would_have_twice_are_refused():
    twice = Feature("state_2", categories=("x",))
    panel = Panel("person", "when", 2, ("state_2",))
    schema = Schema((PERSON, SEX, TIMES["ordinal"], STATE, twice), panel=panel)
    with pytest.raises(SchemaError, match="two columns 'state_2'"):
        wide_schema(schema)


def test_the_unit_of_the_table_may_be_named_again():
    schema = loads(TEXT + '[table]\nunit = "patient"\n')
    assert schema.unit == "patient"
