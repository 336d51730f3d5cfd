"""Tables that are pooled over positions, and rows that follow others in them (R24)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_tables import TIMES, panel_book, table
from test_folding import people

from pegsynth.codec.codec import encode
from pegsynth.codec.folding import folded_reader
from pegsynth.codec.pooled_positions import Pooling, measured_tables
from pegsynth.methods.released._next_rows import NextRows
from pegsynth.methods.released._values import Detail
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from pegsynth.schema.panel import POOLED
from pegsynth.schema.wide_schema import long_schema, wide_schema
from pegsynth.tables.table_input import open_table
from significance import ALPHA, bonferroni, fit_p_value

MOST = 5


def pooled_book(kind: str):
    book = panel_book(kind)
    rule = Rule.forbid({"state": "c", "sex": "m"})
    panel = replace(book.panel, most=MOST, transitions=POOLED)
    return replace(book, panel=panel, rules=(rule,))


def wide_codes(lines, kind):
    book = pooled_book(kind)
    reader = folded_reader(open_table(table(lines, kind)), book)
    wide = wide_schema(book)
    return wide, encode(pl.concat(list(reader.batches())), wide, need_unit=False)


def slow_pairs(wide, codes):
    """The same, unit by unit and feature by feature, from labels."""
    panel = wide.panel
    labels = [
        {name: wide[name].labels[code] for name, code in zip(wide.names, line, strict=True)}
        for line in codes
    ]
    found = Counter()
    for person in labels:
        rows = int(person[panel.count])
        for position in range(1, rows):
            before, after = (
                tuple(person[panel.at(name, place)] for name in ("state", "score"))
                for place in (position, position + 1)
            )
            found[person["sex"], before, after] += 1
    return found


@pytest.mark.parametrize("kind", TIMES)
@settings(max_examples=15, deadline=None)
@given(lines=people(most_rows=7))
def test_transitions_are_those_of_every_unit(kind, lines):
    wide, codes = wide_codes(lines, kind)
    pooling = Pooling(wide)
    pairs = pooling.pairs(codes)
    names = [each.name for each in pooling.features]
    assert all((pairs < [each.size for each in pooling.features]).all(axis=1))
    assert len(pairs) <= len(codes) * (MOST - 1)
    book = long_schema(wide)

    def shown(line, which):
        return tuple(
            book[name].labels[line[names.index(f"{name} ({which})")]] for name in ("state", "score")
        )

    found = Counter(
        (wide["sex"].labels[line[names.index("sex")]], shown(line, "before"), shown(line, "next"))
        for line in pairs
    )
    assert found == slow_pairs(wide, codes)
    # Real units obey the order, so their transitions do.
    for rule in pooling.rules:
        if rule.structural:
            assert not rule.broken_by(pairs).any()


@pytest.mark.parametrize("kind", TIMES)
@settings(max_examples=15, deadline=None)
@given(lines=people(most_rows=7))
def test_units_are_put_together_again(kind, lines):
    wide, codes = wide_codes(lines, kind)
    pooling = Pooling(wide)
    again = pooling.begun(codes[:, list(pooling.first)])
    size = len(pooling.given)
    for position, units in pooling.follow(again):
        rows = pooling.pairs(codes[units])
        known = pooling.known(again[units], position - 1)
        # Each unit has one transition from this position; it is found by what is known of it.
        step = pooling._row(codes[units], position)
        assert {tuple(line) for line in np.hstack([known, step])} <= {tuple(r) for r in rows}
        assert known.shape[1] == size
        pooling.put(again, units, position, step)
    assert (again == codes).all()


@settings(max_examples=15, deadline=None)
@given(lines=people(most_rows=7), place=st.integers(0, 4))
def test_a_unit_changes_its_own_transitions_alone(lines, place):
    """What a unit adds does not depend on others, and is at most `most - 1` rows."""
    wide, codes = wide_codes(lines, "number")
    pooling = Pooling(wide)
    place = min(place, len(codes) - 1)
    whole = Counter(map(tuple, pooling.pairs(codes)))
    others = Counter(map(tuple, pooling.pairs(np.delete(codes, place, axis=0))))
    own = Counter(map(tuple, pooling.pairs(codes[place : place + 1])))
    assert whole == others + own
    assert own.total() <= MOST - 1


def test_measured_tables_are_both():
    wide = wide_schema(pooled_book("date"))
    first, transitions = measured_tables(wide)
    assert list(first)[-1] == "person_rows"
    assert "state (before)" in transitions
    assert transitions["person_rows (bins)"] == 3
    folded = replace(wide, panel=replace(wide.panel, transitions="folded"))
    assert measured_tables(folded)[0].keys() == set(wide.names)


# Rows that follow others


def p_values(following, pool, stream):
    """Compare what follows with the pool, for each of six cells of what is known."""
    for first in range(3):
        for second in range(2):
            asked = np.tile(np.array([first, second], dtype=np.uint32), (20_000, 1))
            found = following.draw(asked, stream.substream())[:, 0]
            held = pool[(pool[:, 0] == first) & (pool[:, 1] == second), 2]
            shares = np.bincount(held, minlength=3) / len(held)
            yield fit_p_value(np.bincount(found, minlength=3), shares)


def test_what_follows_has_the_shares_of_the_pool():
    """False alarm: `ALPHA` over six cells. Rows that ignore one of what is known are the twin."""
    numbers = np.random.default_rng(7)
    known = numbers.integers(0, [3, 2], size=(60_000, 2))
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    shifted = (known[:, 0] + known[:, 1]) % 3
    drawn = (chances[shifted].cumsum(axis=1) < numbers.random((len(known), 1))).sum(axis=1)
    noise = numbers.integers(0, 2, size=len(known))
    pool = np.column_stack([known, drawn, noise]).astype(np.uint32)
    following = NextRows.of(pool, (3, 2, 3, 2), 2)
    assert set(following.targets[0].heads) == {0, 1}
    assert following.targets[1].heads == ()
    assert min(p_values(following, pool, RandomStream("pool"))) > bonferroni(6)
    fewer = replace(following.targets[0], heads=following.targets[0].heads[:1])
    fewer = replace(fewer, sizes=fewer.sizes[:1])
    broken = replace(following, targets=(fewer, following.targets[1]))
    assert min(p_values(broken, pool, RandomStream("pool"))) < ALPHA


def test_rules_and_details_hold_whatever_the_pool_has():
    """The pool breaks them in every row; what is drawn does not."""
    pool = np.array([[0, 0, 1], [1, 1, 0]] * 50, dtype=np.uint32)
    rule = Rule.of({0: [0], 1: [0]})
    detail = Detail(2, 1, np.array([[True, False], [False, True]]))
    following = NextRows.of(pool, (2, 2, 2), 1, rules=(rule,), details=(detail,))
    known = np.array([[0], [1]] * 500, dtype=np.uint32)
    drawn = following.draw(known, RandomStream("rules").substream())
    assert not rule.broken_by(np.hstack([known, drawn])).any()
    assert detail.allowed[drawn[:, 0], drawn[:, 1]].all()


def test_what_no_pool_row_has_is_followed_by_what_is_usual():
    pool = np.array([[0, 1]] * 9 + [[0, 0]], dtype=np.uint32)
    following = NextRows.of(pool, (2, 2), 1)
    drawn = following.draw(np.ones((4000, 1), dtype=np.uint32), RandomStream("new").substream())
    assert 0.85 < drawn.mean() < 0.95
