"""Pairs of features: heat maps of their errors, and the worst of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pegsynth.publishing.report.charts import heat_map
from pegsynth.publishing.report.figure import Figure, table_of
from pegsynth.publishing.report.measures import figure_text, in_percent
from pegsynth.publishing.report.wording import NOT_COMPUTED, percent, short, short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.drawing import Chart
    from pegsynth.publishing.report.wording import Lookup

MOST_FEATURES = 30
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_EXCESS = (
    "The same with what a plain resample of the original would show taken off; nothing is "
    "left below zero."
)
_WIDTH = 250
_COLUMNS = ("Features", "Rows out of place", "Plain resample", "Above it")


def pair_figures(found: Lookup) -> list[Figure]:
    """Draw total variation of all two-way tables, as it is and above its floor.

    Beyond `MOST_FEATURES` features those with the largest mean error above the floor are
    shown, in the order of the codebook. Features with one category are left out: their pairs
    only repeat the other feature.
    """
    constant = found.constant()
    pairs = [
        (a, b, r)
        for a, b, r in found.pairs("tvd2")
        if r.value is not None and not {a, b} & constant
    ]
    if not pairs:
        return []
    features = _shown(pairs)
    ours = [(a, b, r) for a, b, r in pairs if a in features and b in features]
    labels = short_labels(features)
    cells = [_cell(labels[a], labels[b], r) for a, b, r in ours]
    rows = sorted(ours, key=lambda pair: -_excess(pair[2]))
    return [
        Figure(
            "pairs",
            "Rows out of place, by pair",
            _rule(pairs, features, len(constant)),
            partial(_heat_map, cells, labels, "value"),
            table_of(_COLUMNS, [_line(a, b, r) for a, b, r in rows]),
        ),
        Figure(
            "pairs-excess",
            "Above a plain resample, by pair",
            _EXCESS,
            partial(_heat_map, cells, labels, "excess"),
        ),
    ]


def _heat_map(cells: list[dict[str, object]], labels: dict[str, str], key: str) -> Chart:
    return heat_map(
        cells,
        value=key,
        order=list(labels.values()),
        steps=STEPS,
        value_title="Share of the rows",
        as_percent=True,
        width=_WIDTH,
    )


def worst(found: Lookup, name: str, count: int) -> list[dict[str, str]]:
    """List the pairs that lie furthest above their floor, without features of one category."""
    constant = found.constant()
    left_out = {record.subject for a, b, record in found.pairs(name) if {a, b} & constant}
    ours = [
        record
        for record in found.subjects(name)
        if record.value is not None and record.subject not in left_out
    ]
    ours.sort(key=lambda record: -_excess(record))
    as_percent = in_percent(name)
    return [
        {
            "subject": record.subject,
            "value": figure_text(record.value, as_percent=as_percent),
            "floor": figure_text(record.baseline, as_percent=as_percent),
            "ratio": f"{record.value / record.baseline:.1f}\u00d7"
            if record.value and record.baseline
            else NOT_COMPUTED,
        }
        for record in ours[:count]
    ]


def _excess(record: Record) -> float:
    return (record.value or 0.0) - (record.baseline or 0.0)


def _shown(pairs: list[tuple[str, str, Record]]) -> list[str]:
    totals: dict[str, float] = {}
    for first, second, record in pairs:
        for feature in (first, second):
            totals[feature] = totals.get(feature, 0.0) + _excess(record)
    furthest = sorted(totals, key=lambda feature: -totals[feature])[:MOST_FEATURES]
    return [feature for feature in totals if feature in set(furthest)]


def _rule(pairs: list[tuple[str, str, Record]], features: list[str], constant: int) -> str:
    text = (
        "Total variation distance of each two-way table; the more a cell stands out from the page, "
        "the further its pair is from the original."
    )
    count = len({name for first, second, _ in pairs for name in (first, second)})
    if count > len(features):
        text += f" Of {count:,} features the {len(features)} with the largest errors are shown."
    if constant:
        text += f" Features with one category ({constant:,}) are left out."
    return text


def _cell(first: str, second: str, record: Record) -> dict[str, object]:
    value, floor = record.value or 0.0, record.baseline or 0.0
    pair = f"{first} and {second}"
    return {
        "column": first,
        "line": second,
        "value": value,
        "excess": max(value - floor, 0.0),
        "value_text": f"{pair}: {percent(value)} out of place, plain resample {percent(floor)}",
        "excess_text": f"{pair}: {percent(max(value - floor, 0.0))} above a plain resample",
    }


def _line(first: str, second: str, record: Record) -> tuple[str, str, str, str]:
    return (
        f"{short(first)}, {short(second)}",
        figure_text(record.value, as_percent=True),
        figure_text(record.baseline, as_percent=True),
        figure_text(max(_excess(record), 0.0), as_percent=True),
    )
