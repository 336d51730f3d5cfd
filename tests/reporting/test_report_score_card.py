"""The six figures of the first screen, each with a word and a colour, and the verdict in lines."""

import pytest
from every_record import cumulative, every_record, record

from pegsynth.evaluation import Metrics
from pegsynth.publishing.report.figure import Figure
from pegsynth.publishing.report.score_card import front_figures, score_card
from pegsynth.publishing.report.verdict import MOST_LINES, verdict
from pegsynth.publishing.report.wording import Lookup


def found(*records, **more):
    return Lookup(Metrics(summary={}, records=records, **more))


def flagged(*kinds):
    each = [record("utility_faults", f"{kind} :: x{i}", 3, 1) for i, kind in enumerate(kinds)]
    return record("utility_faults", "", len(each), 0), *each


def card(*records):
    return {score.title: score for score in score_card(found(*records))}


def test_six_figures_each_with_a_word_a_colour_and_a_reference():
    scores = score_card(Lookup(every_record()))
    titles = ["One-way tables", "Pairs", "Numbers", "Regressions", "Subgroups", "Risk"]
    assert [score.title for score in scores] == titles
    assert all(score.figure and score.word and score.reference for score in scores)
    assert [score.level for score in scores] == ["amber", "amber", "red", "green", "green", "green"]
    assert scores[0].figure == "3.40%"
    assert scores[5].reference == "Membership; by chance 0.5"


@pytest.mark.parametrize(
    ("value", "word", "level"),
    [
        (0.0125, "as chance", "green"),
        (0.03, "close", "green"),
        (0.11, "roughly alike", "amber"),
        (0.12, "far apart", "red"),
    ],
)
def test_a_distance_is_held_against_real_rows(value, word, level):
    score = card(record("tvd1", "", value, 0.01))["One-way tables"]
    assert (score.word, score.level, score.reference) == (word, level, "real rows: 1.00%")


def test_what_the_rules_flag_is_red_whatever_the_mean_says():
    scores = card(
        record("tvd2", "", 0.01, 0.01),
        record("interval_overlap", "", 0.9, 1, better="higher"),
        *flagged("feature pairs", "regressions", "regressions", "impossible rows"),
    )
    assert (scores["Pairs"].word, scores["Pairs"].level) == ("1 off", "red")
    assert (scores["Regressions"].word, scores["Regressions"].level) == ("2 changed", "red")
    assert (scores["Subgroups"].figure, scores["Subgroups"].level) == ("1", "red")


def test_what_was_not_measured_is_neither_good_nor_bad():
    assert {score.level for score in score_card(found())} == {"none"}
    assert {score.figure for score in score_card(found())} == {"n/a"}


def test_an_alarm_of_risk_is_red():
    score = card(record("membership_auc", "nearest released row", 0.9, 0.5, spread=0.01))["Risk"]
    assert (score.figure, score.word, score.level) == ("0.9", "stands out", "red")


def test_at_most_three_lines_the_worst_first():
    kinds = ("numbers", "subgroups", "feature pairs", "regressions", "regressions")
    lines = verdict(found(record("tvd2", "", 0.01, 0.01), *flagged(*kinds)))["lines"]
    assert len(lines) == MOST_LINES
    assert lines[0].startswith("Subgroups change: ")
    assert lines[1].startswith("Regressions change: ")
    assert lines[2] == "Also: numbers are off (1); pairs of features lose their dependence (1)."
    risky = record("membership_auc", "nearest released row", 0.9, 0.5, spread=0.01)
    lines = verdict(found(risky, *flagged(*kinds)))["lines"]
    assert lines[0].startswith("Worse than the reference")
    assert lines[2].startswith("Also: regressions change (2); numbers are off (1);")
    assert verdict(found(record("tvd2", "", 0.01, 0.01)))["lines"] == [
        "As close as chance allows.",
        "No measure of risk could be held against a reference.",
    ]


def test_the_picture_shows_pairs_and_numbers():
    figures = front_figures(Lookup(every_record()))
    assert [figure.name for figure in figures] == ["front-pairs", "front-numbers"]
    assert front_figures(found()) == []


@pytest.mark.parametrize("largest", [100.0, 40.0])
def test_an_outline_holds_nearly_all_rows_of_both_sides(largest):
    """Bars of whole and of other numbers; the upper 2 % and ties at the last value aside."""
    (figure,) = front_figures(found(distributions=(cumulative("charge", largest),)))
    assert isinstance(figure, Figure)
    for series in ("original", "synthetic"):
        rows = [row for row in figure.rows if row["series"] == series]
        assert rows[0]["y"] == rows[-1]["y"] == 0
        assert 0.9 < sum(row["y"] for row in rows) <= 1 + 1e-9
        assert [row["x"] for row in rows] == sorted(row["x"] for row in rows)
