"""Values with an l keep it in what is published: given values, rules, few rows (R7, R18).

The distribution of a whole row is counted exactly (`row_laws`). Each check has the twin
that was shipped once: it draws the same blocks and loses the l that the ledger states.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from row_laws import GRID, law_of_a_row, released_of_rows, smallest_l

from pegsynth.errors import ParameterError
from pegsynth.released import Diverse
from pegsynth.released.row_pool import Pool
from pegsynth.schema import Rule

CLOSE = 1e-3
"""One-way shares have a floor of a ten-thousandth, which the grid rounds away."""

SIZES = (2, 2, 3)
COPIES = [(code, code, third) for code in range(2) for third in range(3)]
"""The second feature equals the first."""


def test_the_law_of_a_row_by_hand(monkeypatch):
    """No l: the first feature as often as in the table, the second its copy, rules kept."""
    rows = [(0, 0, 0)] * 3 + [(1, 1, 0), (1, 1, 1), (1, 1, 2)]
    released = released_of_rows(rows, SIZES, (0, 1, 2), {1: (0,), 2: (1,)})
    law = law_of_a_row(monkeypatch, released)
    sixth = Fraction(1, 6)
    assert law == {(0, 0, 0): 3 * sixth, (1, 1, 0): sixth, (1, 1, 1): sixth, (1, 1, 2): sixth}
    rules = (Rule.of({1: [1], 2: [0]}),)
    law = law_of_a_row(monkeypatch, released, rules=rules)
    assert law == {(0, 0, 0): 1 / 2, (1, 1, 1): 1 / 4, (1, 1, 2): 1 / 4}
    law = law_of_a_row(monkeypatch, released, rules=rules, given={2: 1})
    assert law == {(1, 1, 1): 1}


# Given values


@pytest.mark.parametrize("given", [{}, {0: 1}, {0: 0, 2: 2}])
def test_given_values_drawn_before_leave_the_l_as_it_is(monkeypatch, given):
    """The sensitive feature comes last: its l holds given all other features of the row."""
    released = released_of_rows(COPIES, SIZES, (0, 2, 1), {1: (0,)})
    diverse = Diverse({1: 2.0})
    law = law_of_a_row(monkeypatch, released, diverse=diverse, given=given)
    assert smallest_l(law, 1, (0, 2)) >= 2 - CLOSE
    diverse.check_given(given, released.order, ("w", "s", "f"))


def test_a_given_value_drawn_later_would_undo_it(monkeypatch):
    """The twin: rows are kept by a value that follows from the sensitive one."""
    released = released_of_rows(COPIES, SIZES, (1, 0, 2), {0: (1,)})
    diverse = Diverse({1: 2.0})
    assert smallest_l(law_of_a_row(monkeypatch, released, diverse=diverse), 1, ()) >= 2 - CLOSE
    law = law_of_a_row(monkeypatch, released, diverse=diverse, given={0: 1})
    assert smallest_l(law, 1, ()) == 1.0
    with pytest.raises(ParameterError, match=r"--where w: this model draws 's' before it"):
        diverse.check_given({0: 1}, released.order, ("w", "s", "f"))


def test_a_given_value_of_the_feature_itself_is_refused():
    with pytest.raises(ParameterError, match="--where s: this model promises l-diverse values"):
        Diverse({1: 2.0}).check_given({1: 0}, (0, 2, 1), ("w", "s", "f"))


# Rules


RULED_SIZES = (4, 3, 2)
DEAD_END = (Rule.of({0: [0, 1], 1: [0], 2: [0]}), Rule.of({0: [0, 1], 1: [0], 2: [1]}))
"""Together they forbid the first two values of the first feature with 0 of the second."""
DEAD_ROWS = [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)]


def test_rules_that_leave_no_way_out_take_nothing_away(monkeypatch):
    released = released_of_rows(DEAD_ROWS, RULED_SIZES, (0, 1, 2), {1: (0,), 2: (1,)})
    diverse = Diverse.under({0: 2.0}, DEAD_END, RULED_SIZES)
    diverse.check(("s", "g", "f"), RULED_SIZES)
    law = law_of_a_row(monkeypatch, released, diverse=diverse)
    assert smallest_l(law, 0, ()) >= 2 - CLOSE
    rows = np.array(list(law))
    assert not any(rule.broken_by(rows).any() for rule in DEAD_END)


def test_rows_without_a_way_out_must_not_be_dropped(monkeypatch):
    """The twin: the second value of the first feature always ends where nothing is left."""
    released = released_of_rows(DEAD_ROWS, RULED_SIZES, (0, 1, 2), {1: (0,), 2: (1,)})
    law = law_of_a_row(monkeypatch, released, diverse=Diverse({0: 2.0}, DEAD_END))
    assert smallest_l(law, 0, ()) == 1.0


TWO_SIZES = (2, 3, 3)
TWO_SENSITIVE = (
    Rule.of({1: [0], 2: [0]}),
    Rule.of({0: [0], 1: [0], 2: [1, 2]}),
)
"""Where the first feature is 0, so cannot be the second: the third would have nothing left."""
TWO_ROWS = [(w, 0 if w else 1, third) for w in range(2) for third in range(3)]


@pytest.mark.parametrize("given", [{}, {0: 0}, {0: 1}])
def test_rules_between_two_features_with_an_l(monkeypatch, given):
    released = released_of_rows(TWO_ROWS, TWO_SIZES, (0, 1, 2), {1: (0,), 2: (1,)})
    diverse = Diverse.under({1: 2.0, 2: 2.0}, TWO_SENSITIVE, TWO_SIZES)
    diverse.check(("w", "s", "t"), TWO_SIZES)
    law = law_of_a_row(monkeypatch, released, diverse=diverse, given=given)
    assert smallest_l(law, 1, (0,)) >= 2 - CLOSE
    assert smallest_l(law, 2, (0, 1)) >= 2 - CLOSE
    assert not any(rule.broken_by(np.array(list(law))).any() for rule in TWO_SENSITIVE)


# Few rows


HALVES = [(0, 0, 0), (0, 1, 0), (1, 0, 1), (2, 1, 2)]


def test_a_single_row_has_the_distribution_of_its_line(monkeypatch):
    released = released_of_rows(HALVES, (3, 2, 3), (1, 0, 2), {2: (0,)})
    law = law_of_a_row(monkeypatch, released, diverse=Diverse({0: 2.5}))
    assert smallest_l(law, 0, (1,)) >= 2.5
    assert smallest_l(law, 0, (1,)) == pytest.approx(2 * math.sqrt(2), abs=CLOSE)
    assert GRID % 4 == 0


def test_settled_margins_would_make_it_certain(monkeypatch):
    """The twin: one row that has to meet the margin as a whole number is always the mode."""
    released = released_of_rows(HALVES, (3, 2, 3), (1, 0, 2), {2: (0,)})
    monkeypatch.setattr(Pool, "draw_alone", Pool.draw)
    law = law_of_a_row(monkeypatch, released, settled=True, diverse=Diverse({0: 2.5}))
    assert smallest_l(law, 0, (1,)) == 1.0
