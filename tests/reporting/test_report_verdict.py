"""The verdict follows its stated rules."""

import pytest
from every_record import every_record, missing, record

from pegsynth.evaluation import Marginal, Metrics
from pegsynth.publishing.report.verdict import verdict
from pegsynth.publishing.report.wording import Lookup

KNOWN = "age, sex, zip"


def judged(*records):
    return verdict(Lookup(Metrics(summary={}, records=records)))


def controlled(name, value, baseline, **more):
    own = record(name, KNOWN, value, baseline, **more)
    return own, record(f"{name}_control", KNOWN, baseline, value)


def test_nothing_to_judge_by():
    found = judged(record("intruder_matched", "", 0.3, 0.2))
    assert found["risk"] == "No measure of risk could be held against a reference."
    assert not found["alarm"]


def test_all_is_well():
    found = verdict(Lookup(every_record()))
    assert found["risk"] == "No measure of risk stands out against its reference."
    assert not found["alarm"]
    assert "area under the curve 0.52 and 0.49, chance 0.5" in found["risk_sentences"][0]


@pytest.mark.parametrize(
    ("value", "spread", "alarm"),
    [(0.5, 0.01, False), (0.53, 0.04, False), (0.53, 0.02, True), (0.99, 0.005, True)],
)
def test_membership_against_chance(value, spread, alarm):
    found = judged(record("membership_auc", "nearest released row", value, 0.5, spread=spread))
    assert found["alarm"] == alarm
    if alarm:
        assert found["risk"] == "Worse than the reference: Membership, area under the curve."
        assert found["risk_sentences"] == [
            f"Membership, area under the curve (nearest released row): {value}; by chance: 0.5."
        ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.3, "No measure of risk stands out"),
        (0.63, "Not clearly better than releasing real rows: Uniques that reappear."),
        (1.0, "Worse than the reference: Uniques that reappear."),
    ],
)
def test_reappearance_without_a_hold_out_is_held_against_real_rows(value, words):
    found = judged(record("reappearing_uniques", KNOWN, value, 0.632, spread=0.02))
    assert found["risk"].startswith(words)
    assert found["alarm"] == (value > 0.3)


@pytest.mark.parametrize(("value", "alarm"), [(0.1, False), (0.12, False), (0.2, True)])
@pytest.mark.parametrize("name", ["reappearing_uniques", "reiter_risk"])
def test_with_a_hold_out_people_never_given_are_the_reference(name, value, alarm):
    found = judged(*controlled(name, value, 0.11, spread=0.02))
    assert found["alarm"] == alarm
    if alarm:
        assert "people never given: 11.00%" in found["risk_sentences"][0]


def test_matching_needs_a_hold_out_to_be_judged_and_is_named():
    found = judged(record("reiter_risk", KNOWN, 0.9, 0.1, spread=0.01))
    assert found["risk"] == (
        "Above the reference, but only a hold-out could judge it: Expected match risk (Reiter)."
    )
    assert "without a hold-out (--holdout FILE) it cannot be told" in found["risk_sentences"][0]
    assert not found["alarm"]


@pytest.mark.parametrize(("value", "alarm"), [(0.21, False), (0.3, True)])
def test_unique_rows_are_compared_with_the_original(value, alarm):
    found = judged(record("uniqueness", "", value, 0.2, spread=0.02))
    assert found["alarm"] == alarm
    words = "a synthetic row is nobody" if alarm else "by less than the interval"
    assert any(words in each for each in found["risk_sentences"])


@pytest.mark.parametrize(("error", "alarm"), [(0.6, False), (0.59, False), (0.5, True)])
def test_an_intruder_who_errs_less_than_without_the_release(error, alarm):
    subject = "MDC | age, sex"
    found = judged(
        record("intruder_error", subject, error, 0.6, spread=0.02, better="higher"),
        record("intruder_error_holdout", subject, 0.6, better="higher"),
    )
    assert found["alarm"] == alarm


def test_an_intruder_who_errs_as_with_real_rows():
    found = judged(record("intruder_error", "MDC | age", 0.6, 0.59, spread=0.02, better="higher"))
    assert found["risk"] == "Not clearly better than releasing real rows: Intruder's error."
    assert found["risk_sentences"] == ["Intruder's error (MDC | age): 60.00%; bootstrap: 59.00%."]


def test_a_hold_out_that_was_not_computed_is_no_hold_out():
    subject = "MDC | age"
    found = judged(
        record("intruder_error", subject, 0.6, 0.59, spread=0.02, better="higher"),
        missing("intruder_error_holdout", subject, "there is no hold-out"),
    )
    assert found["risk"] == "Not clearly better than releasing real rows: Intruder's error."


def test_measures_that_were_not_computed_are_counted_and_named():
    found = judged(
        record("membership_auc", "nearest released row", 0.5, 0.5, spread=0.01),
        record("uniqueness", "", 0.1, 0.1, spread=0.01),
        missing("reappearing_uniques", "", "no feature identifies"),
        missing("reiter_risk", "", "no feature identifies"),
    )
    assert found["risk"] == (
        "Of 4 measures of risk 2 could be judged; none of these stands out against its reference."
    )
    assert found["risk_sentences"][1:] == [
        "Uniques that reappear; Expected match risk (Reiter): not computed: no feature identifies."
    ]
    assert not found["alarm"]


def test_several_of_the_measures_were_judged():
    found = judged(
        record("membership_auc", "nearest released row", 0.5, 0.5, spread=0.01),
        record("reappearing_uniques", KNOWN, 0.3, 0.632, spread=0.02),
        missing("intruder_error", "", "no feature is sensitive"),
    )
    assert found["risk"] == (
        "Of 3 measures of risk 2 could be judged; none of these stands out against its reference."
    )


def test_the_furthest_feature_has_more_than_one_category():
    marginals = tuple(
        Marginal(feature=f, label="", categories=("a", "b"), original=shares, synthetic=shares)
        for f, shares in (("one", (1.0, 0.0)), ("two", (0.5, 0.5)))
    )
    records = (record("tvd1", "one", 0.2, 0.0), record("tvd1", "two", 0.1, 0.0))
    found = verdict(Lookup(Metrics(summary={}, records=records, marginals=marginals)))
    assert "furthest from the original is two" in found["utility_sentences"][0]


def test_utility_in_words():
    sentences = " ".join(verdict(Lookup(every_record()))["utility_sentences"])
    assert "In a two-way table 11.00% of the synthetic rows are out of place" in sentences
    assert "overlap by 0.61 on average" in sentences
    assert "2.6 times what chance gives" in sentences
    assert "predicts MDC in real rows with an area under the curve of 0.71" in sentences
