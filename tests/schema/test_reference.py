"""Keys are declared once: the parser, the page, the JSON Schema and messages follow from that."""

import json
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from pegsynth.errors import SchemaError
from pegsynth.schema.toml import Table, all_keys, loads, misplaced

ROOT = Path(__file__).parents[2]
JSON_SCHEMA = json.loads((ROOT / "docs" / "schema.schema.json").read_text(encoding="utf-8"))
PLACE = {
    "File": "file",
    "Table": "table",
    "Panel": "panel",
    "OneOfTwo": "tables",
    "Feature": "features",
    "EqualWidth": "bins",
    "RuleTable": "rules",
    "Analysis": "analyses",
    "WantedTable": "tables_wanted",
}
KEYS = [(PLACE[kind.__name__], key) for kind, key in all_keys()]
every_key = pytest.mark.parametrize(
    ("place", "key"), KEYS, ids=[f"{place}.{key.name}" for place, key in KEYS]
)
HEADS = {"file": "", "table": "[table]\n", "features": "", "bins": "", "rules": ""}
WARD = '[[features]]\nname = "ward"\ncategories = ["maternity", "other"]\n'
OTHERS = (
    '[[features]]\nname = "sex"\ncategories = ["f", "m"]\n'
    '[[features]]\nname = "admitted"\nkind = "date"\nedges = "private"\n'
    '[[features]]\nname = "discharged"\nkind = "date"\nedges = "private"\nafter = "admitted"\n'
    '[[features]]\nname = "birth"\ncategories = ["yes", "no"]\n'
    f'{WARD}[[features]]\nname = "chapter"\ncategories = ["1"]\n'
)
BESIDE = {
    "when": 'allow_only = { sex = ["f"] }\n',
    "allow_only": 'when = { ward = ["maternity"] }\n',
    "drafted_from_data": 'forbid = { sex = ["m"], birth = ["yes"] }\n',
    "label": 'forbid = { sex = ["m"], birth = ["yes"] }\n',
    "lowest": "highest = 100\ncount = 20\n",
    "highest": "lowest = 0\ncount = 20\n",
    "count": "lowest = 0\nhighest = 100\n",
    "width": "lowest = 0\nhighest = 100\n",
}

DATED = ("format", "resolution", "weekday", "after")


def example(place, key):
    """A whole file that holds the example of a key."""
    line = f"{key.name} = {key.example}\n"
    if place == "file" and key.name == "tables":
        first = '{ name = "a", key = "k", features = ["sex"] }'
        second = '{ name = "b", key = "k", order = "admitted", most = 8 }'
        return f"tables = [{first}, {second}]\n{OTHERS}"
    if place == "file":
        return line + ("" if key.name == "features" else OTHERS)
    if place == "table":
        return f"[table]\n{line}{OTHERS}"
    if place == "panel":
        lines = {"unit": '"patient"', "time": '"admitted"', "most": "4"} | {key.name: key.example}
        if key.name in ("tables", "least"):
            lines |= {"wide": "true", "tables": '["a", "b"]', "fixed": '["sex"]'}
        born = '[[features]]\nname = "birth_year"\ncategories = ["1"]\n'
        return "[panel]\n" + "".join(f"{k} = {v}\n" for k, v in lines.items()) + OTHERS + born
    if place == "tables":
        units = {"name": '"households"', "key": '"household"', "features": '["sex"]'}
        rows = {"name": '"persons"', "key": '"household"', "order": '"admitted"', "most": "8"}
        first = key.name in units
        (units if first else rows)[key.name] = key.example
        if key.name == "features":
            units["features"] = key.example
        blocks = ("".join(f"{k} = {v}\n" for k, v in each.items()) for each in (units, rows))
        more = "".join(
            f'[[features]]\nname = "{name}"\nkind = "ordinal"\ncategories = ["1"]\n'
            for name in ("region", "rooms", "age")
        )
        return "".join(f"[[tables]]\n{block}" for block in blocks) + OTHERS + more
    if place == "rules":
        return f"{OTHERS}[[rules]]\n{line}{BESIDE.get(key.name, '')}"
    if place in ("analyses", "tables_wanted"):
        needed = {"analyses": 'formula = "age ~ sex"\n', "tables_wanted": 'features = ["sex"]\n'}
        other = "" if key.name in ("formula", "features") else needed[place]
        return f"{OTHERS}[[{place}]]\n{line}{other}"
    if place == "bins":
        inside = ", ".join((line + BESIDE[key.name]).strip().splitlines())
        return f'{OTHERS}[[features]]\nname = "x"\nkind = "numeric"\nbins = {{ {inside} }}\n'
    if key.name == "label_of":
        texts = 'value_labels = { f = "female", m = "male" }\n'
        return f'{OTHERS}[[features]]\nname = "x"\n{line}{texts}'
    if key.name in DATED:
        kind = "date" if key.name in ("format", "after", "weekday") else "datetime"
        dated = f'name = "x"\nkind = "{kind}"\nedges = "private"\n'
        return f"{OTHERS}[[features]]\n{dated}{line}"
    name = "" if key.name == "name" else 'name = "x"\n'
    private = key.name in ("lowest", "highest", "inside", "decimals")
    numeric = (
        private or key.name in ("edges", "bins") or (key.name, key.example) == ("kind", '"numeric"')
    )
    kind = "" if not numeric or key.name == "kind" else 'kind = "numeric"\n'
    values = "" if key.name in ("categories", "edges", "bins") else 'categories = ["1", "2"]\n'
    if key.name == "kind":
        values = "edges = [0, 1]\n"
    if key.name == "level":
        values += 'hierarchy = "prefix:3"\n'
    if private:
        values = 'edges = "private"\n'
    if key.name == "keep_missing_codes":
        values += 'missing = ["-8", "-9"]\n'
    age = '[[features]]\nname = "age"\ncategories = ["1"]\n' if key.name == "heads" else ""
    return f"{OTHERS}{age}[[features]]\n{name}{kind}{line}{values}"


@every_key
def test_every_example_is_read_and_fits_the_json_schema(place, key):
    text = example(place, key)
    if key.name == "rules" and place == "file":
        text = OTHERS + '[[rules]]\nforbid = { sex = ["m"], birth = ["yes"] }\n'
    loads(text)
    jsonschema.validate(tomllib.loads(text), JSON_SCHEMA)


@every_key
def test_a_key_of_no_place_is_refused_by_both(place, key):
    wrong = example(place, key).replace(f"{key.name} =", f"{key.name}x =")
    with pytest.raises(SchemaError):
        loads(wrong)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(wrong), JSON_SCHEMA)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            'unit = "person"\n' + OTHERS,
            r"it belongs under \[table\] or under \[panel\], as unit = \"person\"",
        ),
        ("rows_per_unit = 3\n" + OTHERS, r"it belongs under \[table\]"),
        ('[[features]]\nname = "a"\nunit = "person"\n', r"it belongs under \[table\]"),
        ("[table]\nreviewed = true\n" + OTHERS, "it belongs at the top of the file"),
        ('[table]\ncategories = ["a"]\n' + OTHERS, r"it belongs under \[\[features\]\]"),
        ("Unit = 'person'\n" + OTHERS, r"did you mean 'unit'\? It belongs under \[table\]"),
        ("[table]\nuint = 'person'\n" + OTHERS, "did you mean 'unit'"),
        ('[[features]]\nname = "a"\nwidth = 3\n', r"it belongs in bins = \{"),
        ('[[features]]\nname = "a"\ncategorie = ["x"]\n', "did you mean 'categories'"),
    ],
)
def test_a_misplaced_key_is_told_its_place(text, words):
    with pytest.raises(SchemaError, match=words) as told:
        loads(text)
    assert "docs/schema.md explains them" in str(told.value)


def test_places_have_words():
    assert {place for place, _ in KEYS} == set(PLACE.values())
    assert misplaced("zzzzzz", Table).startswith("did you mean ")


def test_the_pages_are_written_by_their_tool():
    sys.path.insert(0, str(ROOT / "tools"))
    import schema_reference

    for name, text in schema_reference.pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text
    page = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    assert all(f"| `{key.name}` |" in page for _, key in KEYS)
    loads(page.partition("```toml\n")[2].partition("```")[0])
