"""What replicates share: rows that noise hides, constant numbers; and the floor of shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pegsynth
from pegsynth.codec import tails
from pegsynth.errors import ParameterError
from pegsynth.inference import Floor, ledger_support, procedures, shared_bias
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals
from pegsynth.privacy.events import Unspent
from significance import ALPHA

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


@pytest.mark.parametrize("noise", [0.02, 2.0, 40.0])
def test_so_many_rows_are_put_at_either_end(noise):
    """Against a twin that adds the rows to the table itself."""

    def moment(table, weights):
        return {"mean": float(np.average(table["los"].to_numpy(), weights=weights))}

    rows = ledger_support.hidden_rows(ledger(noise), "los")
    values = frame()["los"].to_numpy()
    found = pegsynth.replicated(moment, frame(), ledger=ledger(noise), analysis="los")
    low, high = found.combined.interval(0.95)
    usual = moment(frame(), np.ones(ROWS))["mean"]
    moved = max(
        abs(moment({"los": pl.Series([*values, end])}, [*np.ones(ROWS), rows])["mean"] - usual)
        for end in (values.min(), values.max())
    )
    beyond = moved > (high[0] - low[0]) / 2
    assert found.statuses == {"mean": "supported by bins only" if beyond else "supported"}
    assert beyond == (noise == 40.0)


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
        asked = shared_bias.Asked(
            table,
            weights,
            lambda counted: estimates(table, counted),
            lambda rows: estimates(rows, weights),
            analysis,
        )
        return shared_bias.with_shared_bias(found, asked, ledger(10.0)).statuses

    assert statuses("los") == ("supported by bins only", "supported")
    assert statuses("los ~ sev") == ("supported by bins only", "supported by bins only")


def cut(seed, *, rows=ROWS, width=1.0, hidden=20):
    """Return log-normal numbers whose largest are put at random among those before them."""
    random = np.random.default_rng(seed)
    values = np.sort(np.exp(random.normal(3.0, width, rows)))
    seen = values.copy()
    seen[-hidden:] = random.uniform(values[-4 * hidden], values[-hidden - 1], hidden)
    return values, seen


def test_a_tail_goes_on_as_its_law_has_it():
    """Against quantiles of laws by another library, each looked for by itself."""
    _, seen = cut(1)
    weights, hidden = np.full(ROWS, 2.0), 50.0
    found = list(shared_bias.longer_tails(seen, weights, hidden))
    inner, outer = (np.quantile(seen, 1 - share) for share in (0.2, 0.05))
    deep, shallow = stats.norm.isf(0.05), stats.norm.isf(0.2)
    usual = np.log(outer / inner) / (deep - shallow)
    expected = []
    for z, chance in zip(*np.polynomial.hermite_e.hermegauss(5), strict=True):
        width = usual * np.exp(0.25 * z)
        law = stats.lognorm(width, scale=inner * np.exp(-width * shallow))
        mass = 2 * ROWS * law.sf(seen.max())
        # So many rows of the next octave are not seen where noise of 12.5 leaves them below 50.
        octave = mass - 2 * ROWS * law.sf(2 * seen.max())
        chance *= stats.norm.cdf((hidden - octave) / (hidden / 4))
        longer = seen.copy()
        for number, row in enumerate(np.argsort(-seen)):
            place = 2 * number + 1
            if place < mass:
                longer[row] = law.isf(place / mass * law.sf(seen.max()))
        expected.append((chance, longer))
    whole = sum(chance for chance, _ in expected)
    expected = [(c / whole, each) for c, each in expected if (each != seen).any() and c > 1e-8]
    assert len(found) == len(expected) >= 2
    for (chance, longer), (known, other) in zip(found, expected, strict=True):
        # Quantiles of a table are known to about a row.
        assert chance == pytest.approx(known, rel=0.05)
        assert (longer != seen).sum() == pytest.approx((other != seen).sum(), abs=1)
        assert longer == pytest.approx(other, rel=0.03)


def test_tails_end_at_public_bounds_and_where_noise_could_hide_no_more():
    _, seen = cut(2)
    weights = np.ones(ROWS)
    counts = []
    for hidden in (5.0, 40.0):
        found = list(shared_bias.longer_tails(seen, weights, hidden))
        assert all((longer >= seen).all() for _, longer in found)
        counts.append(sum(chance * (longer > seen).sum() for chance, longer in found))
        assert counts[-1] < hidden
    assert 0 < counts[0] < counts[1]
    limit = seen.max() * 1.1
    for _, longer in shared_bias.longer_tails(seen, weights, 40.0, limit):
        assert longer.max() == limit
    assert not list(shared_bias.longer_tails(seen, weights, 40.0, seen.max()))
    assert not list(shared_bias.longer_tails(-seen, weights, 40.0))
    assert not list(shared_bias.longer_tails(seen * np.nan, weights, 40.0))
    assert not list(shared_bias.longer_tails(seen, weights, 0.1))


def long_table(seed, **told):
    values, seen = cut(seed, **told)
    random = np.random.default_rng(seed + 1)
    signs = 1 + 0.2 * random.choice([-1.0, 1.0], size=(len(seen), REPLICATES))
    weights = {"pegs_weight": np.ones(len(seen))}
    weights |= {f"pegs_weight_{k + 1}": signs[:, k] for k in range(REPLICATES)}
    return values, pl.DataFrame(
        {"los": seen, "sev": np.where(seen > 20, "rare", "usual")} | weights
    )


def moments(table, weights):
    los = table["los"].to_numpy()
    return {"mean": float(np.average(los, weights=weights)), "square": float(weights @ los**2)}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_covariance_gets_the_products_of_what_the_tail_moves(sign):
    """Against a twin that analyses every longer table by itself."""
    _, table = long_table(3)
    table = table.with_columns(pl.col("los") * sign)
    plain = pegsynth.replicated(moments, table).combined
    found = pegsynth.replicated(moments, table, ledger=ledger(5.0), analysis="los").combined
    assert np.array_equal(found.estimate, plain.estimate)
    expected = plain.covariance.copy()
    hidden = ledger_support.hidden_rows(ledger(5.0), "los")
    for chance, longer in shared_bias.longer_tails(
        sign * table["los"].to_numpy(), np.ones(ROWS), hidden
    ):
        moved = moments(table.with_columns(los=sign * longer), np.ones(ROWS))
        off = np.array([moved[name] for name in found.names]) - plain.estimate
        expected += chance * np.outer(off, off)
    assert found.covariance == pytest.approx(expected)
    assert found.variance == pytest.approx(np.diag(expected))
    assert found.variance[0] > 1.5 * plain.variance[0]
    assert any("the tail of los" in note for note in found.notes)


def test_intervals_hold_the_mean_of_numbers_whose_largest_are_hidden(monkeypatch):
    """200 tables, 20 of 2,000 rows hidden by noise of 7; the twin ends tails with the table."""
    truth = float(np.exp(3.0 + 1.2**2 / 2))

    def held():
        hits = 0
        for seed in range(200):
            _, table = long_table(10 * seed, width=1.2)
            found = pegsynth.replicated(procedures.means("los"), table, ledger=ledger(7.0))
            low, high = (end[0] for end in found.combined.interval(0.95))
            hits += low <= truth <= high
        return hits

    enough = stats.binom.ppf(ALPHA, 200, 0.95)
    assert held() >= enough
    monkeypatch.setattr(shared_bias, "longer_tails", lambda *_: ())
    assert held() < enough


def test_an_analysis_needs_the_ledger_whatever_is_fitted():
    for fit in ("los ~ sev", procedures.means("los"), deviation):
        with pytest.raises(ParameterError, match="state it"):
            pegsynth.replicated(fit, frame(), analysis="los")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_function_gets_longer_tables_as_it_got_the_table(kind):
    _, table = long_table(4)
    table = table.with_columns(pl.col("los").round().cast(pl.Int16))
    given = table.to_pandas() if kind == "pandas" else table
    if kind == "pandas":
        given.index = given.index + 7
    types = []

    def mean(rows, weights):
        types.append(type(rows))
        if kind == "pandas":
            assert (rows.index == given.index).all()
        assert "int" in str(rows["los"].dtype).lower()
        return {"mean": float(np.average(np.asarray(rows["los"]), weights=weights))}

    found = pegsynth.replicated(mean, given, ledger=ledger(5.0), analysis="los")
    plain = pegsynth.replicated(mean, given)
    assert set(types) == {type(given)}
    assert found.combined.std_error[0] > plain.combined.std_error[0]


def test_what_cannot_be_estimated_of_a_longer_tail_is_not_moved_by_it():
    _, table = long_table(5)
    largest = table["los"].max()

    def mean(rows, weights):
        if rows["los"].max() > largest:
            raise ParameterError("no such value")
        return {"mean": float(np.average(rows["los"].to_numpy(), weights=weights))}

    found = pegsynth.replicated(mean, table, ledger=ledger(5.0), analysis="los")
    assert found.bse == pegsynth.replicated(mean, table).bse
