"""Exact audit of what is done to rows before they are counted: recodings (R31), folding (R24).

A table of raw rows is coded as a release does it, row by row or unit by unit, and one row is drawn
from the codes. Whether the whole holds the price of one draw is found by going through all small
tables and everything that one more unit may be.

Recodings: values are recoded and encoded, and the shipped kernel draws. Folding: people have
histories of one to three rows, of which two count; they are folded into wide rows, and one is
drawn from the counts of these with virtual rows (R1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl

from pegsynth.auditing.cases import SCALE, Case
from pegsynth.auditing.divergence import (
    Distribution,
    EnumeratedCase,
    Loss,
    Row,
    Table,
    all_rows,
    neighbours,
)
from pegsynth.codec.codec import encode, encode_table, one_matrix
from pegsynth.codec.folding import Folding, folded_reader
from pegsynth.methods import get
from pegsynth.privacy import Budget
from pegsynth.schema import Feature, Schema
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.panel import Panel
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_input import open_table

RECODINGS, PANELS = "recodings", "panels"
ALPHA = 2
"""Virtual rows of every category or cell: one draw costs log(1 + 1/2) = 0.4055."""
MOST_ROWS = 6

Values = Sequence[Any]
Line = tuple[Any, ...]
History = tuple[Line, ...]
"""The rows of one person."""


@dataclass(frozen=True)
class CodedCase(EnumeratedCase):
    """One draw from a table that is coded first.

    Parameters
    ----------
    units
        Everything that a unit may be; a table names each of its units by its place here.
    coded
        What is audited: units in, codes of rows out.
    drawn
        The exact law of one draw from codes.
    price
        The epsilon of one draw.
    most_units
        Units of the largest table that is tried.
    """

    name: str
    units: tuple[Any, ...]
    coded: Callable[[Sequence[Any]], Table]
    drawn: Callable[[Table], Distribution]
    price: float
    most_units: int = 1

    @property
    def claimed(self) -> Loss:
        """The price of one draw."""
        return Loss(self.price, math.inf)

    def pairs(self) -> Iterable[tuple[Table, Table]]:
        """Return all small tables and one unit more."""
        return neighbours((len(self.units),), self.most_units)

    def distribution(self, table: Table) -> Distribution:
        """Return the exact probability of every output for units that are named by places."""
        return self.drawn(tuple(sorted(self.coded([self.units[place] for (place,) in table]))))


def codes_by_row(feature: Feature, values: Values) -> Table:
    """Return the codes of raw values, as a table of them is read."""
    if not values:
        return ()
    codes = encode(pl.DataFrame({feature.name: list(values)}, strict=False), Schema((feature,)))
    return tuple((int(code),) for code in codes[:, 0])


def recoding_case(
    name: str,
    feature: Feature,
    values: Line,
    *,
    recoded: Callable[[Feature, Values], Table] = codes_by_row,
    most_rows: int = MOST_ROWS,
) -> CodedCase:
    """Settle a release of one recoded feature; `recoded` is what is audited."""
    schema = Schema((feature,), reviewed=True)
    method: Any = get("pegs")
    public = {"order": "public", "prior": "uniform", "seed_pool": "uniform"}
    options = method.options(heads=0, tail_bits=0, rows=1, **public)
    plan = method.settle(schema, Budget(alpha=ALPHA), options, scale=SCALE)
    release = Case(name, schema, plan, most_rows=most_rows)
    law = cache(release.distribution)
    return CodedCase(
        name, values, partial(recoded, feature), law, release.claimed.epsilon, most_rows
    )


def recoding_cases() -> list[CodedCase]:
    """Return a case for every kind of recoding."""
    code = Feature("x", categories=("a", "b", "c", "d"), missing=("",))
    number = Feature("x", kind="numeric", edges=(0.0, 10.0, 20.0, 40.0), dtype="int64")
    ends = Recoding(groups=(("ends", ("a", "d")),))
    parents = Recoding(hierarchy=Hierarchy.of({"a": "A", "b": "A", "c": "C", "d": "C"}))
    prefix = Recoding(hierarchy=Hierarchy(prefixes=(1,)))
    texts = ("a", "b", "c", "d", None)
    return [
        recoding_case("groups", replace(code, recoding=ends), texts),
        recoding_case("hierarchy", replace(code, categories=(), recoding=parents), texts),
        recoding_case("prefix", replace(code, recoding=prefix), ("aa", "ab", "b", "cd", None)),
        recoding_case(
            "top and round", replace(number, recoding=Recoding(top=20, round=5)), (1, 14, 16, 99)
        ),
    ]


def histories(lines: Sequence[Line], most_rows: int, *, least: int = 1) -> list[History]:
    """Return every list of so many rows, order aside."""
    return [
        history
        for size in range(least, most_rows + 1)
        for history in combinations_with_replacement(lines, size)
    ]


def folded_codes(schema: Schema, people: Sequence[History]) -> Table:
    """Return the wide codes of people, as a table of their rows is read."""
    if not people:
        return ()
    names = [column.name for column in schema.columns]
    lines = [(f"p{person}", *line) for person, history in enumerate(people) for line in history]
    frame = pl.DataFrame(lines, schema=names, orient="row")
    with open_table(frame) as reader:
        wide = folded_reader(reader, schema)
        codes = one_matrix(encode_table(wide, wide_schema(schema), need_unit=False))
    return tuple(tuple(map(int, line)) for line in codes)


def folded_pairs(schema: Schema, people: Sequence[History]) -> Table:
    """Return the wide codes of units in two tables; the first line of each is its own."""
    if not people or schema.panel is None:
        return ()
    key, fixed = schema.panel.unit, schema.panel.fixed
    others = [name for name in schema.names if name not in fixed]
    units = [(f"p{unit}", *lines[0]) for unit, lines in enumerate(people)]
    rows = [(f"p{unit}", *line) for unit, lines in enumerate(people) for line in lines[1:]]
    first = pl.DataFrame(units, schema=[key, *fixed], orient="row")
    texts = dict.fromkeys([key, *others], pl.String)
    second = pl.DataFrame(rows or None, schema=texts, orient="row")
    folding = Folding(schema)
    wide = folding.fold(folding.prepared(second), folding.prepared_units(first))
    codes = encode(wide, wide_schema(schema), need_unit=False)
    return tuple(tuple(map(int, line)) for line in codes)


def allowed_cells(schema: Schema) -> list[Row]:
    """Return wide rows that the rules of the folded table allow."""
    wide = wide_schema(schema)
    rows = np.array(all_rows(wide.category_counts), dtype=np.uint32)
    return [tuple(map(int, row)) for row in rows[~wide.breaks_a_rule(rows)]]


def drawn_cell(cells: Sequence[Row], codes: Table) -> Distribution:
    """Return the law of one draw; a wide row that no unit can be has no cell."""
    counts = Counter(codes)
    weights = {cell: counts[cell] + ALPHA for cell in cells}
    total = sum(weights.values())
    return {cell: Fraction(weight, total) for cell, weight in weights.items()}


def panel_case(
    name: str,
    schema: Schema,
    people: Sequence[History],
    *,
    folded: Callable[[Schema, Sequence[History]], Table] = folded_codes,
    most_units: int = 1,
) -> CodedCase:
    """Return one draw from the counts of wide rows, for a whole person (R1, R18).

    Parameters
    ----------
    schema
        The codebook of the long table; its first column names the unit.
    people
        Everything that a person may be.
    folded
        What is audited: histories in, wide codes out.
    """
    law = cache(partial(drawn_cell, allowed_cells(schema)))
    price = math.log(1 + 1 / ALPHA)
    return CodedCase(name, tuple(people), partial(folded, schema), law, price, most_units)


def panel_cases() -> list[CodedCase]:
    """Return panels with times of every kind, fixed features and missing times."""
    person = Feature("person", role="identifier")
    state = Feature("x", categories=("a", "b"))
    ordinal = Feature("t", kind="ordinal", categories=("1", "2"))
    number = Feature("t", kind="numeric", edges=(0.0, 5.0, 10.0), dtype="int64", missing=("",))
    own = Feature("z", categories=("y", "n"))
    plain, fixed = Panel("person", "t", 2), Panel("person", "t", 2, ("x",))
    pair = Panel("person", "t", 1, ("z",), tables=("units", "rows"), least=0)
    people = histories(tuple(product(("1", "2"), ("a", "b"))), 3)
    timed = histories(tuple(product((1, 9, None), ("a", "b"))), 2)
    # A unit has a row of its own, and none to some of the second table.
    units = [
        (line, *lines)
        for line in (("y",), ("n",))
        for lines in histories((("1", "a"), ("2", "b")), 2, least=0)
    ]
    return [
        panel_case("ordinal time", Schema((person, ordinal, state), panel=plain), people),
        panel_case(
            "contradicting fixed values", Schema((person, ordinal, state), panel=fixed), people
        ),
        panel_case(
            "times that may be missing", Schema((person, number, state), panel=fixed), timed
        ),
        panel_case(
            "two tables",
            Schema((person, own, ordinal, state), panel=pair),
            units,
            folded=folded_pairs,
        ),
    ]
