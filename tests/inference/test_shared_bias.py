"""What replicates share: rows that noise hides, constant numbers; and the floor of shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.codec import tails
from pegsynth.inference import Floor, ledger_support, procedures
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals
from pegsynth.privacy.events import Unspent

ROWS, REPLICATES = 2000, 20


def frame(*, constant=False):
    random = np.random.default_rng(1)
    columns = {
        "los": np.full(ROWS, 3.0) if constant else random.exponential(5.0, ROWS),
        "sev": np.where(np.arange(ROWS) < 3, "rare", "usual"),
    }
    signs = 1 + 0.2 * random.choice([-1.0, 1.0], size=(ROWS, REPLICATES))
    weights = {"pegs_weight": np.ones(ROWS)}
    weights |= {f"pegs_weight_{k + 1}": signs[:, k] for k in range(REPLICATES)}
    return pl.DataFrame(columns | weights)


def counted(name, deviation, *, purpose="marginals", levels=(4,), law="gaussian"):
    scale = deviation if law == "gaussian" else deviation / 2**0.5
    make = getattr(NoisyCounts, law)
    return make(scale, cells=1, purpose=purpose, features=(name,), levels=levels)


def ledger(noise, *more, law="gaussian"):
    pair = NoisyCounts.gaussian(
        3.0, cells=1, purpose="table", features=("los", "sev"), levels=(4, 4), table_cells=16
    )
    edges = counted("los", noise, purpose="edges", levels=(127,), law=law)
    one_ways = (counted("los", 3.0), counted("sev", 40.0))
    events = (edges, *more, *one_ways, pair, Unspent.of(Fraction(1, 10), route="zcdp"))
    return Ledger(events, delta=1e-9)


def deviation(table, weights):
    return {"sd": float(np.sqrt(np.cov(table["los"].to_numpy(), aweights=weights, ddof=0)))}


def test_a_mean_is_supported_where_hidden_rows_at_the_ends_move_it_by_less_than_half_an_interval():
    loud = pegsynth.replicated(procedures.means("los"), frame(), ledger=ledger(40.0))
    assert loud.statuses == {"los": "supported by bins only"}
    assert "161 rows at the ends of los" in str(loud)
    quiet = pegsynth.replicated(procedures.means("los"), frame(), ledger=ledger(0.1))
    assert quiet.statuses == {"los": "supported"}
    assert not any("rows at the ends" in note for note in quiet.combined.notes)
    assert loud.params == quiet.params
    assert loud.bse == quiet.bse


@pytest.mark.parametrize("noise", [0.02, 5.0])
def test_so_many_rows_are_put_at_either_end(noise):
    """Against a twin that adds the rows to the table itself."""
    rows = ledger_support.hidden_rows(ledger(noise), "los")
    values = frame()["los"].to_numpy()
    found = pegsynth.replicated(deviation, frame(), ledger=ledger(noise), analysis="los")
    low, high = found.combined.interval(0.95)
    moved = max(
        abs(deviation({"los": pl.Series([*values, end])}, [*np.ones(ROWS), rows])["sd"] - s)
        for end in (values.min(), values.max())
        for s in [deviation(frame(), np.ones(ROWS))["sd"]]
    )
    beyond = moved > (high[0] - low[0]) / 2
    assert found.statuses == {"sd": "supported by bins only" if beyond else "supported"}
    assert beyond == (noise == 5.0)


def test_hidden_rows_are_those_below_which_the_next_octave_is_not_seen():
    for law in ("gaussian", "laplace"):
        rows = ledger_support.hidden_rows(ledger(40.0, law=law), "los")
        chance = tails._FALSE_NEXT
        expected = tails.standing_out(1, 40.0, laplace=law == "laplace", chance=chance)
        assert rows == pytest.approx(expected)
    twice = ledger(40.0, counted("los", 40.0, purpose="edges", levels=(127,)))
    once = ledger_support.hidden_rows(ledger(40.0), "los")
    assert ledger_support.hidden_rows(twice, "los") == pytest.approx(once / 2**0.5)
    divided = ledger(40.0, counted("los", 40.0, purpose="edges", levels=(16,)))
    assert ledger_support.hidden_rows(divided, "los") == once
    assert ledger_support.hidden_rows(divided, "sev") == 0


def test_a_number_that_came_out_constant_is_not_supported():
    for asked in (procedures.means("los"), procedures.quantiles("los")):
        found = pegsynth.replicated(asked, frame(constant=True), ledger=ledger(0.1))
        assert set(found.statuses.values()) == {"not supported"}
        assert "do not vary" in str(found)
    share = pegsynth.replicated(procedures.shares("sev"), frame(), ledger=ledger(0.1))
    assert set(share.statuses.values()) == {"supported"}


def test_shares_take_the_floor_of_the_ledger_themselves():
    table, told = frame(), ledger(0.1)
    asked = procedures.shares("sev")
    found = pegsynth.replicated(asked, table, ledger=told)
    stated = pegsynth.replicated(
        asked, table, floor=Floor(dict.fromkeys(found.names, 40.0 / ROWS), ROWS)
    )
    assert found.bse == stated.bse
    without = pegsynth.replicated(asked, table)
    assert found.bse["sev[rare]"] > 10 * without.bse["sev[rare]"]
    assert found.bse["sev[usual]"] == without.bse["sev[usual]"]
    assert any("below the noise" in note for note in found.combined.notes)
    one = pegsynth.replicated(asked, table, ledger=told, names=["sev[rare]"])
    assert one.bse == {"sev[rare]": found.bse["sev[rare]"]}
    # Shares within groups, and of values of a number, were not counted alone.
    for other in (procedures.shares("sev", by="sev"), procedures.shares("los")):
        assert pegsynth.replicated(other, table, ledger=told).bse == (
            pegsynth.replicated(other, table).bse
        )


def test_a_table_that_noise_drowns_supports_nothing():
    """With twice as much noise on a cell as an average cell has rows: 2,000 rows, 4 cells."""

    def cell(table, weights):
        return {"cell": float(np.average((table["sev"] == "usual").to_numpy(), weights=weights))}

    told = {"purpose": "table", "features": ("sev", "sex"), "levels": (2, 2)}
    statuses = []
    for noise in (999.0, 1001.0):
        # A residual is in quarters of a row (R27).
        counts, residual = NoisyCounts.gaussian(noise, cells=1, **told), NoisyResiduals.gaussian
        for pair in (counts, residual(4 * noise, **told)):
            one_ways = (counted(name, 3.0, levels=(2,)) for name in ("sev", "sex"))
            spent = Unspent.of(Fraction(1, 10), route="zcdp")
            asked = Ledger((*one_ways, pair, spent), delta=1e-9)
            found = pegsynth.replicated(cell, frame(), ledger=asked, analysis="sev + sex")
            statuses.append(found.statuses["cell"])
    assert statuses == ["supported", "supported", "not supported", "not supported"]
    assert "noise drowns the published table of sev x sex" in str(found)


def test_coefficients_of_one_fit_are_supported_together():
    """Rows that noise hides move one by more than its interval; they move all that hang on it."""
    table, weights = frame(), np.ones(ROWS)
    still = np.arange(ROWS) % 2.0

    def estimates(rows, counted):
        values = {"stay": rows["los"].to_numpy(), "odd": still}
        return {name: float(np.average(line, weights=counted)) for name, line in values.items()}

    found = pegsynth.replicated(estimates, table).combined
    found = replace(found, statuses=("supported", "supported"))

    def statuses(analysis):
        judged = ledger_support.with_shared_bias(
            found, lambda counted: estimates(table, counted), table, weights, ledger(10.0), analysis
        )
        return judged.statuses

    assert statuses("los") == ("supported by bins only", "supported")
    assert statuses("los ~ sev") == ("supported by bins only", "supported by bins only")
