"""Risk: each measure beside its references, and risk against utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pegsynth.publishing.report.figure import Figure, table_of
from pegsynth.publishing.report.measures import (
    figure_text,
    in_percent,
    measure,
    range_text,
    reference_of,
    titled_form,
)
from pegsynth.publishing.report.wording import short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.wording import Lookup

RELEASE, NEVER, REFERENCE = "this release", "people never given", "reference"
SERIES = (RELEASE, "bootstrap", "hold-out", NEVER, REFERENCE)
MOST_PANELS = 20
_WIDTH, _HEIGHT = 310, 240
_INTRUDER = {
    RELEASE: "intruder_error",
    "bootstrap": "intruder_error_bootstrap",
    "hold-out": "intruder_error_holdout",
    NEVER: "intruder_error_control",
}
_PEOPLE = (
    "uniqueness",
    "reappearing_uniques",
    "reappearing_as_unique",
    "reiter_risk",
)
_CHANCE = 0.5
_COLUMNS = ("Measure", "Whose", "Value", "Interval", "Rows")
_INTRUDER_CAPTION = (
    "The higher the error, the less an intruder learns. The bootstrap is what releasing real "
    "rows would betray; the hold-out is what the population alone betrays."
)
_PEOPLE_CAPTION = "The lower, the safer. Each measure has a scale of its own."
_MEMBERSHIP_CAPTION = (
    "0.5 (dashed) is chance: the release does not tell who was in the original. Each line is "
    "one way to attack."
)


def risk_figures(found: Lookup) -> list[Figure]:
    """Draw the intruder, the shares of rows at risk, and membership."""
    figures = []
    attacks = [record for record in found.subjects("intruder_error") if record.value is not None]
    for as_percent, name, title in (
        (True, "intruder", "Wrong guesses of an intruder"),
        (False, "intruder-amounts", "Error of an intruder who guesses an amount"),
    ):
        ours = [r for r in attacks if in_percent("intruder_error", r) == as_percent]
        points = [point for record in ours for point in _attack(found, record)]
        figures += _panels(name, title, _INTRUDER_CAPTION, points, as_percent=as_percent)
    points = [
        _point(record.subject or RELEASE, RELEASE, record)
        for record in _all(found, "membership_auc")
    ]
    title = measure("membership_auc").title
    figures += _panels("membership", title, _MEMBERSHIP_CAPTION, points, reference=_CHANCE)
    records = [
        record
        for each in _PEOPLE
        for record in sorted(_all(found, each), key=attrgetter("subject"))
    ]
    points = [point for record in records for point in _beside(found, record)]
    return figures + _panels("people", "People at risk", _PEOPLE_CAPTION, points, as_percent=True)


def risk_maps(found: Lookup) -> list[Figure]:
    """Draw risk against utility: this release among its references."""
    pairs = found.record("tvd2")
    if pairs is None or pairs.value is None:
        return []
    return [_map(found, place, pairs, each) for place, each in enumerate(_mapped(found), start=1)]


def _mapped(found: Lookup) -> list[Record]:
    attacks = [record for record in found.subjects("intruder_error") if record.value is not None]
    others = (found.headline(name) for name in ("membership_auc", "reappearing_uniques"))
    chosen = attacks[:2] + [r for r in others if r is not None and r.value is not None]
    if not chosen:
        unique = found.headline("uniqueness")
        chosen = [unique] if unique is not None and unique.value is not None else []
    return chosen


def _map(found: Lookup, place: int, pairs: Record, record: Record) -> Figure:
    points = [map_point(RELEASE, pairs, record)]
    bootstrap = found.record(f"{record.name}_bootstrap", record.subject)
    beside = bootstrap is not None and bootstrap.value is not None
    if beside:
        other = map_point("bootstrap", None, bootstrap)
        # Drawn last, this release lies on top of what it is compared with.
        points.insert(0, other | {"x": pairs.baseline})
    words = reference_of(found, record)
    return risk_map(
        f"map-{place}",
        record,
        points,
        named={"Series": "series", "Point": "label"},
        caption=" Point at a mark, or reach it with the tab key.",
        x_reference=(None if beside else pairs.baseline, "plain resample"),
        y_reference=(None if words == "bootstrap" and beside else record.baseline, words),
        x_title="Rows out of place in two-way tables",
        order=SERIES,
        width=_WIDTH,
        height=_HEIGHT,
    )


def map_point(series: str, utility: Record | None, risk: Record | None) -> dict[str, Any]:
    """Return a point of a map: two figures with their intervals."""
    return {"series": series} | {
        f"{side}{end}": getattr(record, key)
        for side, record in (("x", utility), ("y", risk))
        for end, key in (("", "value"), ("_low", "low"), ("_high", "high"))
        if record is not None
    }


def risk_map(
    name: str,
    record: Record,
    points: Sequence[Mapping[str, Any]],
    *,
    named: Mapping[str, str],
    caption: str = "",
    **look: Any,
) -> Figure:
    """Draw points of risk against utility.

    Parameters
    ----------
    record
        The risk, in the form in which it is drawn.
    points
        As `map_point` makes them.
    named
        Columns of the table that name a point, and its keys for them.
    caption
        What else is to be said of it.
    **look
        Further fields of `Look`.
    """
    as_percent, title = in_percent(record.name, record), measure(record.name).title
    safer = "up is safer" if record.better == "higher" else "down is safer"
    rows = [
        (
            *(str(point.get(key) or "") for key in named.values()),
            figure_text(point.get("x"), as_percent=True),
            figure_text(point.get("y"), as_percent=as_percent),
        )
        for point in points
    ]
    look |= {"zero": True, "x_percent": True, "as_percent": as_percent, "y_title": title}
    return Figure(
        name,
        titled_form(record),
        f"Left is more useful, {safer}.{caption}",
        "risk_utility_map",
        points,
        look,
        table_of((*named, "Rows out of place", title), rows),
    )


def _panels(
    name: str,
    title: str,
    caption: str,
    points: list[dict[str, Any]],
    *,
    as_percent: bool = False,
    reference: float | None = None,
) -> list[Figure]:
    if not points:
        return []
    labels = short_labels(point["label"] for point in points)
    shown = list(labels)[:MOST_PANELS]
    if len(labels) > len(shown):
        caption += f" The first {len(shown)} of {len(labels):,} are drawn."
    drawn = [
        point | {"label": labels[point["label"]]} for point in points if point["label"] in shown
    ]
    rows = [
        (
            labels[point["label"]],
            point.get("whose", point["series"]),
            figure_text(point["value"], as_percent=as_percent),
            point.get("range", ""),
            f"{point['n']:,}" if point["n"] else "",
        )
        for point in points
    ]
    figure = Figure(
        name,
        title,
        caption,
        "forest_plot",
        drawn,
        {
            "order": SERIES,
            "reference": reference,
            "as_percent": as_percent,
            "zero": as_percent,
            "width": _WIDTH,
        },
        table_of(_COLUMNS, rows),
    )
    return [figure]


def _all(found: Lookup, name: str) -> list[Record]:
    whole = found.record(name)
    records = found.subjects(name) or ([whole] if whole is not None else [])
    return [record for record in records if record.value is not None]


def _attack(found: Lookup, record: Record) -> list[dict[str, Any]]:
    points = []
    for series, name in _INTRUDER.items():
        other = found.record(name, record.subject)
        if other is not None and other.value is not None:
            points.append(_point(record.subject, series, other))
    return points


def _beside(found: Lookup, record: Record) -> list[dict[str, Any]]:
    label = measure(record.name).title
    if record.subject:
        label += f": {record.subject}"
    own = _point(label, RELEASE, record)
    control = found.record(f"{record.name}_control", record.subject)
    if control is not None and control.value is not None:
        return [own, _point(label, NEVER, control)]
    if record.baseline is None:
        return [own]
    whose = reference_of(found, record)
    other = {"label": label, "series": REFERENCE, "whose": whose, "value": record.baseline, "n": 0}
    return [own, other]


def _point(label: str, series: str, record: Record) -> dict[str, Any]:
    return {
        "label": label,
        "series": series,
        "value": record.value,
        "low": record.low,
        "high": record.high,
        "n": record.n,
        "range": range_text(record, as_percent=in_percent(record.name, record)),
    }
