"""Verdicts on all findings, under the main choices and under others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studies.paper.checks import RULE, Check, FindingPart, Verdict, verdict
from studies.paper.findings import FINDINGS, View, flattens
from studies.paper.investigate import INVESTIGATIONS, text
from studies.paper.results import Results
from studies.paper.setting import Setting
from studies.paper.study_design import StudyDesign

MOST_LINES = 24
_IN_FRONT = 3
"""Decisions that are so basic that they are told first: the table, its copies, the repeats."""


@dataclass(frozen=True)
class Outcome:
    """A finding under one set of choices."""

    words: str
    verdict: Verdict
    parts: tuple[FindingPart, ...]


@dataclass(frozen=True)
class Conclusion:
    """What the study says about one finding.

    Parameters
    ----------
    number, title
        As in the list of findings.
    main
        The outcome that the verdict rests on.
    others
        The same under other choices.
    remarks
        What was seen when it was looked into.
    """

    number: int
    title: str
    main: Outcome
    others: tuple[Outcome, ...]
    remarks: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict under the main choices."""
        return self.main.verdict


def conclude(results: Results, design: StudyDesign, setting: Setting) -> list[Conclusion]:
    """Judge all findings."""
    views = [View(results, variant, setting) for variant in design.variants]
    conclusions = []
    for number, ((title, find), look) in enumerate(zip(FINDINGS, INVESTIGATIONS, strict=True), 1):
        outcomes = [
            Outcome(view.variant.words, verdict(parts), tuple(parts))
            # How blocks flatten was drawn under the main choices alone.
            for view in (views[:1] if find is flattens else views)
            for parts in [find(view)]
        ]
        main, *others = outcomes
        remarks = tuple(look(views)) if main.verdict != "not assessed" else ()
        conclusions.append(Conclusion(number, title, main, tuple(others), remarks))
    return conclusions


def findings_text(
    conclusions: Sequence[Conclusion],
    decisions: Sequence[tuple[str, str]],
    left_out: Sequence[str],
    *,
    notice: str,
) -> str:
    """Write ``FINDINGS.md``."""
    lines = ["# Findings of the paper, and what this study saw", "", notice, ""]
    lines += [f"- {question}: {answer}." for question, answer in decisions[:_IN_FRONT]]
    lines += ["", RULE, ""]
    lines += ["| finding | verdict | checks that agree |", "|---|---|---|"]
    for each in conclusions:
        lines.append(f"| {each.number}. {each.title} | {each.verdict} | {tally(each.main.parts)} |")
    for each in conclusions:
        lines += ["", *_conclusion(each)]
    if left_out:
        lines += ["", "## Left out", "", *(f"- {reason}" for reason in left_out)]
    lines += ["", "## What was settled where the paper is silent", ""]
    lines += [f"- **{question}**: {answer}." for question, answer in decisions]
    return "\n".join(lines) + "\n"


def _conclusion(each: Conclusion) -> list[str]:
    lines = [f"## {each.number}. {each.title}", "", f"**Verdict: {each.verdict}.**", ""]
    if each.verdict == "not assessed":
        return [*lines, "This table lacks the features that it needs; see what was left out."]
    for part in each.main.parts:
        if part.checks:
            lines += _part(part)
    if each.others:
        lines += ["Under other choices:", "", "| choice | verdict | checks that agree |"]
        lines.append("|---|---|---|")
        lines += [f"| {o.words} | {o.verdict} | {tally(o.parts)} |" for o in each.others]
        lines.append("")
    if each.remarks:
        lines += ["Looked into:", "", *(f"- {remark}" for remark in each.remarks)]
    return lines


def _part(part: FindingPart) -> list[str]:
    """Write a part: all its checks if they are few, else those that disagree."""
    against = [check for check in part.checks if not check.agrees]
    few = len(part.checks) <= MOST_LINES
    shown: Sequence[Check] = part.checks if few else against[:MOST_LINES]
    lines = [
        f"{part.claim[0].upper()}{part.claim[1:]}: {part.agreeing} of {len(part.checks)} checks "
        f"agree, so this part {'holds' if part.holds else 'does not hold'}."
        + ("" if few or not against else " Those that disagree:"),
        "",
    ]
    if shown:
        lines += ["| check | figure and interval | agrees |", "|---|---|---|"]
        lines += [
            f"| {check.what} | {text(check.estimate)} | {'yes' if check.agrees else 'no'} |"
            for check in shown
        ]
        lines.append("")
    return lines


def tally(parts: Sequence[FindingPart]) -> str:
    """Write how many checks of each part agree."""
    counts = [f"{part.agreeing} of {len(part.checks)}" for part in parts if part.checks]
    return "; ".join(counts) or "none"
