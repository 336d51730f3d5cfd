"""The rule for completed tables: numbers by hand, refusals, and how often it holds (R23).

The limits of the coverage tests and their false-alarm rate are those of
`test_coverage`: within [.93, .97] at 10,000 replications.
"""

from fractions import Fraction

import numpy as np
import pytest

from checks.bench import missing
from checks.bench.nested_coverage import (
    completed_means,
    nested,
    partial_of_imputed,
    without_imputing,
)
from pegsynth import Ledger, ParameterError, combine, pooled
from pegsynth.inference.choice import NOISE_OPTION, OWN_NOISE
from pegsynth.privacy.assumptions import stated
from pegsynth.privacy.draw_events import UrnDraws
from pegsynth.privacy.events import NotPrivate, Unspent

# K = 2, r = 2. Means of the tables 10 and 14: q = 12, b = 8; variances within them 2 and 8: w = 5;
# v = 4.
ESTIMATES, VARIANCES = [9, 11, 12, 16], [3, 4, 5, 4]
QUARTER = {"rows": 250, "rows_in": 1000}
DESIGNS = [(2000, 5, 3), (2000, 10, 2), (500, 5, 3), (8000, 5, 3)]
REPLICATIONS = 10_000
LOWEST, HIGHEST = 0.93, 0.97


def found(rows, datasets, imputations, imputer="synthetic"):
    words = np.random.default_rng([rows, datasets, imputations, len(imputer)])
    return completed_means(words, rows, datasets, imputations, REPLICATIONS, imputer)


def passes(coverage):
    return LOWEST <= coverage <= HIGHEST


def test_by_hand():
    # (n/N)(v + w) = 9/4, b/K = 4: T = 25/4. The degrees of freedom: (25/4)^2 over
    # (5/4)^2/(K (r-1)) + 4^2/(K-1) = 25/32 + 16 = 537/32.
    result = combine(ESTIMATES, VARIANCES, imputations=2, **QUARTER)
    assert result.rule == "nested"
    assert result.estimate == 12
    assert result.variance == pytest.approx(25 / 4, rel=1e-12)
    assert result.degrees_of_freedom == pytest.approx((625 / 16) / (537 / 32), rel=1e-12)
    assert any("reasons which these do not tell" in note for note in result.notes)


def test_imputations_that_agree_give_the_plug_in_rule():
    once, variances = [10, 12, 14], [3, 4, 5]
    twice = combine(np.repeat(once, 2), np.repeat(variances, 2), imputations=2, **QUARTER)
    plain = combine(once, variances, **QUARTER)
    assert twice.variance == pytest.approx(plain.variance, rel=1e-12)
    assert twice.degrees_of_freedom == pytest.approx(plain.degrees_of_freedom, rel=1e-12)


def test_estimates_that_are_all_equal_have_infinite_degrees_of_freedom():
    result = combine([5.0] * 4, [1.0] * 4, imputations=2, **QUARTER)
    assert result.variance == 0.25
    assert np.isinf(result.degrees_of_freedom)


def test_names_and_arrays():
    columns = {"age": ESTIMATES, "sex": [2 * x for x in ESTIMATES]}
    spread = {"age": VARIANCES, "sex": [4 * x for x in VARIANCES]}
    both = combine(columns, spread, imputations=2, **QUARTER)
    alone = combine(ESTIMATES, VARIANCES, imputations=2, **QUARTER)
    assert both["age"].variance == alone.variance
    assert both["sex"].variance == pytest.approx(4 * alone.variance)


def test_pooled_takes_completed_tables():
    frames = [np.array([x, x + 2.0]) for x in ESTIMATES]
    result = pooled(lambda rows: (rows.mean(), 1.0), frames, imputations=2, rows_in=8).combined
    assert result.rule == "nested"
    assert result.variance[0] == pytest.approx(2 / 8 * (1 + 5) + 4)


def own_noise_ledger():
    return Ledger(
        events=(Unspent.of(Fraction(1, 9), route="pure"),),
        assumptions=(stated("public-options", {NOISE_OPTION: OWN_NOISE}),),
    )


def test_tables_with_noise_of_their_own_are_averaged_and_keep_their_rule():
    """b holds the spread of imputing already."""
    ledger = own_noise_ledger()
    result = combine(ESTIMATES, imputations=2, ledger=ledger)
    plain = combine([10, 14], ledger=ledger)
    assert result.rule == plain.rule == "own-noise"
    assert (result.estimate, result.variance) == (plain.estimate, plain.variance)
    with pytest.raises(ParameterError, match="own-noise rule"):
        combine(ESTIMATES, VARIANCES, rule="nested", imputations=2, ledger=ledger, **QUARTER)


def test_the_ledger_of_plug_in_tables_leads_to_the_nested_rule():
    result = combine(ESTIMATES, VARIANCES, imputations=2, ledger=Ledger(), **QUARTER)
    assert result.rule == "nested"
    assert result.notes[0].startswith("rule nested by the ledger")


URN = UrnDraws(alpha_numerator=1, alpha_denominator=2, features=4, visits=5)


def test_completed_tables_under_virtual_rows_get_no_interval():
    with pytest.raises(ParameterError, match="no interval for these datasets"):
        combine(ESTIMATES, VARIANCES, imputations=2, ledger=Ledger(events=(URN,)), **QUARTER)


def test_tables_that_no_rule_for_completed_ones_fits_are_refused():
    ledger = Ledger(events=(NotPrivate.because("kept-columns"),))
    with pytest.raises(ParameterError, match="imputed values"):
        combine(ESTIMATES, VARIANCES, imputations=2, ledger=ledger, **QUARTER)
    with pytest.raises(ParameterError, match="nested rule is wrong"):
        combine(ESTIMATES, VARIANCES, rule="nested", imputations=2, ledger=ledger, **QUARTER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "nested"}, "needs imputations"),
        ({"imputations": 1}, "at least 2 imputations"),
        ({"imputations": 3}, "4 estimates are not 3 for each"),
        ({"imputations": 4}, "at least 2 datasets"),
        ({"imputations": 0}, "whole number of at least 1"),
        ({"imputations": True}, "whole number of at least 1"),
        ({"imputations": 2, "rule": "plug-in"}, "use the nested rule"),
        ({"imputations": 2, "rows": None}, "the nested rule needs rows"),
    ],
)
def test_what_cannot_be_combined_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        combine(ESTIMATES, VARIANCES, **{**QUARTER, **options})


@pytest.mark.parametrize("design", DESIGNS)
def test_coverage(design):
    assert passes(nested(found(*design), design[0]))


@pytest.mark.parametrize("design", DESIGNS)
def test_twin_that_leaves_out_how_uncertain_imputed_values_are(design):
    coverage = without_imputing(found(*design), design[0])
    assert not passes(coverage)
    assert coverage < 0.925


@pytest.mark.parametrize("design", DESIGNS)
def test_twin_that_takes_the_parameters_of_the_imputer_for_known(design):
    assert not passes(nested(found(*design, "improper"), design[0]))


def test_twin_whose_imputer_is_fitted_to_the_original():
    """Where n is not N the spread of imputing is then not what the rule takes it for."""
    assert not passes(nested(found(8000, 5, 3, "original"), 8000))


@pytest.mark.parametrize("design", [(2000, 10, 2), (500, 5, 3), (8000, 5, 3)])
def test_twin_that_takes_the_rule_for_partial_synthesis(design):
    assert not passes(partial_of_imputed(found(*design)))


def test_the_benchmark_prints_its_tables(capsys):
    """A very short form."""
    missing.main(["--rows", "1500", "--runs", "1", "--epsilon", "5"])
    missing.main(["--coverage", "--replications", "50"])
    missing.main(["--trees", "--runs", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| table | mean charge |")
    assert [line.split(" | ")[0] for line in lines[2:6]] == [
        "| original, complete cases",
        "| original imputed, no privacy",
        "| epsilon 5, complete cases",
        "| epsilon 5, completed",
    ]
    assert lines[6].startswith("| n, K, r | `nested` |")
    assert lines[12].startswith("| n, K, r | quantity |")
    assert len(lines) == 18
