"""Features side by side: categories as bars, and the errors of pairs as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegsynth.publishing.report.figure import Figure, table_of
from pegsynth.publishing.report.measures import figure_text
from pegsynth.publishing.report.wording import percent, short, short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Marginal, Record
    from pegsynth.publishing.report.wording import Lookup

SHOWN, FOLDED = 30, 200
OPEN_FEATURES, MOST_FEATURES = 40, 1000
_FEWEST = 3
# Rows of bars that a page of less than 3 MB can hold, open and folded away.
_ROWS_OPEN, _ROWS_FOLDED = 2400, 1600
_COMMON = 0.1
MOST_PAIRED = 30
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_EXCESS = (
    "The same with what a plain resample of the original would show taken off; nothing is "
    "left below zero."
)
_WIDTH = 250
_PAIR_COLUMNS = ("Features", "Rows out of place", "Plain resample", "Above it")


def feature_cards(found: Lookup) -> dict[str, Any]:
    """Arrange all features: those to show, those to fold away, and the rule for it.

    Beyond `OPEN_FEATURES` features the ones furthest above their floor are shown and the
    others folded away, features with one category last; beyond `MOST_FEATURES` these are left
    out. With many features each
    shows fewer categories, so that the page stays small.
    """
    marginals = found.metrics.marginals
    constant = found.constant()
    furthest = sorted(
        range(len(marginals)),
        key=lambda i: (
            marginals[i].feature in constant,
            -_above_floor(found.record("tvd1", marginals[i].feature)),
            i,
        ),
    )
    kept = furthest[:MOST_FEATURES]
    count = max(1, len(kept))
    shown = max(_FEWEST, min(SHOWN, _ROWS_OPEN // count))
    folded = min(FOLDED, _ROWS_FOLDED // count)
    cards = {i: bar_table(found, marginals[i], shown=shown, folded=folded) for i in sorted(kept)}
    first = set(kept[:OPEN_FEATURES])
    return {
        "open": [card | {"place": i} for i, card in cards.items() if i in first],
        "folded": [card | {"place": i} for i, card in cards.items() if i not in first],
        "left_out": len(marginals) - len(kept),
    }


def bar_table(
    found: Lookup, marginal: Marginal, *, shown: int = SHOWN, folded: int = FOLDED
) -> dict[str, Any]:
    """Arrange one feature: codes to show, codes to fold away, and those that are summed.

    The commonest categories are shown, in the order of the codebook; the next ones are
    folded away, and what is left is given as one sum.
    """
    by_size = _by_size(marginal)
    scale = max((*marginal.original, *marginal.synthetic), default=0.0) or 1.0
    return {
        "name": short(marginal.feature),
        "marginal": marginal,
        "shown": sorted(by_size[:shown]),
        "folded": sorted(by_size[shown : shown + folded]),
        "more": max(0, len(by_size) - shown),
        "others": by_size[shown + folded :],
        "scale": scale,
        "digits": 1 if scale >= _COMMON else 2,
        "record": found.record("tvd1", marginal.feature),
    }


def feature_figures(found: Lookup) -> list[Figure]:
    """Draw each feature as upright bars, for files; the page has them as tables of bars."""
    return [
        _figure(place, marginal) for place, marginal in enumerate(found.metrics.marginals, start=1)
    ]


def _figure(place: int, marginal: Marginal) -> Figure:
    by_size = _by_size(marginal)
    codes = sorted(by_size[:SHOWN])
    labels = list(short_labels(f"{marginal.categories[c]}" for c in codes).values())
    sides = (("original", marginal.original), ("synthetic", marginal.synthetic))
    rows = [
        {"category": label, "value": shares[code], "series": series}
        for code, label in zip(codes, labels, strict=True)
        for series, shares in sides
    ]
    title = short(marginal.feature)
    if len(by_size) > SHOWN:
        title += f" (the {SHOWN} commonest of {len(by_size):,} categories)"
    return Figure(
        f"feature-{place:03d}",
        title,
        "",
        "histograms",
        rows,
        {"order": ("original", "synthetic"), "title": title},
    )


def _above_floor(record: Record | None) -> float:
    if record is None or record.value is None:
        return 0.0
    return record.value - (record.baseline or 0.0)


def _by_size(marginal: Marginal) -> list[int]:
    original, synthetic = marginal.original, marginal.synthetic
    return sorted(
        range(len(original)), key=lambda code: (-max(original[code], synthetic[code]), code)
    )


def pair_figures(found: Lookup) -> list[Figure]:
    """Draw total variation of all two-way tables, as it is and above its floor.

    Beyond `MOST_PAIRED` features those with the largest mean error above the floor are
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
    look = {
        "order": list(labels.values()),
        "bounds": STEPS,
        "y_title": "Share of the rows",
        "as_percent": True,
        "width": _WIDTH,
    }
    rows = sorted(ours, key=lambda pair: -_above_floor(pair[2]))
    return [
        Figure(
            "pairs",
            "Rows out of place, by pair",
            _rule(pairs, features, len(constant)),
            "heat_map",
            [_cell(labels[a], labels[b], r) for a, b, r in ours],
            look,
            table_of(_PAIR_COLUMNS, [_line(a, b, r) for a, b, r in rows]),
        ),
        Figure(
            "pairs-excess",
            "Above a plain resample, by pair",
            _EXCESS,
            "heat_map",
            [_cell(labels[a], labels[b], r, excess=True) for a, b, r in ours],
            look,
        ),
    ]


def worst(found: Lookup, name: str, count: int) -> list[Record]:
    """List the pairs that lie furthest above their floor, without features of one category."""
    constant = found.constant()
    left_out = {record.subject for a, b, record in found.pairs(name) if {a, b} & constant}
    ours = [
        record
        for record in found.subjects(name)
        if record.value is not None and record.subject not in left_out
    ]
    return sorted(ours, key=lambda record: -_above_floor(record))[:count]


def _shown(pairs: list[tuple[str, str, Record]]) -> list[str]:
    totals: dict[str, float] = {}
    for first, second, record in pairs:
        for feature in (first, second):
            totals[feature] = totals.get(feature, 0.0) + _above_floor(record)
    furthest = sorted(totals, key=lambda feature: -totals[feature])[:MOST_PAIRED]
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


def _cell(first: str, second: str, record: Record, *, excess: bool = False) -> dict[str, object]:
    value, floor = record.value or 0.0, record.baseline or 0.0
    text = f"{first} and {second}: {percent(value)} out of place, plain resample {percent(floor)}"
    if excess:
        value = max(value - floor, 0.0)
        text = f"{first} and {second}: {percent(value)} above a plain resample"
    return {"column": first, "line": second, "value": value, "text": text}


def _line(first: str, second: str, record: Record) -> tuple[str, str, str, str]:
    return (
        f"{short(first)}, {short(second)}",
        figure_text(record.value, as_percent=True),
        figure_text(record.baseline, as_percent=True),
        figure_text(max(_above_floor(record), 0.0), as_percent=True),
    )
