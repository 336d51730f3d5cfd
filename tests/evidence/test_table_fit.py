"""Rows that meet published tables, against a slow twin that minimises the same sum (R36)."""

from __future__ import annotations

import numpy as np
import pytest
from people_counted import SIZES, counts, estimated, exact, people
from scipy import optimize, stats

from pegsynth.inference.combining_rules import PART
from pegsynth.methods.evidence import table_fit
from pegsynth.methods.evidence.cell_errors import combined
from pegsynth.methods.evidence.table_fit import TableFit
from pegsynth.methods.evidence.table_replicates import replicates_of_fit
from pegsynth.methods.evidence.table_rows import rows_of_fit
from pegsynth.methods.released._row_replicates import Signs
from pegsynth.random import RandomStream
from pegsynth.tables.published_tables import PublishedTable

ROWS = 2_000
CODES = people(ROWS, 4)
WHOLE = (0, 1, 2)


def rounded(features, base=5):
    cells = counts(CODES, features)
    shown = np.floor(cells / base + 0.5) * base
    low, high = np.maximum(np.ceil(shown - base / 2), 0), np.floor(shown + base / 2)
    return PublishedTable("rounded.csv", features, low, high, np.zeros(len(cells)))


def fitted(tables, rows=ROWS, seed=1):
    return TableFit.of(combined(tables), SIZES, rows, RandomStream(seed))


def test_exact_tables_are_met_exactly_and_zeros_stay_zeros():
    tables = [exact(CODES, (0, 1)), exact(CODES, (1, 2)), rounded((0, 2))]
    fit = fitted(tables)
    rows = rows_of_fit(fit, ROWS).T
    for table in tables[:2]:
        assert counts(rows, table.features).tolist() == table.low.tolist()
    off = counts(rows, (0, 2))
    assert (off >= tables[2].low).all()
    assert (off <= tables[2].high).all()
    assert (exact(CODES, (0, 2)).low == 0).any()
    zeros = exact(CODES, (0, 2))
    rows = rows_of_fit(fitted([zeros, exact(CODES, (1,))]), ROWS).T
    assert not counts(rows, (0, 2))[zeros.low == 0].any()


def test_weights_minimise_the_sum_that_they_are_said_to_minimise(monkeypatch):
    # The twin knows the cells of the full table, and the weights that rows began with.
    tables = [estimated(counts(CODES, (0, 1)) + 20, (0, 1), 900.0)]
    tables += [estimated(counts(CODES, (1, 2)), (1, 2), 400.0)]
    monkeypatch.setattr(TableFit, "_measure", _plain_measure)
    fit = fitted(tables)
    first = fit.pool.counts(WHOLE) * (fit.total / fit.pool.rows)
    closeness = fit.closeness

    def weighed(logs):
        return first * np.exp(logs)

    def lost(logs):
        cells = weighed(logs)
        whole = cells.reshape(SIZES)
        found = sum(
            float(((whole.sum(axis=gone).ravel() - each.low) ** 2 / 2 / each.variance).sum())
            for each, gone in zip(tables, (2, 0), strict=True)
        )
        return found + closeness * float((cells * logs - cells + first).sum())

    best = optimize.minimize(lost, np.zeros(len(first)), method="L-BFGS-B", tol=1e-14)
    assert fit.pool.expected(WHOLE) == pytest.approx(weighed(best.x), abs=1.0)


def _plain_measure(self):
    """Take estimates as they are, without what several tables say together."""
    for each in self.met:
        each.measured = each.table.low, np.maximum(each.table.variance, 1e-6)


def test_what_tables_say_together_of_a_margin_is_averaged_by_precision():
    one, two = estimated(np.array([10.0, 20]), (1,), 4.0), exact(CODES, (0, 1))
    fit = fitted([one, two])
    assert fit._together((1,)) == pytest.approx(counts(CODES, (1,)), rel=1e-3)


def test_a_table_that_knows_less_gives_way():
    good, bad = (
        estimated(counts(CODES, (1,)), (1,), 1.0),
        estimated(np.array([ROWS / 2, ROWS / 2]), (1,), 1e6),
    )
    fit = fitted([good, bad, exact(CODES, (0,)), exact(CODES, (2,))])
    assert fit.pool.expected((1,)) == pytest.approx(counts(CODES, (1,)), rel=0.01)


def test_a_cell_that_is_not_empty_gets_rows_though_none_was_drawn():
    cells = np.zeros(24)
    cells[[0, 23]] = 1_999, 1  # the last one is far from anything that pairs lead to expect
    table = PublishedTable("rare.csv", WHOLE, cells, cells, np.zeros(24))
    rows = rows_of_fit(fitted([table]), ROWS).T
    assert counts(rows, WHOLE).tolist() == cells.tolist()


def test_tables_that_no_rows_can_meet_are_told():
    # Each pair of these tables agrees, and all three do not: a chain that contradicts itself.
    same = np.array([1000.0, 0, 0, 1000.0])
    other = np.array([0.0, 1000, 1000, 0.0])
    tables = [
        PublishedTable("ab.csv", (0, 1), same, same, np.zeros(4)),
        PublishedTable("bc.csv", (1, 2), same, same, np.zeros(4)),
        PublishedTable("ac.csv", (0, 2), other, other, np.zeros(4)),
    ]
    with pytest.raises(table_fit.DataError, match="no row fits"):
        TableFit.of(combined(tables), (2, 2, 2), 500, RandomStream(2))


def test_replicates_of_exact_tables_have_the_error_of_drawing_rows_again():
    fit = fitted([exact(CODES, (0, 1)), exact(CODES, (1, 2))])
    assert _standard_error(fit, 400) == pytest.approx(_sampling_error(), rel=_reach(400))


def test_replicates_of_estimates_have_their_error_as_well():
    # Far larger than what drawing again does: the share of f is off by 60 rows.
    tables = [estimated(counts(CODES, (1,)), (1,), 3600.0)]
    tables += [exact(CODES, (0,)), exact(CODES, (2,))]
    alone = (3600 / 2) ** 0.5 / ROWS  # two cells of a total that is known
    both = (alone**2 + _sampling_error() ** 2) ** 0.5
    assert _standard_error(fitted(tables), 400) == pytest.approx(both, rel=0.15)


def _sampling_error():
    share = counts(CODES, (1,))[0] / ROWS
    return (share * (1 - share) / ROWS) ** 0.5


def _reach(count):
    """Return how far the root of a mean of squares lies from 1 once in a million times."""
    return float((stats.chi2.isf(5e-7, count) / count) ** 0.5 - 1)


def _standard_error(fit, count):
    stream = RandomStream(5)
    rows = rows_of_fit(fit, ROWS).T
    found = replicates_of_fit(fit, rows, stream, count=count, rows=ROWS, design_effect=1.0)
    weights = found.weights(rows, Signs(stream.substream(), count).take(ROWS))
    own = rows[:, 1] == 0
    again = weights[:, own].sum(axis=1) / weights.sum(axis=1)
    return float(np.sqrt(np.mean((again - own.mean()) ** 2))) / PART
