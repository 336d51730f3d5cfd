"""What figures of the study are drawn from: points, floors and references by name.

A `Drawing` is a figure with the section it belongs to and the rows behind it, which are
written beside it as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pegsynth.report.charts import curves
from pegsynth.report.figure import Figure
from pegsynth.study.arms import MAIN
from pegsynth.study.design import BOOTSTRAP, PAPER, Design, Variant
from pegsynth.study.findings import LABELS
from pegsynth.study.results import Results
from pegsynth.study.setting import Setting
from pegsynth.study.workshop import FRESH
from pegsynth.study.yardstick import EVERY, conditional_subject, figure

Rows = list[dict[str, Any]]

FLOOR = "sampling floor"
REFERENCES = {BOOTSTRAP: "bootstrap", FRESH: "hold-out"}
EPSILON = "epsilon per row"
INTERVALS = "Bars are 95 % intervals over repeats."
METHOD_LABELS = {**LABELS, "pegs-capped": "PeGS capped", "pegs-once": "PeGS once"}


@dataclass(frozen=True)
class Drawing:
    """A figure of the study.

    Parameters
    ----------
    section
        Under which heading of the page it stands; empty for a file alone.
    figure
        Name, title, caption and chart.
    rows
        What is drawn, for the table beside it.
    """

    section: str
    figure: Figure
    rows: Rows


@dataclass(frozen=True)
class Album:
    """What all figures are drawn from."""

    results: Results
    design: Design
    setting: Setting
    epsilons: tuple[float, ...]

    def points(
        self,
        arms: Mapping[str, str],
        name: str,
        *,
        facet: str | None = None,
        x: str | None = None,
    ) -> Rows:
        """Return points of some arms, by label: level (or figure `x`) across, figure upward."""
        rows: Rows = []
        for label, arm in arms.items():
            for level in self.results.levels(arm):
                found = self.results.mean(arm, level, name)
                place = level if x is None else self.results.mean(arm, level, x).value
                rows.append(
                    {
                        "facet": facet,
                        "series": label,
                        "x": place,
                        "y": found.value,
                        "low": found.low,
                        "high": found.high,
                        "repeats": found.n,
                    }
                )
        return rows

    def paper(self, variant: Variant) -> dict[str, str]:
        """Return the paper's methods under some choices, by label."""
        return {LABELS[method]: variant.arm(method) for method in variant.methods}

    def floor(self, name: str, *, facet: str | None = None, words: str = FLOOR) -> Rows:
        """Return the dashed line of what chance alone would give; none where it is unknown."""
        value = self.results.floors.get(MAIN, {}).get(name)
        return [] if value is None else [{"facet": facet, "series": words, "y": value}]

    def references(self, name: str, *, facet: str | None = None) -> Rows:
        """Return the dashed lines of bootstrap and hold-out."""
        return [
            {
                "facet": facet,
                "series": words,
                "y": found.value,
                "low": found.low,
                "high": found.high,
            }
            for arm, words in REFERENCES.items()
            if (found := self.results.mean(arm, None, name)).known
        ]

    @property
    def pools(self) -> list[Variant]:
        """The choices that differ in their seed rows alone."""
        return [variant for variant in self.design.variants if variant.methods == PAPER]

    def by_pool(self, name: str) -> Rows:
        """Return a figure of the paper's methods, a panel for each seed pool."""
        return [
            row
            for variant in self.pools
            for row in self.points(self.paper(variant), name, facet=panel_of(variant))
        ]

    def family(self, name: str) -> dict[str, str]:
        """Return the arms of a family by label."""
        return {
            REFERENCES.get(arm.name, label_of(arm.method)): arm.name
            for arm in self.design.families[name].arms
        }

    def headlines(self) -> dict[str, str]:
        """Return the distances of all features together: words and figure."""
        given = {
            f"distance given {name}": figure(
                "conditional_distance", conditional_subject(EVERY, name)
            )
            for name in self.setting.given
        }
        return {"marginal distance": "marginal_distance", **given}


def panel_of(variant: Variant) -> str:
    """Return the heading of a panel for a seed pool."""
    return f"{variant.name} seed rows"


def label_of(method: str) -> str:
    """Return how figures call a method."""
    return METHOD_LABELS.get(method, method)


def file_word(name: str) -> str:
    """Return a name as it may stand in the name of a file."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in name)
    return kept.strip("-").lower() or "feature"


def curve_drawing(
    section: str,
    name: str,
    title: str,
    caption: str,
    rows: Rows,
    references: Rows,
    **look: Any,
) -> Drawing:
    """Make a figure of curves; its table holds the dashed lines, too."""
    chart = Figure(name, title, caption, lambda: curves(rows, references=references, **look))
    return Drawing(section, chart, [*rows, *references])
