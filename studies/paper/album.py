"""What figures of the study are drawn from: points, floors and references by name.

A `Drawing` is a figure with the section it belongs to and the rows behind it, which are
written beside it as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pegsynth.publishing.report.figure import Figure
from studies.paper.arms import MAIN
from studies.paper.findings import LABELS
from studies.paper.results import Results
from studies.paper.setting import Setting
from studies.paper.study_design import BOOTSTRAP, PAPER, StudyDesign, Variant
from studies.paper.workshop import FRESH
from studies.paper.yardstick import headlines

Rows = list[dict[str, Any]]

FLOOR, ORIGINAL = "sampling floor", "original, at equal size"
REAL_ROWS = "real rows"
"""What points are held against: a floor by its name on the figure, or the same of real rows."""

REFERENCES = {BOOTSTRAP: "bootstrap", FRESH: "hold-out"}
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


@dataclass
class Lines:
    """Points of curves, and the dashed lines they are held against."""

    points: Rows = field(default_factory=list)
    held: Rows = field(default_factory=list)

    def __iadd__(self, other: Lines) -> Lines:
        self.points += other.points
        self.held += other.held
        return self

    @property
    def rows(self) -> Rows:
        """Points and dashed lines, for a table."""
        return [*self.points, *self.held]

    def of_panels(self, facets: set[str]) -> Lines:
        """Return the lines of some panels."""
        return Lines(
            *([r for r in rows if r["facet"] in facets] for rows in (self.points, self.held))
        )

    def drawing(self, section: str, name: str, title: str, caption: str, **look: Any) -> Drawing:
        """Make a figure of curves; its table holds the dashed lines, too."""
        look = {"log_x": True, "log_y": True, "references": self.held, **look}
        figure = Figure(name, title, caption, "curves", self.points, look)
        return Drawing(section, figure, self.rows)


@dataclass(frozen=True)
class Album:
    """What all figures are drawn from."""

    results: Results
    design: StudyDesign
    setting: Setting
    epsilons: tuple[float, ...]

    def lines(
        self,
        arms: Mapping[str, str],
        name: str,
        *,
        held: str = FLOOR,
        facet: str | None = None,
        x: str | None = None,
    ) -> Lines:
        """Return the points of some arms, by label, and what they are held against.

        Parameters
        ----------
        arms
            Label and name of each.
        name
            The figure that is drawn upward.
        held
            `FLOOR` or `ORIGINAL`, what chance alone would give, or `REAL_ROWS`.
        facet
            The panel.
        x
            A figure that is drawn across; None: the level of the arm.
        """
        points: Rows = []
        for label, arm in arms.items():
            for level in self.results.levels(arm):
                found = self.results.mean(arm, level, name)
                points.append(
                    {
                        "facet": facet,
                        "series": label,
                        "x": level if x is None else self.results.mean(arm, level, x).value,
                        "y": found.value,
                        "low": found.low,
                        "high": found.high,
                        "repeats": found.n,
                    }
                )
        return Lines(points, self._held(held, name, facet))

    def _held(self, held: str, name: str, facet: str | None) -> Rows:
        if held != REAL_ROWS:
            value = self.results.floors.get(MAIN, {}).get(name)
            return [] if value is None else [{"facet": facet, "series": held, "y": value}]
        references = (
            (words, self.results.mean(arm, None, name)) for arm, words in REFERENCES.items()
        )
        return [
            {"facet": facet, "series": words, "y": each.value, "low": each.low, "high": each.high}
            for words, each in references
            if each.known
        ]

    def paper(self, variant: Variant) -> dict[str, str]:
        """Return the paper's methods under some choices, by label."""
        return {LABELS[method]: variant.arm(method) for method in variant.methods}

    @property
    def pools(self) -> list[Variant]:
        """The choices that differ in their seed rows alone."""
        return [variant for variant in self.design.variants if variant.methods == PAPER]

    def by_pool(self, name: str, held: str = FLOOR) -> Lines:
        """Return a figure of the paper's methods, a panel for each seed pool."""
        lines = Lines()
        for variant in self.pools:
            facet = f"{variant.name} seed rows"
            lines += self.lines(self.paper(variant), name, held=held, facet=facet)
        return lines

    def by_distance(self, arms: Mapping[str, str]) -> Lines:
        """Return the distances of all features together, a panel for each."""
        lines = Lines()
        for words, name in headlines(self.setting).items():
            lines += self.lines(arms, name, facet=words)
        return lines

    def family(self, name: str) -> dict[str, str]:
        """Return the arms of a family by label."""
        return {
            REFERENCES.get(arm.name, label_of(arm.method)): arm.name
            for arm in self.design.families[name].arms
        }


def label_of(method: str) -> str:
    """Return how figures call a method."""
    return METHOD_LABELS.get(method, method)


def file_word(name: str) -> str:
    """Return a name as it may stand in the name of a file."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in name)
    return kept.strip("-").lower() or "feature"
