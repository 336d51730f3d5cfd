"""The first screen of a report: figures with a word, a colour and a reference, and one picture.

Goes in: saved results. Comes out: what the template puts side by side. A colour never stands
alone: its word says the same. Green is what chance explains, or at most 2 % of the rows beyond it;
amber up to 10 %; red is beyond that, or flagged by the rules of the verdict.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

from pegsynth.privacy.statement import Level
from pegsynth.publishing.report.features import pair_figures
from pegsynth.publishing.report.figure import Figure
from pegsynth.publishing.report.measures import figure_text, in_percent, measure, reference_of
from pegsynth.publishing.report.verdict import OVERLAPS, by_kind, closeness, risk_verdict
from pegsynth.publishing.report.wording import NOT_COMPUTED, OFF, Lookup, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Cumulative, Record

_WORDS = ("as chance", "close", "roughly alike", "far apart")
_LEVELS: tuple[Level, ...] = ("green", "green", "amber", "red")
_Word: TypeAlias = tuple[str, Level]
_UNKNOWN: _Word = ("not computed", "none")
_MOST_DRAWN = 1e300
"""Larger numbers are not drawn: the widths of their bars would overflow."""
_NUMBERS_SHOWN, _BARS, _TAIL = 6, 16, 0.98
_WIDTH, _HEIGHT = 155, 60
_PAIRS_WIDTH, _PAIRS_HEIGHT = 330, 156


@dataclass(frozen=True)
class Score:
    """One figure of the card.

    Parameters
    ----------
    title, figure
        What it is of, and the figure as text.
    word, level
        What it means, and its colour; ``none`` where nothing can be said.
    reference
        What it is held against.
    anchor
        The section of the page that says more.
    """

    title: str
    figure: str
    word: str
    level: Level
    reference: str
    anchor: str = ""


def distance_level(excess: float) -> _Word:
    """Return the word and colour of a distance beyond what chance explains."""
    place = closeness(excess, 0.0)
    return _WORDS[place], _LEVELS[place]


def score_card(found: Lookup) -> list[Score]:
    """Return the six figures: one-way, pairs, numbers, regressions, subgroups, risk."""
    off = {kind: len(records) for kind, records in by_kind(found).items()}
    pairs = found.record("tvd2")
    groups = off.get("subgroups", 0) + off.get("impossible rows", 0)
    judged = found.record(OFF) is not None
    changed: _Word = ("changed", "red") if groups else ("none changed", "green")
    word, level = changed if judged else _UNKNOWN
    figure = f"{groups}" if judged else NOT_COMPUTED
    return [
        _distance("One-way tables", found.record("tvd1"), 0, "features"),
        _distance("Pairs", pairs, off.get("feature pairs", 0), "pair-errors"),
        _distance("Numbers", found.record("kolmogorov_distance"), off.get("numbers", 0), "numbers"),
        _regressions(found.record("interval_overlap"), off.get("regressions", 0)),
        Score("Subgroups", figure, word, level, "beyond chance", "off" if groups else "verdict"),
        _risk(found),
    ]


def _distance(title: str, record: Record | None, flagged: int, anchor: str) -> Score:
    """Return a distance in parts of the rows, beside that of a plain resample."""
    if record is None or record.value is None:
        return Score(title, NOT_COMPUTED, *_UNKNOWN, "", anchor)
    place = 2 if record.baseline is None else closeness(record.value, record.baseline)
    said: _Word = (f"{flagged} off", "red") if flagged else (_WORDS[place], _LEVELS[place])
    reference = f"real rows: {figure_text(record.baseline, as_percent=True)}"
    return Score(title, figure_text(record.value, as_percent=True), *said, reference, anchor)


def _regressions(overlap: Record | None, flagged: int) -> Score:
    title, anchor = "Regressions", "regressions"
    if overlap is None or overlap.value is None:
        return Score(title, NOT_COMPUTED, *_UNKNOWN, "", anchor)
    said: _Word = (f"{flagged} changed", "red")
    if not flagged:
        said = ("agree", "green") if overlap.value >= OVERLAPS else ("little overlap", "amber")
    figure = figure_text(overlap.value, as_percent=False)
    return Score(title, figure, *said, "same intervals: 1", anchor)


def _risk(found: Lookup) -> Score:
    names = ("membership_auc", "reiter_risk", "reappearing_uniques", "uniqueness")
    records = (found.headline(name) for name in names)
    record = next((each for each in records if each is not None and each.value is not None), None)
    if record is None:
        return Score("Risk", NOT_COMPUTED, "not measured", "none", "", "risk")
    risk = risk_verdict(found)
    said: _Word = ("as expected", "green") if risk.judged else ("not judged", "none")
    if risk.alarm:
        said = ("stands out", "red")
    percent = in_percent(record.name, record)
    title = measure(record.name).title.partition(",")[0]
    reference = f"{title}; {reference_of(found, record)}"
    if record.baseline is not None:
        reference += f" {figure_text(record.baseline, as_percent=percent)}"
    figure = figure_text(record.value, as_percent=percent)
    return Score("Risk", figure, *said, reference, "risk")


def front_figures(found: Lookup) -> list[Figure]:
    """Draw the distances of all pairs, and small multiples of the numbers furthest apart."""
    figures = []
    for figure in pair_figures(found)[:1]:
        look = {**figure.look, "y_title": "", "width": _PAIRS_WIDTH, "height": _PAIRS_HEIGHT}
        title = "Pairs: original against synthetic"
        caption = "Share of rows that would have to change, by pair of features."
        figures.append(Figure("front-pairs", title, caption, figure.kind, figure.rows, look))
    shown = sorted(found.metrics.distributions, key=lambda each: -_apart(found, each))
    rows = [row for each in shown[:_NUMBERS_SHOWN] if each.values for row in _outline(each)]
    if rows:
        title = "Numbers: original against synthetic"
        caption = "Share of rows by value; the upper 2% are not drawn."
        look = {
            "steps": True,
            "own_x": True,
            "as_percent": True,
            "order": ("original", "synthetic"),
            "columns": 2,
            "width": _WIDTH,
            "height": _HEIGHT,
        }
        figures.append(Figure("front-numbers", title, caption, "curves", rows, look))
    return figures


def _apart(found: Lookup, cumulative: Cumulative) -> float:
    record = found.record("kolmogorov_distance", cumulative.feature)
    return 0.0 if record is None or record.value is None else record.value


def _outline(cumulative: Cumulative) -> Iterator[dict[str, object]]:
    """Return the outline of a histogram of each side: shares between equally spaced values."""
    values = cumulative.values
    last = bisect_left(cumulative.original, _TAIL)
    low, high = values[0], values[min(last, len(values) - 1)]
    if max(abs(low), abs(high)) > _MOST_DRAWN:
        return
    whole = all(value == int(value) for value in values)
    step = (high - low) / _BARS
    if whole:
        step, high = max(1.0, float(ceil(step))), high + 1
    if low + step <= low:
        return
    ends = [low + step * place for place in range(ceil((high - low) / step) + 1)]
    for series, shares in (("original", cumulative.original), ("synthetic", cumulative.synthetic)):
        below = [0.0, *(_share_below(values, shares, end, whole) for end in ends[1:])]
        heights = [0.0, *(after - before for before, after in pairwise(below)), 0.0]
        for x, y in zip((ends[0], *ends), heights, strict=True):
            yield {"x": x, "y": y, "series": series, "facet": short(cumulative.feature)}


def _share_below(values: Sequence[float], shares: Sequence[float], at: float, whole: bool) -> float:
    """Return the share of rows below a value; between points of no whole numbers on a line."""
    place = bisect_left(values, at)
    if place == 0 or whole or place == len(values):
        return shares[place - 1] if place else 0.0
    (left, right), (low, high) = values[place - 1 : place + 1], shares[place - 1 : place + 1]
    return low + (high - low) * (at - left) / (right - left)
