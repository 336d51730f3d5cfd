"""Rules on order: decided by categories, or refused with the remedy (R18)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pegsynth.errors import SchemaError
from pegsynth.schema.toml import dumps, loads


def schema_of(*features, order):
    lines = [f"[[features]]\n{each}\n" for each in features]
    return loads("format = 1\n" + "\n".join(lines) + f"[[rules]]\norder = {order}\n")


YEARS = 'name = "{}"\nkind = "ordinal"\ncategories = ["2001", "2002", "2010"]\nmissing = [""]'


def test_ordinal_numbers_are_put_in_order():
    schema = schema_of(*(YEARS.format(name) for name in "abc"), order='["a", "b", "c"]')
    rows = np.array(list(itertools.product(range(4), repeat=3)))
    in_order = [
        all(x == 3 or y == 3 or x <= y for x, y in itertools.pairwise(row)) for row in rows.tolist()
    ]
    assert (~schema.breaks_a_rule(rows)).tolist() == in_order
    assert loads(dumps(schema)) == schema


def test_bins_that_do_not_overlap_are_decided():
    low = 'name = "a"\nkind = "date"\nedges = ["2020-01-01", "2020-06-01", "2020-12-31"]'
    high = 'name = "b"\nkind = "date"\nedges = ["2019-01-01", "2020-01-01"]'
    with pytest.raises(SchemaError, match='after = "a"'):
        schema_of(low, high, order='["a", "b"]')
    apart = 'name = "b"\nkind = "date"\nedges = ["2019-01-01", "2019-12-31"]'
    late = 'name = "b"\nkind = "date"\nedges = ["2020-12-31", "2021-12-31"]'
    assert not schema_of(low, late, order='["a", "b"]').rules
    with pytest.raises(SchemaError, match="forbids every row"):
        schema_of(low, apart, order='["a", "b"]')


def test_a_date_that_is_counted_from_the_other_is_in_order_already():
    first = 'name = "a"\nkind = "date"\nedges = "private"'
    second = 'name = "b"\nkind = "date"\nedges = "private"\nafter = "a"'
    assert not schema_of(first, second, order='["a", "b"]').rules
    with pytest.raises(SchemaError, match="no public bins"):
        schema_of(first, second, order='["b", "a"]')


@pytest.mark.parametrize(
    ("order", "word"),
    [
        ('["a"]', "two or more"),
        ('["a", "a"]', "two or more"),
        ('["a", "z"]', "not a modelled feature"),
        ('["a", "sex"]', "nominal"),
        ('["a", "size"]', "no numbers"),
    ],
)
def test_what_has_no_order_is_refused(order, word):
    sex = 'name = "sex"\ncategories = ["f", "m"]'
    size = 'name = "size"\nkind = "ordinal"\ncategories = ["small", "large"]'
    with pytest.raises(SchemaError, match=word):
        schema_of(YEARS.format("a"), sex, size, order=order)
