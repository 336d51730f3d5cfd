"""Verdicts on made-up numbers: each finding reproduced, in part, and not at all."""

from __future__ import annotations

import math

import pytest
from study_numbers import (
    ATTACKS,
    COEFFICIENTS,
    DISTANCES,
    EPSILONS,
    SETTING,
    UNIQUE,
    VARIANT,
    view_of,
)

from pegsynth.inference.statistics import Estimate
from pegsynth.schema import Feature, Schema
from studies.paper import findings
from studies.paper.checks import Check, FindingPart, part, verdict
from studies.paper.conclude import Conclusion, Outcome, conclude, findings_text
from studies.paper.findings import View
from studies.paper.investigate import INVESTIGATIONS
from studies.paper.results import Results
from studies.paper.setting import setting_of
from studies.paper.study_design import NO_RESET, RESET, StudyDesign


def check(agrees: bool, value: float = 1.0) -> Check:
    return Check("x", Estimate(value), agrees)


def parts(*shares: tuple[int, int]) -> list[FindingPart]:
    """Parts of so many agreeing checks out of so many."""
    return [part("p", [check(i < yes) for i in range(of)]) for yes, of in shares]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([(20, 20), (3, 3)], "reproduced"),
        ([(19, 20), (3, 3)], "reproduced"),
        ([(18, 20), (3, 3)], "partly reproduced"),
        ([(20, 20), (0, 3)], "partly reproduced"),
        ([(10, 20), (1, 3)], "not reproduced"),
        ([(0, 20), (0, 3)], "not reproduced"),
        ([(3, 3), (0, 0)], "reproduced"),
        ([(0, 0)], "not assessed"),
        ([], "not assessed"),
    ],
)
def test_verdicts_follow_from_shares(shares, expected: str) -> None:
    assert verdict(parts(*shares)) == expected


def test_checks_without_a_figure_do_not_count() -> None:
    assert part("p", [check(True), check(False, math.nan)]).checks == (check(True),)


def as_the_paper(method: str, epsilon: float, name: str) -> float:
    """A world in which the paper is right about everything."""
    late = epsilon >= 50
    if name in DISTANCES:
        best = {"pegs": 10.0, "pegs-rs": 4.0, "pmi": 20.0}[method]
        return {"pegs": 0.1, "pegs-rs": 0.12, "pmi": 0.11}[method] if late else best / (1 + epsilon)
    if name.startswith("regression_distance"):
        return {"pegs": 2.0, "pegs-rs": 1.0, "pmi": 3.0}[method] / (1 + epsilon)
    if name in COEFFICIENTS:
        return COEFFICIENTS[name] * 0.5
    if name == ATTACKS[0]:
        leader = {0.1: "pegs", 1.0: "pmi"}.get(epsilon, "pegs-rs")
        return 1.4 if method == leader else 1.3
    if name == ATTACKS[1]:
        return 1.3 - epsilon / 500
    return 0.3 if name == UNIQUE else 1.0


def flattening(arm: str, length: float) -> float:
    return 0.2 if (arm, length) == (RESET, 100.0) else 0.6


def upside_down(method: str, epsilon: float, name: str) -> float:
    """A world in which the paper is wrong about everything."""
    if name in DISTANCES:
        return {"pegs": 1.0, "pegs-rs": 3.0 if epsilon < 50 else 0.5, "pmi": 1.0}[method] * epsilon
    if name.startswith("regression_distance"):
        return {"pegs": 1.0, "pegs-rs": 2.0, "pmi": 1.5}[method] * epsilon
    if name in COEFFICIENTS:
        return COEFFICIENTS[name] * 1.5
    if name == ATTACKS[0]:
        return {"pegs": 0.5, "pegs-rs": 0.6, "pmi": 0.5}[method]
    if name == ATTACKS[1]:
        return 0.2 + epsilon / 1000
    return 0.05 if name == UNIQUE else 1.0


def rising(arm: str, length: float) -> float:
    return 0.2 if (arm, length) == (NO_RESET, 100.0) else 0.6


FUNCTIONS = [find for _, find in findings.FINDINGS]


@pytest.mark.parametrize("find", FUNCTIONS)
def test_a_world_like_the_papers(find) -> None:
    assert verdict(find(view_of(as_the_paper, chains=flattening))) == "reproduced"


@pytest.mark.parametrize("find", [f for f in FUNCTIONS if f is not findings.category_attack])
def test_a_world_unlike_the_papers(find) -> None:
    assert verdict(find(view_of(upside_down, chains=rising))) == "not reproduced"


def test_an_attack_that_one_method_always_leads() -> None:
    """The error lies below the bootstrap's, and PeGS.rs is clearly best at every epsilon."""
    below, best = findings.category_attack(view_of(upside_down))
    assert (below.share, best.agreeing) == (0.0, 2)
    assert not best.checks[1].agrees
    assert verdict([below, best]) == "partly reproduced"


def mixed(method: str, epsilon: float, name: str) -> float:
    """Right at small epsilon, wrong at high epsilon."""
    world = as_the_paper if epsilon < 50 else upside_down
    return world(method, epsilon, name)


@pytest.mark.parametrize("find", [findings.regressions, findings.uniqueness])
def test_a_world_in_between(find) -> None:
    assert verdict(find(view_of(mixed, chains=flattening))) == "partly reproduced"


def test_distances_of_one_method_that_do_not_fall() -> None:
    def stubborn(method: str, epsilon: float, name: str) -> float:
        return as_the_paper(method, epsilon if method != "pmi" else 1.0, name)

    assert verdict(findings.falls(view_of(stubborn))) == "partly reproduced"


def test_slightly_closer_needs_a_gap_that_is_small_and_not_negative() -> None:
    def far(method: str, epsilon: float, name: str) -> float:
        value = as_the_paper(method, epsilon, name)
        return 5.0 if method == "pegs-rs" and epsilon >= 50 and name in DISTANCES else value

    closer, slight = findings.closer_at_high(view_of(far))
    assert (closer.share, slight.share) == (1.0, 0.0)
    closer, slight = findings.closer_at_high(view_of(upside_down))
    assert (closer.share, slight.share) == (0.0, 0.0)


def test_noise_is_not_taken_for_a_difference() -> None:
    """Equal methods, three repeats that differ by less than their own noise."""
    view = view_of(lambda method, epsilon, name: 1.0)
    assert findings.closer_at_small(view)[0].share == 0
    assert findings.closer_at_high(view)[0].share == 0
    assert findings.falls(view)[0].share == 0
    assert findings.falls(view)[1].share == 1


def test_findings_that_a_table_cannot_show_are_not_assessed() -> None:
    bare = setting_of(Schema((Feature("a", categories=("x", "y")),)))
    view = View(view_of(as_the_paper).results, VARIANT, bare)
    for find in (findings.category_attack, findings.amount_attack, findings.uniqueness):
        assert verdict(find(view)) == "not assessed"
    assert findings.regressions(view)[0].checks == ()


@pytest.mark.parametrize("look", INVESTIGATIONS)
@pytest.mark.parametrize("world", [as_the_paper, upside_down])
def test_investigations_write_sentences(look, world) -> None:
    lines = look([view_of(world, chains=flattening)])
    assert lines
    assert all(line.endswith(".") and "nan" not in line for line in lines)


def test_investigations_change_with_the_numbers() -> None:
    for look in INVESTIGATIONS:
        worlds = [(as_the_paper, flattening), (upside_down, rising)]
        first, second = (look([view_of(world, chains=chain)]) for world, chain in worlds)
        assert first != second


def test_conclusions_are_written_with_all_headings() -> None:
    design = StudyDesign((VARIANT,), {})
    conclusions = conclude(view_of(mixed, chains=flattening).results, design, SETTING)
    text = findings_text(conclusions, [("Rows", "10")], ["nothing"], notice="made up")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert [heading[3:5] for heading in headings[:8]] == [f"{n}." for n in range(1, 9)]
    assert text.count("**Verdict: ") == 8
    for each in conclusions:
        assert f"**Verdict: {each.verdict}.**" in text
    assert "made up" in text
    assert "- **Rows**: 10." in text
    assert "no |" in text


def test_a_conclusion_rests_on_its_main_choice() -> None:
    good, bad = (Outcome("w", verdict(p), tuple(p)) for p in (parts((3, 3)), parts((0, 3))))
    assert Conclusion(1, "t", good, (bad,), ()).verdict == "reproduced"
    text = findings_text([Conclusion(1, "t", good, (bad,), ())], [], [], notice="")
    assert "| w | not reproduced | 0 of 3 |" in text


def test_results_know_what_is_missing() -> None:
    results = Results.of({})
    assert results.levels("nobody") == []
    assert not results.mean("nobody", 1.0, "x").known
    view = view_of(as_the_paper)
    assert view.epsilons() == list(EPSILONS)
    assert view.epsilons(least=50) == [50.0, 100.0]
