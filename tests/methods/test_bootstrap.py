"""The bootstrap draws original rows, each as likely as any other."""

import numpy as np
import pytest

from pegsynth.errors import SchemaError
from pegsynth.methods.baselines.bootstrap import BootstrapRows, obeying
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import outcomes_fit

ROWS = np.array([(0, 0), (0, 2), (1, 2), (1, 2), (1, 1)], dtype=np.uint8)
RULES = (Rule.of({0: [1], 1: [1]}), Rule.of({0: [0], 1: [0]}))


def drawn(rules=(), seed="bootstrap", rows=5_000):
    return BootstrapRows(ROWS).draw(rows, words=RandomStream(seed).substream(), rules=rules)


def test_rows_are_drawn_with_replacement_and_equal_chances():
    outcomes = [tuple(row) for row in drawn().tolist()]
    assert outcomes_fit(outcomes, {(0, 0): 0.2, (0, 2): 0.2, (1, 2): 0.4, (1, 1): 0.2})
    distinct_rows = {(0, 0): 0.25, (0, 2): 0.25, (1, 2): 0.25, (1, 1): 0.25}
    assert not outcomes_fit(outcomes, distinct_rows)


def test_no_rule_shows_up_broken():
    found = drawn(RULES)
    assert obeying(found, RULES).all()
    assert outcomes_fit(map(tuple, found.tolist()), {(0, 2): 1 / 3, (1, 2): 2 / 3})


def test_seeds_reproduce_and_codes_keep_their_type():
    assert np.array_equal(drawn(seed=3), drawn(seed=3))
    assert not np.array_equal(drawn(seed=3), drawn(seed=4))
    assert drawn(rows=0).shape == (0, 2)
    assert drawn().dtype == np.uint32


def test_a_table_without_a_valid_row_is_refused():
    with pytest.raises(SchemaError, match="no row"):
        BootstrapRows(ROWS[:1]).draw(1, words=RandomStream(1).substream(), rules=RULES)
    with pytest.raises(SchemaError, match="no row"):
        BootstrapRows(ROWS[:0]).draw(1, words=RandomStream(1).substream())
