"""The rules for replicates (R28): numbers worked by hand, floors, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from scipy import stats

from pegsynth import Ledger, ParameterError, combine, replicated
from pegsynth.inference import Floor
from pegsynth.inference.choice import check_rule, has_own_noise, replicates_of, rule_for
from pegsynth.inference.combining_rules import PART
from pegsynth.privacy import NoisyCounts, NotPrivate, Unspent
from pegsynth.privacy.assumptions import stated
from significance import bonferroni

# K = 4 estimates: mean 12, squared deviations 4 + 0 + 4 + 0 = 8, b = 8/3.
ESTIMATES = [10.0, 12.0, 14.0, 12.0]


def test_own_noise():
    # T = (1 + 1/4) 8/3 = 10/3 with K - 1 = 3 degrees of freedom.
    found = combine(ESTIMATES, rule="own-noise")
    assert found.estimate == 12
    assert found.variance == pytest.approx(10 / 3)
    assert found.degrees_of_freedom == 3
    # 3.1824 is the .975 point of t with 3 degrees of freedom.
    half = 3.182446 * math.sqrt(10 / 3)
    assert found.interval() == pytest.approx((12 - half, 12 + half), abs=1e-5)


def test_replicate_weights():
    # Around 11: 1 + 1 + 9 + 1 = 12, T = 12/(4 f^2) = 75 with K = 4 degrees of freedom.
    found = combine(ESTIMATES, rule="replicate-weights", main=11.0)
    assert found.estimate == 11
    assert found.variance == pytest.approx(75)
    assert combine(ESTIMATES, main=11.0, part=1.0).variance == pytest.approx(3)
    assert found.degrees_of_freedom == 4
    assert combine(ESTIMATES, main=11.0).rule == "replicate-weights"


def test_several_quantities_by_name():
    rows = [{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 5.0}]
    found = combine(rows, rule="replicate-weights", main={"b": 5.0, "a": 2.0})
    assert found.names == ("a", "b")
    assert found["a"].variance == pytest.approx(25)
    assert found["b"].variance == 0
    assert found["a"].estimate == 2


@pytest.mark.parametrize("rule", ["own-noise", "replicate-weights"])
def test_the_pivots_are_those_of_t(rule):
    """Linear and Gaussian: q - theta and (q_k - q)/f have one law, so the interval is exact."""
    words, count, runs = np.random.default_rng(5), 6, 20_000
    main = words.normal(size=runs)
    weighted = rule == "replicate-weights"
    rest = main + (PART if weighted else 1.0) * words.normal(size=(count, runs))
    more = {"main": main} if weighted else {}
    low, high = combine(rest, rule=rule, **more).interval(0.9)
    hits = int(((low <= 0) & (high >= 0)).sum())
    chance = 0.9
    # q-bar has variance (1 + 1/K) B around theta, and b estimates B.
    assert stats.binomtest(hits, runs, chance).pvalue > bonferroni(2)


@pytest.mark.parametrize("part", [1.0, 2 * PART, PART / 2])
def test_a_wrong_part_is_found_out(part):
    """The factor 1/f^2 forgotten, or another f."""
    words, count, runs = np.random.default_rng(5), 6, 20_000
    main = words.normal(size=runs)
    rest = main + PART * words.normal(size=(count, runs))
    low, high = combine(rest, main=main, part=part).interval(0.9)
    hits = int(((low <= 0) & (high >= 0)).sum())
    assert stats.binomtest(hits, runs, 0.9).pvalue < 1e-6


def test_the_ledger_says_which_part():
    found = [
        combine(ESTIMATES, main=11.0, ledger=ledger_of(replicates=4, **part)).variance
        for part in ({"replicate_part": 0.5}, {})
    ]
    # Ledgers of 0.1.0 do not say it: replicates had all of sampling and noise.
    assert found == pytest.approx([12.0, 3.0])
    for wrong in (0.0, 1.5, "much"):
        with pytest.raises(ParameterError, match="replicate_part"):
            combine(ESTIMATES, main=11.0, ledger=ledger_of(replicates=4, replicate_part=wrong))


def test_wrong_degrees_of_freedom_are_found_out():
    words, count, runs = np.random.default_rng(5), 6, 20_000
    main = words.normal(size=runs)
    rest = main + PART * words.normal(size=(count, runs))
    variance = np.asarray(combine(rest, rule="replicate-weights", main=main).variance)
    half = stats.norm.ppf(0.95) * np.sqrt(variance)
    hits = int((np.abs(main) <= half).sum())
    assert stats.binomtest(hits, runs, 0.9).pvalue < 1e-6


# Floors


def test_a_share_below_the_noise_has_the_variance_of_noise_and_sampling():
    # s/N = 0.01: below 0.02. q = 0.005: T >= 0.0001 + 0.005 * 0.995/1000 = 0.000104975.
    found = combine([0.005, 0.005], rule="own-noise", floor=Floor(0.01, 1000))
    assert found.variance == pytest.approx(0.000104975)
    assert any("below the noise" in note for note in found.notes)


def test_other_shares_keep_their_variance():
    floor = Floor([0.01, 0.01, 0.0], 1000)
    estimates = [[0.005, 0.4, 0.005], [0.105, 0.4, 0.005]]
    found = combine(estimates, rule="own-noise", floor=floor)
    plain = combine(estimates, rule="own-noise")
    # The first is far above its floor, the second above the noise, the third is no share.
    np.testing.assert_array_equal(found.variance, plain.variance)
    assert not any("below the noise" in note for note in found.notes)


def test_floors_by_name():
    rows = [{"rare": 0.001, "mean": 7.0}, {"rare": 0.001, "mean": 7.5}]
    found = combine(rows, rule="own-noise", floor=Floor({"mean": 0.0, "rare": 0.01}, 500))
    assert found["rare"].variance > 1e-4
    assert any("below the noise for rare" in note for note in found.notes)


# Which rule


def ledger_of(**options):
    noise = NoisyCounts.laplace(2, cells=1, purpose="block")
    chosen = stated("public-options", {"method": "pegs-once", "datasets": 4, "rows": 500} | options)
    return Ledger(
        (noise, Unspent.of(Fraction(1, 9), route="pure")),
        (stated("rows-in", {"rows_in": 1000}), chosen),
    )


SHARED = [ledger_of(), ledger_of(noise="shared")]
OWN, WEIGHTED = ledger_of(noise="own"), ledger_of(replicates=4)


def test_the_ledger_chooses():
    assert combine(ESTIMATES, ledger=OWN).rule == "own-noise"
    assert combine(ESTIMATES, ledger=WEIGHTED, main=12.0).rule == "replicate-weights"
    assert has_own_noise(OWN)
    assert replicates_of(WEIGHTED) == 4
    for ledger in SHARED:
        assert rule_for(ledger, 4).rule == "plug-in"
        found = combine(ESTIMATES, [1.0] * 4, ledger=ledger)
        assert "noise on these is in no interval" in found.notes[0]
        assert not has_own_noise(ledger)
        assert replicates_of(ledger) is None


REFUSED = [
    *(("fully", ledger, "little variance") for ledger in (*SHARED, OWN, WEIGHTED)),
    *((rule, OWN, "leaves the noise out") for rule in ("plug-in", "partial", "shared-urn")),
    ("plug-in", WEIGHTED, "leaves the noise out"),
    *(("own-noise", ledger, "share the noise") for ledger in (*SHARED, WEIGHTED)),
    *(("replicate-weights", ledger, "no replicate weights") for ledger in (*SHARED, OWN)),
]


@pytest.mark.parametrize(("rule", "ledger", "reason"), REFUSED)
def test_rules_that_are_wrong_are_refused_with_the_reason(rule, ledger, reason):
    more = {"main": 12.0} if rule == "replicate-weights" else {}
    with pytest.raises(ParameterError, match=f"{rule} rule is wrong.*{reason}.*ledger implies"):
        combine(ESTIMATES, [1.0] * 4, rule=rule, ledger=ledger, rows=5, rows_in=5, **more)


def test_replicate_rules_are_refused_for_other_methods():
    other = Ledger((NotPrivate.because("no-proof"),))
    with pytest.raises(ParameterError, match="not replicates of released blocks"):
        check_rule("own-noise", other)
    check_rule("fully", other)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rule": "replicate-weights"}, "needs main"),
        ({"rule": "own-noise", "main": 1.0}, "main is for"),
        ({"rule": "plug-in"}, "needs the variance"),
        ({"rule": "plug-in", "variances": [1.0] * 4, "floor": Floor(0.1, 10)}, "floor is for"),
        ({"main": [1.0, 2.0]}, "main must hold one number"),
        ({"main": math.nan}, "main must be finite"),
        ({"rule": "own-noise", "floor": Floor([0.1, 0.1], 10)}, "deviation must hold one number"),
    ],
)
def test_what_does_not_go_together(arguments, match):
    with pytest.raises(ParameterError, match=match):
        combine(ESTIMATES, **arguments)


# Fits with weights


def weighted_frame():
    words = np.random.default_rng(2)
    x = words.normal(size=60)
    columns = {"x": x, "y": 2 * x + words.normal(size=60), "pegs_weight": np.ones(60)}
    return columns | {f"pegs_weight_{k}": words.random(60) + 0.5 for k in (1, 2, 3)}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_fit_with_every_weight(kind):
    frame = kind(weighted_frame())

    def slope(table, weights):
        x, y = np.asarray(table["x"]), np.asarray(table["y"])
        return sm.WLS(y, sm.add_constant(x), weights=weights).fit()

    found = replicated(slope, frame, names=["start", "slope"])
    columns = weighted_frame()
    lines = [columns["pegs_weight"], *(columns[f"pegs_weight_{k}"] for k in (1, 2, 3))]
    main, *rest = (slope(columns, line).params[1] for line in lines)
    assert found.combined.rule == "replicate-weights"
    assert found.combined["slope"].estimate == pytest.approx(main)
    variance = np.mean((rest - main) ** 2) / PART**2
    assert found.combined["slope"].variance == pytest.approx(variance)
    assert found.combined["slope"].degrees_of_freedom == 3
    assert "slope" in repr(found)


def test_estimates_of_any_form():
    frame = pl.DataFrame(weighted_frame())
    for form in (float, lambda mean: {"mean": mean}, lambda mean: np.array([mean])):

        def mean(table, weights, form=form):
            return form(np.average(table["y"], weights=weights))

        assert replicated(mean, frame).combined.degrees_of_freedom == 3


@pytest.mark.parametrize("lacking", ["pegs_weight", "pegs_weight_1", "pegs_weight_2"])
def test_tables_without_weights_are_refused(lacking):
    columns = weighted_frame()
    del columns[lacking]
    with pytest.raises(ParameterError, match="pegs_weight_1, pegs_weight_2"):
        replicated(lambda table, weights: 1.0, pl.DataFrame(columns))
