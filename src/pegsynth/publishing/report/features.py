"""Features side by side: the shares of every category as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegsynth.publishing.report.charts import histograms
from pegsynth.publishing.report.figure import Figure
from pegsynth.publishing.report.measures import figure_text
from pegsynth.publishing.report.wording import percent, short, short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Marginal
    from pegsynth.publishing.report.wording import Lookup

SHOWN, FOLDED = 30, 200
OPEN_FEATURES, MOST_FEATURES = 40, 1000
_FEWEST = 3
# Rows of bars that a page of less than 3 MB can hold, open and folded away.
_ROWS_OPEN, _ROWS_FOLDED = 2400, 1600
_COMMON = 0.1


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
        key=lambda i: (marginals[i].feature in constant, -_excess(found, marginals[i]), i),
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
    """Arrange one feature: rows to show, rows to fold away, and the sum of the others.

    The commonest categories are shown, in the order of the codebook; the next ones are
    folded away, and what is left is given as one sum.
    """
    original, synthetic = marginal.original, marginal.synthetic
    by_size = _by_size(marginal)
    others = by_size[shown + folded :]
    scale = max((*original, *synthetic), default=0.0) or 1.0
    digits = 1 if scale >= _COMMON else 2
    record = found.record("tvd1", marginal.feature)
    return {
        "name": short(marginal.feature),
        "label": short(marginal.label) if marginal.label else "",
        "rows": [_row(marginal, code, scale, digits) for code in sorted(by_size[:shown])],
        "folded": [
            _row(marginal, code, scale, digits) for code in sorted(by_size[shown : shown + folded])
        ],
        "more": max(0, len(by_size) - shown),
        "others": len(others),
        "others_original": percent(sum(original[code] for code in others), digits=digits),
        "others_synthetic": percent(sum(synthetic[code] for code in others), digits=digits),
        "distance": figure_text(record.value if record else None, as_percent=True),
        "floor": figure_text(record.baseline if record else None, as_percent=True),
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
        lambda: histograms(rows, order=("original", "synthetic"), title=title),
    )


def _excess(found: Lookup, marginal: Marginal) -> float:
    record = found.record("tvd1", marginal.feature)
    if record is None or record.value is None:
        return 0.0
    return record.value - (record.baseline or 0.0)


def _by_size(marginal: Marginal) -> list[int]:
    original, synthetic = marginal.original, marginal.synthetic
    return sorted(
        range(len(original)), key=lambda code: (-max(original[code], synthetic[code]), code)
    )


def _row(marginal: Marginal, code: int, scale: float, digits: int) -> dict[str, str]:
    original, synthetic = marginal.original[code], marginal.synthetic[code]
    return {
        "label": short(marginal.categories[code]),
        "original": percent(original, digits=digits),
        "synthetic": percent(synthetic, digits=digits),
        "original_width": f"{100 * original / scale:.2f}",
        "synthetic_width": f"{100 * synthetic / scale:.2f}",
    }
