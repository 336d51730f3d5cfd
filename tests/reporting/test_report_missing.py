"""What was not computed is said once."""

from every_record import missing, record

from pegsynth.evaluation import Metrics
from pegsynth.publishing.report.measures import missing_entries
from pegsynth.publishing.report.wording import Lookup

FORMULA = "I(charge > 25000) ~ age + los"
TERMS = ("Intercept", "age", "los")


def entries(*records):
    return missing_entries(Lookup(Metrics(summary={}, records=records)))


def test_a_regression_that_could_not_be_fitted_is_one_entry():
    constant = "the response is constant"
    records = [missing("regression_distance", FORMULA, f"the original: {constant}; remarks")]
    for term in TERMS:
        subject = f"{FORMULA} :: {term}"
        records += [
            missing("coefficient", subject, f"synthetic table 1: {constant}"),
            missing("coefficient_original", subject, f"the original: {constant}"),
            missing("interval_overlap", subject, f"both: {constant}"),
        ]
    assert entries(*records) == [("Regression", FORMULA, f"not computed: both: {constant}")]


def test_a_term_that_one_table_lacks_is_one_entry():
    records = [record("interval_overlap", f"{FORMULA} :: age", 0.9, 1, better="higher")]
    records += [
        missing(name, f"{FORMULA} :: los", "synthetic table 1: it never occurs")
        for name in ("coefficient", "interval_overlap")
    ]
    reason = "not computed: synthetic table 1: it never occurs"
    assert entries(*records) == [("Regression", f"{FORMULA} :: los", reason)]


def test_measures_with_one_reason_share_an_entry():
    names = ("reappearing_uniques", "reiter_risk", "reiter_risk")
    assert entries(*(missing(name, "", "no feature identifies") for name in names)) == [
        (
            "Uniques that reappear; Expected match risk (Reiter)",
            "",
            "not computed: no feature identifies",
        )
    ]


def test_a_part_that_needs_a_hold_out_says_that_it_is_a_part():
    (entry,) = entries(
        record("intruder_error", "MDC | age", 0.6, 0.5, better="higher"),
        missing("intruder_error_holdout", "MDC | age", "there is no hold-out"),
    )
    assert entry == (
        "Intruder's error, the part for the hold-out",
        "MDC | age",
        "not computed: there is no hold-out",
    )
