"""Recodings: every row by itself, by public rules; what would look at others is refused (R31)."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.codec import Decoder, encode
from pegsynth.codec.column_decoding import multiples_inside
from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.errors import SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding, exact, nearest_multiple
from pegsynth.schema.related_columns import ancestors, belongs_to
from pegsynth.schema.toml import dumps, load, loads

ICD = "code,parent,chapter\nI20,heart,IX\nI21,heart,IX\nJ10,flu,X\nJ11,flu,X\n"
FINITE = st.floats(-1e6, 1e6, allow_nan=False)


def feature(text, folder=None):
    """The one feature that a schema text describes."""
    return loads(f'[[features]]\nname = "x"\n{text}', folder=folder).columns[0]


def codes(column, values):
    """Codes of values that all have one."""
    encoder = ColumnEncoder(column)
    found = encoder.encode(pl.Series("x", values))
    assert not encoder.unknown
    assert not encoder.absent
    return [column.labels[code] for code in found.tolist()]


@pytest.fixture
def icd(tmp_path):
    (tmp_path / "icd.csv").write_text(ICD)
    return tmp_path


def test_groups_take_the_place_of_their_values():
    x = feature('categories = ["a", "b", "c", "d"]\ngroups = { ends = ["a", "d"] }')
    assert x.categories == ("ends", "b", "c")
    assert codes(x, ["a", "b", "c", "d", "ends"]) == ["ends", "b", "c", "ends", "ends"]
    assert feature('groups = { one = ["a"], two = ["b"] }').categories == ("one", "two")


def test_values_of_a_group_need_not_be_listed_and_numbers_are_texts():
    x = feature("categories = [7]\ngroups = { low = [1, 2] }")
    assert x.categories == ("7", "low")
    assert codes(x, [1, 2, 7, 1]) == ["low", "low", "7", "low"]


def test_prefixes_shorten_codes_that_nobody_listed():
    x = feature('categories = ["I21", "J10"]\nhierarchy = "prefix:3"')
    assert codes(x, ["I21.9", "I21", "J10.0"]) == ["I21", "I21", "J10"]
    assert feature('categories = ["I21.9", "I21.0"]\nhierarchy = "prefix:3"').categories == ("I21",)
    chapters = feature('categories = ["I21.9", "J1"]\nhierarchy = "prefix:3,1"\nlevel = 2')
    assert chapters.categories == ("I", "J")


def test_a_prefix_that_spells_a_missing_code_is_not_missing():
    x = feature('categories = ["AB"]\nmissing = ["NA"]\nhierarchy = "prefix:2"')
    encoder = ColumnEncoder(x)
    found = encoder.encode(pl.Series("x", ["ABC", "NA", "NAB"]))
    assert found.tolist()[:2] == [0, 1]
    assert encoder.unknown == 1


@pytest.mark.parametrize(("level", "expected"), [(1, ("heart", "flu")), (2, ("IX", "X"))])
def test_codes_go_up_a_hierarchy_from_a_file_beside_the_schema(icd, level, expected):
    (icd / "schema.toml").write_text(
        f'[[features]]\nname = "x"\nhierarchy = "icd.csv"\nlevel = {level}\n'
    )
    x = load(icd / "schema.toml").columns[0]
    assert x.categories == expected
    assert codes(x, ["I20", "J11", expected[0]]) == [expected[0], expected[1], expected[0]]


def test_at_level_0_codes_stay_and_the_hierarchy_tells_which_are_alike(icd):
    x = feature('hierarchy = "icd.csv"\nlevel = 0\nmissing = [""]', icd)
    assert x.categories == ("I20", "I21", "J10", "J11")
    assert [line.tolist() for line in ancestors(x)] == [[0, 0, 1, 1, -1], [0, 0, 1, 1, -1]]
    chapter = Feature("chapter", categories=("X", "IX"), missing=("",))
    assert belongs_to(x, chapter).tolist() == [1, 1, 0, 0, -1]


def test_a_schema_is_whole_without_its_files(icd):
    (icd / "codes.csv").write_text("code\na\nb\n")
    (icd / "texts.csv").write_text("code;meaning\na;first\nb;second, or later\n")
    text = (
        '[[features]]\nname = "x"\nhierarchy = "icd.csv"\nlevel = 1\n'
        '[[features]]\nname = "y"\ncategories = "codes.csv"\n'
        '[[features]]\nname = "z"\nlabel_of = "y"\nvalue_labels = "texts.csv"\n'
        '[[features]]\nname = "n"\nkind = "numeric"\nedges = [0, 10, 20]\ntop = 15\nround = 0.5\n'
    )
    schema = loads(text, folder=icd)
    assert schema["y"].categories == ("a", "b")
    assert schema["z"].value_labels == (("a", "first"), ("b", "second, or later"))
    again = loads(dumps(schema))
    assert again == schema
    assert dumps(again) == dumps(schema)


@given(
    step=st.sampled_from([0.1, 0.25, 1.0, 2.0, 5.0, 7.0]),
    edges=st.lists(st.integers(-40, 40), min_size=3, max_size=6, unique=True).map(sorted),
    values=st.lists(FINITE | st.integers(-500, 500).map(lambda n: n / 20), min_size=1),
)
def test_moved_edges_are_rounded_values(step, edges, values):
    """Oracle: round every value by exact fractions, and look it up among the edges."""
    x = Feature("x", kind="numeric", edges=tuple(map(float, edges)), recoding=Recoding(round=step))
    found = ColumnEncoder(x).encode(pl.Series("x", values, dtype=pl.Float64)).tolist()
    for value, code in zip(values, found, strict=True):
        rounded = nearest_multiple(Fraction(value), exact(step))
        assert code == sum(rounded >= edge for edge in edges[1:-1])


def test_whole_numbers_are_rounded_by_table_as_they_are_one_by_one():
    edges = (0.0, 9.0, 23.0, 40.0)
    x = Feature("x", kind="numeric", edges=edges, dtype="int64", recoding=Recoding(round=5))
    values = list(range(-5, 50))
    by_table = ColumnEncoder(x).encode(pl.Series("x", values))
    as_text = ColumnEncoder(x).encode(pl.Series("x", list(map(str, values))))
    assert by_table.tolist() == as_text.tolist()


@given(
    step=st.sampled_from([0.1, 0.5, 1.0, 5.0]),
    edges=st.lists(st.integers(-40, 40), min_size=2, max_size=6, unique=True).map(sorted),
    draws=st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1, exclude_max=True)), min_size=1),
)
def test_drawn_values_are_multiples_in_their_bin(step, edges, draws):
    bins = np.array([place % (len(edges) - 1) for place, _ in draws])
    low, high = np.array(edges[:-1])[bins], np.array(edges[1:])[bins]
    drawn = low + np.array([unit for _, unit in draws]) * (high - low)
    within = math.ceil(edges[0] / exact(step)) * exact(step) <= edges[-1]
    for value, place in zip(multiples_inside(drawn, bins, edges, step), bins, strict=True):
        multiple = exact(float(value)) / exact(step)
        # Without a multiple between the outer edges, what is public is one of these.
        assert multiple.denominator == 1 if within else value in (edges[0], edges[-1])
        assert edges[0] <= value <= edges[-1]
        first = math.ceil(edges[place] / exact(step)) * exact(step)
        last = place == len(edges) - 2
        if first < edges[place + 1] or (last and first == edges[place + 1]):
            assert edges[place] <= value <= edges[place + 1]
            assert last or value < edges[place + 1]


def test_top_and_bottom_end_the_edges_and_private_ones_too():
    recoding = Recoding(top=90, bottom=10)
    x = Feature("x", kind="numeric", edges=(0.0, 18.0, 65.0, 110.0), recoding=recoding)
    assert x.edges == (10, 18, 65, 90)
    y = Feature("y", kind="numeric", edges="private", recoding=recoding)
    assert (y.lowest, y.highest) == (10, 90)
    z = replace(y, highest=80.0, lowest=-5.0)
    assert (z.lowest, z.highest) == (10, 80)


def test_categories_that_are_numbers_are_bounded_and_rounded():
    x = feature('kind = "ordinal"\ncategories = [0, 5, 10, 15, 20]\ntop = 10\nround = 5')
    assert x.categories == ("0", "5", "10")
    assert codes(x, [2, 3, 99, 10]) == ["0", "5", "10", "10"]
    assert codes(x, ["2", "3", "99", "7.5"]) == ["0", "5", "10", "10"]


@given(st.data())
def test_recoding_is_row_by_row(data):
    """Whatever stands beside it, a value gets the same code (R31)."""
    x = feature(
        'categories = ["I21", "J10", "K"]\nmissing = ["", "NA"]\nunknown = "category"\n'
        'hierarchy = "prefix:3"\ngroups = { lung = ["J10", "J11"] }'
    )
    texts = st.sampled_from(["I21.9", "J11.1", "K", "", "NA", "?", "lung", " I21", "J10"])
    rows = data.draw(st.lists(texts, min_size=1, max_size=8))
    others = data.draw(st.lists(texts, max_size=8))
    together = ColumnEncoder(x).encode(pl.Series("x", rows + others))[: len(rows)]
    alone = [int(ColumnEncoder(x).encode(pl.Series("x", [row]))[0]) for row in rows]
    assert together.tolist() == alone


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('top = "p99"', "top must be a public number.*one row could move"),
        ('bottom = "5%"', "bottom must be a public number"),
        ('round = "auto"', "round must be a public number"),
        ("rare = 5", 'rare is "paid".*true counts below a threshold'),
        ('rare = "below 5"', 'rare is "paid"'),
        ('missing = "mode"', "missing cannot be filled.*mode"),
        ('fill = "mode"', "fill cannot be filled"),
        ("k = 5", "rows that are rare cannot be suppressed.*pegs release --k"),
        ("min_count = 5", "cannot be grouped by how many rows"),
        ('groups = "rare"', "cannot be grouped by how many rows"),
    ],
)
def test_what_would_look_at_the_table_is_refused_with_the_reason(line, words):
    with pytest.raises(SchemaError, match=words) as told:
        feature(f'categories = ["a", "b"]\n{line}')
    assert "'x'" in str(told.value)
    assert "R31" in str(told.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("groups = { a = ['1', '2'], b = ['2'] }", "groups overlap"),
        ("groups = { a = ['b'], b = ['1'] }", "itself a value of another group"),
        ("groups = { a = [] }", "is empty"),
        ("groups = ['a']", "groups must be a table"),
        ("groups = { a = ['NA'] }\nmissing = ['NA']", "recoded, and listed under missing"),
        ("top = inf", "finite"),
        ("top = 5\nbottom = 7", "bottom must be less than top"),
        ("top = 7\nround = 5", "top must be a multiple of round"),
        ("round = 0", "round must be greater than 0"),
        ("level = 2", "level requires a hierarchy"),
        ('hierarchy = "prefix:0"', "prefix:3"),
        ('hierarchy = "prefix:3"\nlevel = 2', "level must be a whole number from 0 to 1"),
        ('hierarchy = "prefix:1,3"', "get shorter"),
        ("hierarchy = { a = 'b', b = 'a' }", "has a cycle"),
        ("hierarchy = { a = 'b' }\nlevel = 2", "no parent at level 2"),
        ('hierarchy = "none.csv"', "not itself a file"),
        ("categories = 5", "must be a list"),
    ],
)
def test_bad_recodings_name_the_feature_and_the_way_out(line, words):
    listed = "" if line.startswith("categories") else 'categories = ["a", "b"]\n'
    with pytest.raises(SchemaError, match=words) as told:
        feature(f"{listed}{line}")
    assert "'x'" in str(told.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        ("code,parent\na,b\nb,c\nc,a\n", "has a cycle"),
        ("code,parent\na,a\n", "has a cycle"),
        ("code,parent\na,b\nc,\n", "line 3: a code has no parent"),
        ("code,parent\na,,c\n", "line 2: a code has no parent"),
        ("code,parent\na,b\na,c\n", "line 3: a code has another parent"),
        ("code,parent\n", "the file lists nothing"),
        (b"code,parent\n\xff\xfe,b\n", "not UTF-8"),
    ],
)
def test_a_bad_hierarchy_file_is_named_with_its_line(tmp_path, content, words):
    if content is not None:
        (tmp_path / "h.csv").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    with pytest.raises(SchemaError, match=words) as told:
        feature('hierarchy = "h.csv"', tmp_path)
    assert "'x'" in str(told.value)
    assert "'h.csv'" in str(told.value)


def test_numbers_have_no_groups_and_categories_no_measured_ends():
    with pytest.raises(SchemaError, match="this is numeric"):
        feature('kind = "numeric"\nedges = [0, 1]\ngroups = { a = ["1"] }')
    with pytest.raises(SchemaError, match="leaves no bin"):
        feature('kind = "numeric"\nedges = [10, 20]\ntop = 5')


def test_a_detail_must_lead_to_a_category_of_its_parent():
    chapter = Feature("chapter", categories=("A",))
    code = Feature(
        "code",
        categories=("A1", "B1"),
        parent="chapter",
        recoding=Recoding(hierarchy=Hierarchy(prefixes=(1,)), level=0),
    )
    with pytest.raises(SchemaError, match="category number 2 to no category of its parent"):
        Schema((chapter, code))


def test_a_dropped_column_keeps_nothing_but_its_name():
    x = Feature("x", role="drop", categories=("Ada",), recoding=Recoding(top=3))
    assert x == Feature("x", role="drop")
    schema = Schema((x, Feature("y", categories=("a",))))
    assert schema.names == ("y",)
    assert 'role = "drop"' in dumps(schema)
    assert loads(dumps(schema)) == schema


def described():
    """A schema with a column that describes another."""
    text = Feature("text", label_of="code", value_labels={"a": "first", "b": "second"})
    return Schema((text, Feature("code", categories=("a", "b"), missing=("",))))


def test_descriptions_are_not_read_and_follow_their_code():
    table = pl.DataFrame({"text": ["rubbish", "x", None], "code": ["b", "a", None]})
    schema = described()
    found = Decoder(schema).decode(encode(table, schema))
    assert found.to_dict(as_series=False) == {
        "text": ["second", "first", None],
        "code": ["b", "a", None],
    }
    assert encode(table.drop("text"), schema).tolist() == encode(table, schema).tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label_of": "nothing"}, "label_of names no feature"),
        ({"label_of": "text"}, "label_of names no feature"),
        ({"value_labels": {"a": "first"}}, "category number 2 of 'code' has no text"),
        ({"categories": ("a",)}, "leave out categories"),
    ],
)
def test_bad_descriptions_are_refused(changes, words):
    with pytest.raises(SchemaError, match=words):
        described().with_feature("text", **changes)


def test_changed_recodings_have_to_be_reviewed():
    plain = Schema((Feature("x", categories=("a", "b")),), reviewed=True)
    assert not plain.with_feature("x", recoding=Recoding(groups={"c": ["a"]})).reviewed


def test_edges_stay_in_order():
    x = Feature("x", kind="numeric", edges=(0.0, 1.0, 2.0), recoding=Recoding(top=1.5))
    assert all(a < b for a, b in pairwise(x.edges))
