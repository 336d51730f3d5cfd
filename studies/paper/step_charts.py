"""Charts of a run that was written down: entries, their answers, and visits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from pegsynth.publishing.report.charts import Kept, Look, Row, distinct, kept_rows
from pegsynth.publishing.report.drawing import (
    HEAT,
    INK,
    SERIES,
    Drawing,
    cut,
)
from pegsynth.publishing.report.panels import Frame, Key, Legend, Names, Numbers, Panel, Sheet
from pegsynth.publishing.report.wording import number, percent, printable

_GAP = 8
_PAIR = (HEAT[2], SERIES[1])


def entries(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw the distributions of entries as cells: keys across, categories downward.

    Rows have ``key`` (a number), ``category``, ``value`` (a probability) and ``facet``.
    """
    listed = list(rows)
    kept = kept_rows(listed, ("key", "category", "value"))
    # Entries without rows stay blank, and keep their place.
    sizes: dict[str, int] = {}
    for row in listed:
        place = printable(str(row["facet"]))
        sizes[place] = max(sizes.get(place, 0), int(row["key"]) + 1)

    def panel(facet: str) -> Panel:
        ours = [row for row in kept if row.get("facet") == facet]
        labels, wide = distinct(ours, "category"), 400 / sizes[facet]
        tall = max(50, 11 * len(labels)) / max(1, len(labels))

        def paint(frame: Frame) -> None:
            for row in ours:
                left, top = frame.left + row["key"] * wide, frame.y(row["category"]) - tall / 2
                frame.brush.box((left, top), (wide, tall), HEAT[_shade(row["value"])])

        across = Names((), f"{sizes[facet]} entries")
        return Panel(across, Names(labels), 400, tall * len(labels), paint, facet)

    ends = [(step / len(HEAT)) ** 2 for step in range(len(HEAT) + 1)]
    keys = [Key(f"{a:.2f} to {b:.2f}", HEAT[i]) for i, (a, b) in enumerate(pairwise(ends))]
    legend = Legend(keys, "probability")
    return Sheet(2, look.title, [legend]).arranged([panel(f) for f in distinct(kept, "facet")])


def _shade(probability: float) -> int:
    """Return the colour of a probability; small ones differ more than large ones."""
    return min(int(math.sqrt(probability) * len(HEAT)), len(HEAT) - 1)


def answers(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw what an entry answers with: counted and perturbed shares, and the drawn category.

    Rows have ``category``, ``perturbed``, ``counted``, ``series`` ("drawn" or "not drawn") and
    ``facet``.
    """
    kept = kept_rows(rows, ("category", "perturbed"))

    def panel(facet: str) -> Panel:
        ours = [row for row in kept if row["facet"] == facet]
        labels = distinct(ours, "category")
        shares = [row[key] for row in ours for key in ("perturbed", "counted") if key in row]
        x = Numbers.over(shares, title="share (tick: counted)", as_percent=True, zero=True)

        def paint(frame: Frame) -> None:
            for row in ours:
                at, end = frame.y(row["category"]), frame.x(row["perturbed"])
                fill = _PAIR[row["series"] == "drawn"]
                says = f"{row['category']}: {percent(row['perturbed'])}"
                frame.brush.box((frame.left, at - 4), (end - frame.left, 8), fill, says=says)
                if "counted" in row:
                    tick = frame.x(row["counted"])
                    frame.brush.line((tick, at - 5), (tick, at + 5), stroke=INK, stroke_width=2)

        return Panel(x, Names(labels), 210, max(150, 13 * len(labels)), paint, facet)

    legend = _legend("perturbed share", ["not drawn", "drawn"])
    return Sheet(3, look.title, [legend]).arranged([panel(f) for f in distinct(kept, "facet")])


def visits(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw the draws of a block: rows across, features downward, coloured by who answered.

    A label that is wider than its cell is cut and ends in an ellipsis. Rows have ``row``, ``line``
    (a feature), ``label`` (what was drawn), ``series`` (who answered) and ``text``.
    """
    kept: Kept = kept_rows(rows, ("row", "line"))
    places = list(dict.fromkeys(row["row"] for row in kept))
    columns, lines = [number(place) for place in places], distinct(kept, "line")
    series, wide = distinct(kept, "series"), 640 / max(1, len(places))

    def paint(frame: Frame) -> None:
        for row in kept:
            x, y = frame.x(number(row["row"])), frame.y(row["line"])
            fill = _PAIR[series.index(row["series"]) % 2]
            corner = (x - wide / 2 + 1, y - 21)
            frame.brush.box(corner, (wide - 2, 42), fill, says=row["text"])
            label = cut(row["label"], wide - _GAP)
            frame.brush.words((x, y + 4), label, fill=INK, font_size=10, text_anchor="middle")

    panel = Panel(
        Names(columns, "row of the block"), Names(lines), 640, 44 * max(1, len(lines)), paint
    )
    return Sheet(1, look.title, [_legend("", series)]).arranged([panel])


def _legend(title: str, names: list[str]) -> Legend:
    return Legend([Key(name, _PAIR[place % 2]) for place, name in enumerate(names)], title)
