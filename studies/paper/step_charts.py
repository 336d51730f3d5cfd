"""Charts of a run that was written down: entries, their answers, and visits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pegsynth.publishing.report.chart_parts import (
    Row,
    axis,
    description,
    distinct,
    finish,
    kept_rows,
    nominal,
)
from pegsynth.publishing.report.drawing import HEAT, INK, PAPER, SERIES
from pegsynth.publishing.report.wording import printable

if TYPE_CHECKING:
    from pegsynth.publishing.report.drawing import Chart

_GAP = 8


def entries(rows: Iterable[Row], *, columns: int = 2, width: int = 400) -> Chart:
    """Draw the distributions of entries as cells: keys across, categories downward.

    Parameters
    ----------
    rows
        ``key`` (a number), ``category``, ``value`` (a probability) and ``facet``.
    """
    import altair as alt

    listed = list(rows)
    keys_of = {"x": "key", "label": "category", "value": "value", "facet": "facet"}
    kept = kept_rows(listed, keys_of, needed=("x", "label", "value"))
    # Entries without rows stay blank, and keep their place.
    sizes: dict[str, int] = {}
    for row in listed:
        place = printable(str(row["facet"]))
        sizes[place] = max(sizes.get(place, 0), int(row["key"]) + 1)
    scale = alt.Scale(type="sqrt", range=list(HEAT), domain=[0, 1])
    charts = []
    for facet in distinct(kept, "facet"):
        labels = distinct([row for row in kept if row.get("facet") == facet], "label")
        keys = list(range(sizes[facet]))
        cells = _panel(facet).mark_rect()
        encoded = cells.encode(
            x=alt.X(
                field="x",
                type="ordinal",
                title=f"{len(keys)} entries",
                axis=alt.Axis(labels=False, ticks=False),
                scale=alt.Scale(domain=keys),
            ),
            y=nominal(alt.Y, "label", labels),
            color=alt.Color(field="value", type="quantitative", title="probability", scale=scale),
        )
        height = max(50, 11 * len(labels))
        charts.append(encoded.properties(title=facet, width=width, height=height))
    return finish(alt.concat(*charts, columns=columns), kept)


def answers(rows: Iterable[Row], *, columns: int = 3, width: int = 210, height: int = 150) -> Chart:
    """Draw what an entry answers with: counted and perturbed shares, and the drawn category.

    Parameters
    ----------
    rows
        ``category``, ``perturbed``, ``counted``, ``drawn`` ("drawn" or "not drawn"), ``facet``.
    """
    import altair as alt

    keys = {"category": "category", "value": "perturbed", "original": "counted"}
    kept = kept_rows(rows, {**keys, "series": "drawn", "facet": "facet"})
    colour = _colour("perturbed share", ["not drawn", "drawn"])
    share: dict[str, Any] = {"title": "share (tick: counted)", "as_percent": True, "zero": True}
    charts = []
    for facet in distinct(kept, "facet"):
        labels = distinct([row for row in kept if row["facet"] == facet], "category")
        base = _panel(facet).encode(y=nominal(alt.Y, "category", labels, labelOverlap=False))
        charts.append(
            alt.layer(
                base.mark_bar().encode(x=axis(alt.X, "value", **share), color=colour),
                base.mark_tick(color=INK, thickness=2).encode(x=axis(alt.X, "original", **share)),
            ).properties(
                title=alt.TitleParams(facet.split(" | "), fontSize=11, limit=width),
                width=width,
                height=max(height, 13 * len(labels)),
            )
        )
    return finish(alt.concat(*charts, columns=columns), kept)


def visits(rows: Iterable[Row], *, width: int = 640) -> Chart:
    """Draw the draws of a block: rows across, features downward, coloured by who answered.

    A label that is wider than its cell is cut and ends in an ellipsis.

    Parameters
    ----------
    rows
        ``row``, ``feature``, ``drawn`` (a label), ``answer`` and ``text``.
    """
    import altair as alt

    keys = {"column": "row", "line": "feature", "label": "drawn", "series": "answer"}
    kept = kept_rows(rows, {**keys, "describe": "text"}, needed=("column", "line"))
    places, lines = distinct(kept, "column"), distinct(kept, "line")
    base = alt.Chart().encode(
        x=nominal(alt.X, "column", places, title="row of the block", labelAngle=0),
        y=nominal(alt.Y, "line", lines),
    )
    room = width / max(1, len(places)) - _GAP
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2)
    texts = base.mark_text(fontSize=10, limit=room)
    layers = alt.layer(
        cells.encode(color=_colour(None, distinct(kept, "series")), description=description()),
        texts.encode(text=alt.Text(field="label", type="nominal")),
    )
    return finish(layers, kept, width=width, height=44 * len(lines))


def _panel(facet: str) -> Any:
    """Return a chart of the rows of one facet."""
    import altair as alt

    return alt.Chart().transform_filter(alt.FieldEqualPredicate(field="facet", equal=facet))


def _colour(title: str | None, names: list[str]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=names, range=[HEAT[2], SERIES[1]][: len(names)])
    return alt.Color(field="series", type="nominal", title=title, scale=scale)
