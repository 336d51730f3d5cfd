"""The schema file: what is written is read back, and whatever else is refused readably."""

import contextlib
import os
import stat
import string
import time
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.errors import OutputError, SchemaError
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.toml import dumps, load, loads, save

DISCHARGE = """
format = 1
reviewed = true

[table]
unit = "patient"
rows_per_unit = 3

[[features]]
name = "patient"
role = "identifier"

[[features]]
name = "sex"
role = "quasi-identifier"
dtype = "string"
categories = ["Male", "Female"]
missing = ["", "NA"]

[[features]]
name = "age.yrs"
kind = "numeric"
dtype = "int64"
edges = [0, 18, 40, 65, 120]
not_applicable = [-9]

[[features]]
name = "MDC"
kind = "ordinal"
role = "sensitive"
dtype = "int64"
categories = [1, 2, 14]
heads = ["age.yrs", "sex"]
l = 2
parent = "sex"
unknown = "category"
label = "major diagnostic category"
drafted_from_data = true
"""


def rules_of(text):
    return [(rule.label, dict(rule.forbidden)) for rule in loads(DISCHARGE + text).rules]


def error_of(text, source="file.toml"):
    with pytest.raises(SchemaError) as caught:
        loads(text, source)
    message = str(caught.value)
    assert message.startswith(f"{source}: ")
    return message


# ---------------------------------------------------------------- reading


def test_every_key_is_read():
    schema = loads(DISCHARGE)
    assert schema.reviewed
    assert (schema.unit, schema.rows_per_unit) == ("patient", 3)
    assert schema.names == ("sex", "age.yrs", "MDC")
    sex, age, mdc = schema.features
    assert sex.missing == ("", "NA")
    assert age.edges == (0, 18, 40, 65, 120)
    assert age.not_applicable == ("-9",)
    assert mdc == Feature(
        "MDC",
        kind="ordinal",
        categories=("1", "2", "14"),
        role="sensitive",
        dtype="int64",
        heads=("age.yrs", "sex"),
        l=2.0,
        parent="sex",
        unknown="category",
        drafted_from_data=True,
        label="major diagnostic category",
    )


def test_numbers_truth_values_and_dates_become_category_texts():
    schema = loads(
        '[[features]]\nname="x"\ncategories=[1, 2.5, 3.0, true, "007", 2020-02-01, 0x10]'
    )
    assert schema.features[0].categories == ("1", "2.5", "3", "true", "007", "2020-02-01", "16")


@pytest.mark.parametrize(
    ("bins", "edges"),
    [
        ("{ lowest = 0, highest = 100, count = 4 }", (0, 25, 50, 75, 100)),
        ("{ lowest = 0, highest = 10, width = 5 }", (0, 5, 10)),
        ("{ lowest = 0, highest = 0.5, width = 0.1 }", (0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        ("{ lowest = -1.5, highest = 1.5, count = 2 }", (-1.5, 0, 1.5)),
    ],
)
def test_equal_width_bins_become_exact_edges(bins, edges):
    schema = loads(f'[[features]]\nname="x"\nkind="numeric"\nbins={bins}')
    assert schema.features[0].edges == edges


@pytest.mark.parametrize(
    "bins",
    [
        "5",
        "{}",
        "{ lowest = 0, highest = 1 }",
        "{ lowest = 0, count = 2 }",
        "{ lowest = 0, highest = 1, count = 2, width = 0.5 }",
        "{ lowest = 1, highest = 0, count = 2 }",
        "{ lowest = 0, highest = 1, count = 0 }",
        "{ lowest = 0, highest = 1, count = 1.5 }",
        "{ lowest = 0, highest = 1, count = 1000000000000 }",
        "{ lowest = 0, highest = 1, width = 0.3 }",
        "{ lowest = 0, highest = 1, width = -0.5 }",
        "{ lowest = 0, highest = inf, width = 1 }",
        "{ lowest = 0, highest = 1, width = 1e-300 }",
        "{ lowest = 1e300, highest = 1.0000000000000002e300, count = 100 }",
        "{ lowest = 0, highest = 1, number = 2 }",
        "{ lowest = 0, highest = 1, count = 2 }\nedges = [0, 1]",
    ],
)
def test_impossible_bins_are_refused(bins):
    assert "'x'" in error_of(f'[[features]]\nname="x"\nkind="numeric"\nbins={bins}')


# ---------------------------------------------------------------- rules


def test_a_rule_forbids_by_name_and_category():
    text = '[[rules]]\nlabel="r"\nforbid = { MDC = ["14"], sex = ["Male", "(missing)"] }'
    assert rules_of(text) == [("r", {0: {0, 2}, 2: {2}})]


@pytest.mark.parametrize("category", ['"NA"', '""', '"(missing)"'])
def test_missing_can_be_named_by_label_or_by_text(category):
    assert rules_of(f"[[rules]]\nforbid = {{ sex = [{category}] }}") == [("", {0: {2}})]


def test_not_applicable_and_unknown_can_be_named():
    text = '[[rules]]\nforbid = { "age.yrs" = [-9], MDC = ["(other)", 14] }'
    assert rules_of(text) == [("", {1: {4}, 2: {2, 3}})]


@pytest.mark.parametrize(
    ("age", "codes"),
    [
        ("{ at_least = 65 }", {3}),
        ("{ below = 40 }", {0, 1}),
        ("{ at_least = 18, below = 65.0 }", {1, 2}),
        ("{ at_least = 0 }", {0, 1, 2, 3}),
        ('["[18, 40)", "[65, 120]"]', {1, 3}),
    ],
)
@pytest.mark.parametrize("key", ['"age.yrs"', "age.yrs"])
def test_numeric_features_take_ranges_and_labels_and_dotted_names(age, codes, key):
    assert rules_of(f"[[rules]]\nforbid = {{ {key} = {age}, MDC = [14] }}") == [
        ("", {1: codes, 2: {2}})
    ]


def test_ordinal_numbers_take_ranges():
    assert rules_of("[[rules]]\nforbid = { MDC = { at_least = 1.5, below = 14 } }") == [
        ("", {2: {1}})
    ]


def test_a_name_that_begins_another_is_told_apart():
    text = """
    [[features]]
    name = "a"
    kind = "numeric"
    edges = [0, 1, 2]
    [[features]]
    name = "a.b"
    categories = ["x", "y"]
    [[rules]]
    forbid = { a.b = ["x"] }
    [[rules]]
    forbid = { a = { at_least = 1 } }
    """
    assert [dict(rule.forbidden) for rule in loads(text).rules] == [{1: {0}}, {0: {1}}]


def test_allow_only_forbids_all_other_categories_one_rule_per_feature():
    text = """
    [[rules]]
    label = "pregnancy"
    when = { MDC = [14] }
    allow_only = { sex = ["Female"], age.yrs = { at_least = 18, below = 65 } }
    """
    assert rules_of(text) == [
        ("pregnancy", {0: {0, 2}, 2: {2}}),
        ("pregnancy", {1: {0, 3, 4}, 2: {2}}),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "",
        'forbid = "sex"',
        "forbid = {}",
        'forbid = { sex = "Male" }',
        "forbid = { sex = [] }",
        'forbid = { sex = ["Mle"] }',
        "forbid = { sex = [[1]] }",
        "forbid = { sex = { at_least = 1 } }",
        "forbid = { sex = { from = 1 } }",
        'forbid = { seks = ["Male"] }',
        'forbid = { patient = ["1"] }',
        'forbid = { sex = ["Male", "Female", "(missing)"] }',
        'forbid = { "age.yrs" = { at_least = 20 } }',
        'forbid = { "age.yrs" = { below = 120 } }',
        'forbid = { "age.yrs" = { at_least = 120 } }',
        'forbid = { "age.yrs" = { at_least = 65, below = 18 } }',
        'forbid = { "age.yrs" = { at_least = "65" } }',
        'forbid = { "age.yrs" = { at_leest = 65 } }',
        'forbid = { "age.yrs" = {} }',
        'forbid = { "age.yrs" = { at_least = nan } }',
        "forbid = { age.yrs = [-9], 'age.yrs' = [-9] }",
        "forbid = { MDC = { at_least = 15 } }",
        "when = { MDC = [14] }",
        "allow_only = { MDC = [14] }",
        "when = { MDC = [14] }\nallow_only = { MDC = [14] }",
        'when = { MDC = [14] }\nallow_only = { sex = ["Male", "Female", "(missing)"] }',
        'forbid = { MDC = [14] }\nwhen = { sex = ["Male"] }',
        "forbids = { MDC = [14] }",
    ],
)
def test_wrong_rules_are_refused_by_name(body):
    assert "rule 'the one'" in error_of(f'{DISCHARGE}\n[[rules]]\nlabel="the one"\n{body}')
    assert "rule 1" in error_of(f"{DISCHARGE}\n[[rules]]\n{body}")


# ---------------------------------------------------------------- refusals

ONE = '[[features]]\nname = "x"\ncategories = ["a"]\n'
HOSTILE = {
    "empty": "",
    "not toml": "this is a CSV,file\n1,2",
    "unclosed": "format = [1, ",
    "key twice": "format = 1\nformat = 1\n" + ONE,
    "no features": "format = 1",
    "features not tables": "features = 1",
    "features of numbers": "features = [1, 2]",
    "single brackets": '[features]\nname = "x"',
    "rules not tables": ONE + "[rules]\nforbid = 1",
    "rule numbers": "rules = [1]\n" + ONE,
    "table not a table": "table = 1\n" + ONE,
    "table key": "[table]\nunits = 'x'\n" + ONE,
    "unit number": "[table]\nunit = 1\n" + ONE,
    "rows zero": "[table]\nrows_per_unit = 0\n" + ONE,
    "rows text": "[table]\nrows_per_unit = '3'\n" + ONE,
    "rows true": "[table]\nrows_per_unit = true\n" + ONE,
    "reviewed text": 'reviewed = "false"\n' + ONE,
    "reviewed number": "reviewed = 1\n" + ONE,
    "format text": 'format = "1"\n' + ONE,
    "format true": "format = true\n" + ONE,
    "format zero": "format = 0\n" + ONE,
    "format newer": "format = 2\nsomething_new = 1\n" + ONE,
    "unknown key": "revewed = true\n" + ONE,
    "feature key": ONE + "rolle = 'other'",
    "no name": "[[features]]\ncategories = ['a']",
    "name number": "[[features]]\nname = 1\ncategories = ['a']",
    "name empty": "[[features]]\nname = ''\ncategories = ['a']",
    "kind number": ONE + "kind = 3",
    "kind unknown": ONE + "kind = 'binary'",
    "categories text": "[[features]]\nname = 'x'\ncategories = 'abc'",
    "categories table": "[[features]]\nname = 'x'\ncategories = { a = 1 }",
    "categories nested": "[[features]]\nname = 'x'\ncategories = [['a']]",
    "categories infinite": "[[features]]\nname = 'x'\ncategories = [inf]",
    "categories times": "[[features]]\nname = 'x'\ncategories = [2020-01-01T00:00:00]",
    "categories twice": "[[features]]\nname = 'x'\ncategories = [1, '1']",
    "edges text": "[[features]]\nname = 'x'\nkind = 'numeric'\nedges = ['0', '1']",
    "edges true": "[[features]]\nname = 'x'\nkind = 'numeric'\nedges = [false, true]",
    "edges nan": "[[features]]\nname = 'x'\nkind = 'numeric'\nedges = [0, nan]",
    "edges vast": f"[[features]]\nname = 'x'\nkind = 'numeric'\nedges = [0, {'9' * 400}]",
    "edges long": "[[features]]\nname = 'x'\nkind = 'numeric'\nedges = [0, 9007199254740993]",
    "edges on nominal": ONE + "edges = [0, 1]",
    "too many digits": f"[[features]]\nname = 'x'\ncategories = [{'9' * 5000}]",
    "missing text": ONE + "missing = ''",
    "missing is category": ONE + "missing = ['a']",
    "l text": ONE + "l = '2'",
    "l low": ONE + "l = 0.5",
    "heads number": ONE + "heads = [1]",
    "heads text": ONE + "heads = 'x'",
    "heads unknown": ONE + "heads = ['y']",
    "parent self": ONE + "parent = 'x'",
    "drafted text": ONE + "drafted_from_data = 'yes'",
    "name twice": ONE + ONE,
    "deep list": "format = " + "[" * 100_000,
    "deep table": "format = " + "{a=" * 100_000,
    "deep key": ONE + "[[rules]]\nforbid = { " + "a." * 5_000 + "a = [1] }",
    "long key": "k" * 1_000_000 + " = 1",
    "control character": "format = 1\x00",
    "bad escape": 'format = "\\q"',
    "bad date": "format = 2020-13-45",
    "only identifiers": "[[features]]\nname = 'x'\nrole = 'identifier'",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_documents_give_one_readable_error(text):
    message = error_of(text)
    assert len(message) < 1_000
    assert "Traceback" not in message


def test_invalid_toml_is_located():
    assert "line 3, column" in error_of("format = 1\n\nname = = 2")


def test_an_unknown_key_is_answered_with_the_nearest():
    message = error_of(ONE + "categorys = ['a']")
    assert "'categorys'" in message
    assert "did you mean 'categories'" in message
    assert "feature 'x'" in message


def test_another_format_says_so():
    assert "this program reads format 1 only" in error_of(HOSTILE["format newer"])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="[]{}=\"'.,#\n ab1", max_size=60))
def test_no_text_raises_anything_else(text):
    with contextlib.suppress(SchemaError):
        loads(text)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_value_of_any_type_raises_anything_else(data):
    keys = [
        "categories",
        "edges",
        "bins",
        "missing",
        "heads",
        "l",
        "parent",
        "kind",
        "role",
        "dtype",
    ]
    values = ["1", "-1.5", "true", '"numeric"', "[1, 2]", '["a"]', "{ lowest = 1 }", "[[]]", "nan"]
    lines = [
        f"{key} = {data.draw(st.sampled_from(values))}"
        for key in data.draw(st.lists(st.sampled_from(keys), unique=True))
    ]
    try:
        loads('[[features]]\nname = "x"\n' + "\n".join(lines))
    except SchemaError as error:
        assert "feature 'x'" in str(error)  # noqa: PT017 - both outcomes are allowed


# ---------------------------------------------------------------- files


def test_load_names_the_file_and_the_trouble(tmp_path):
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"format = 1 # caf\xe9")
    for path, word in [
        (tmp_path / "absent.toml", "no such file"),
        (tmp_path, "folder"),
        (latin, "UTF-8"),
        (latin / "below", "cannot be read"),
        ("nul\x00.toml", "cannot be read"),
    ]:
        with pytest.raises(SchemaError, match=word) as caught:
            load(path)
        if path != "nul\x00.toml":
            assert str(path) in str(caught.value)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xef\xbb\xbf" + DISCHARGE.replace("\n", "\r\n").encode())
    assert load(path) == loads(DISCHARGE)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_unreviewed_draft_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "schema.toml"
    feature = Feature("x", categories=("a",), drafted_from_data=True)
    old = os.umask(0o022)
    try:
        save(Schema((feature,)), path)
        assert mode(path) == 0o600
        assert path.read_text().startswith("# CONFIDENTIAL: drafted from data")
        save(Schema((feature,), reviewed=True), path)
        assert mode(path) == 0o644
        save(Schema((Feature("x", categories=("a",)),)), path)
        assert mode(path) == 0o644
    finally:
        os.umask(old)
    assert [child.name for child in tmp_path.iterdir()] == ["schema.toml"]


def test_save_and_load_are_inverse(tmp_path):
    path = tmp_path / "schema.toml"
    schema = loads(DISCHARGE + "[[rules]]\nforbid = { MDC = [14], age.yrs = { below = 18 } }")
    schema.save(path)
    assert Schema.load(path) == schema


def test_save_where_nothing_can_be_written_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="absent"):
        save(loads(DISCHARGE), tmp_path / "absent" / "schema.toml")


# ---------------------------------------------------------------- writing


def test_drafts_say_on_a_line_of_its_own_that_nobody_reviewed_them():
    text = dumps(Schema((Feature("x", categories=("a",), drafted_from_data=True),)))
    assert "reviewed = false" in text.splitlines()
    assert "drafted_from_data = true" in text.splitlines()
    assert text.splitlines()[0].startswith("# CONFIDENTIAL")


def test_integer_categories_are_written_as_integers_where_they_stay_the_same():
    def line(dtype, *categories):
        text = dumps(Schema((Feature("x", categories=categories, dtype=dtype),)))
        return next(each for each in text.splitlines() if each.startswith("categories"))

    assert line("int64", "1", "-20", "0") == "categories = [1, -20, 0]"
    assert line("int64", "1", "02") == 'categories = ["1", "02"]'
    assert line("string", "1", "2") == 'categories = ["1", "2"]'
    assert line("int64", "-0") == 'categories = ["-0"]'
    assert line("int64", "\u0661") == 'categories = ["\u0661"]'


def test_writing_is_deterministic():
    schema = loads(DISCHARGE + '[[rules]]\nforbid = { MDC = [14, 1], sex = ["Male"] }')
    assert dumps(schema) == dumps(loads(dumps(schema)))
    assert 'forbid = { sex = ["Male"], MDC = ["1", "14"] }' in dumps(schema)


def test_long_lists_are_broken_over_lines():
    text = dumps(Schema((Feature("x", categories=tuple(f"category {i}" for i in range(500))),)))
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) < 120


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(SchemaError, match="surrogate"):
        dumps(Schema((Feature("x", categories=("\ud800",)),)))


def test_a_hundred_thousand_categories_and_a_megabyte_of_text_are_quick():
    categories = tuple(f"category {i}" for i in range(100_000))
    schema = Schema((Feature("x", categories=categories, label='é"\n' * 350_000),))
    start = time.perf_counter()
    assert loads(dumps(schema)) == schema
    assert time.perf_counter() - start < 15


AWKWARD = st.sampled_from(
    [
        '"',
        "'",
        "\\",
        "\n",
        "\r\n",
        "\x00",
        "\x7f",
        "\x1b",
        "👩‍⚕️",
        "]",
        "#",
        "=",
        "a.b",
        " ",
        "\u2028",
    ]
)
TEXT = st.lists(AWKWARD | st.text(max_size=4), max_size=4).map("".join)
NAME = TEXT.filter(bool)
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53).map(float)
INTEGER_TYPES = st.sampled_from(["int8", "int64", "uint16"])


@st.composite
def features(draw, name):
    kind = draw(st.sampled_from(["nominal", "ordinal", "numeric", "integers"]))
    texts = draw(st.lists(TEXT, unique=True, min_size=4, max_size=10))
    given_values: dict = {"dtype": draw(st.sampled_from(["", "string", "double"]) | TEXT)}
    if kind == "numeric":
        edges = draw(st.lists(NUMBER, unique=True, min_size=2, max_size=6))
        given_values = {"edges": tuple(sorted(edges)), "dtype": "double"}
    elif kind == "integers":
        numbers = draw(st.lists(st.integers(), unique=True, min_size=1, max_size=5))
        given_values = {"categories": tuple(map(str, numbers)), "dtype": draw(INTEGER_TYPES)}
    else:
        given_values["categories"] = tuple(texts[3:])
    try:
        return Feature(
            name,
            kind={"integers": "ordinal"}.get(kind, kind),
            missing=tuple(texts[: draw(st.integers(0, 2))]),
            not_applicable=tuple(texts[2 : draw(st.integers(2, 3))]),
            role=draw(st.sampled_from(["quasi-identifier", "sensitive", "other"])),
            unknown=draw(st.sampled_from(["error", "category"])),
            l=draw(st.none() | st.floats(1, 1e300)),
            drafted_from_data=draw(st.booleans()),
            label=draw(TEXT),
            **given_values,
        )
    except SchemaError:
        return Feature(name, categories=("a", "b"))


@st.composite
def schemas(draw):
    names = draw(st.lists(NAME, unique=True, min_size=1, max_size=5))
    columns = [draw(features(name)) for name in names]
    if len(names) > 2:
        columns.append(Feature(names[0] + " id", role="identifier", label=draw(TEXT)))
        columns[0] = Feature(
            names[0], categories=("a",), heads=(names[2], names[1]), parent=names[1]
        )
    schema = Schema(
        tuple(columns),
        unit=draw(st.none() | st.just(names[0] + " id")),
        rows_per_unit=draw(st.integers(1, 10**6)),
        reviewed=draw(st.booleans()),
    )
    rules = []
    for _ in range(draw(st.integers(0, 3))):
        chosen = draw(st.sets(st.integers(0, len(schema.names) - 1), min_size=1, max_size=3))
        codes = {
            index: draw(st.sets(st.integers(0, schema.category_counts[index] - 1), min_size=1))
            for index in chosen
        }
        if any(len(codes[index]) < schema.category_counts[index] for index in chosen):
            rules.append(Rule.of({i: sorted(c) for i, c in codes.items()}, draw(TEXT)))
    return Schema(schema.columns, schema.unit, schema.rows_per_unit, tuple(rules), schema.reviewed)


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_what_is_written_is_read_back(schema):
    text = dumps(schema)
    assert loads(text) == schema
    assert dumps(loads(text)) == text


def test_every_ascii_character_survives_in_names_categories_and_keys():
    everything = "".join(map(chr, range(128)))
    assert set(string.printable) <= set(everything)
    feature = Feature(everything, categories=(everything, "b"), label=everything)
    schema = Schema((feature,), rules=(Rule.of({0: [0]}, everything),))
    assert loads(dumps(schema)) == schema
    assert tomllib.loads(dumps(schema))["features"][0]["name"] == everything
