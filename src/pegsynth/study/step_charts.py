"""Charts of a run that was written down: entries, their answers, and visits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pegsynth.report.chart_parts import axis, description, distinct, finish, kept_rows
from pegsynth.report.palette import HEAT, INK, PAPER, SERIES
from pegsynth.report.words import printable

if TYPE_CHECKING:
    from pegsynth.report.drawing import Chart

Row = Mapping[str, Any]

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
    sizes = {printable(str(row["facet"])): 0 for row in listed}
    for row in listed:
        place = printable(str(row["facet"]))
        sizes[place] = max(sizes[place], int(row["key"]) + 1)
    charts = []
    for facet in distinct(kept, "facet"):
        ours = [row for row in kept if row.get("facet") == facet]
        labels = distinct(ours, "label")
        keys = list(range(sizes[facet]))
        charts.append(
            alt.Chart()
            .transform_filter(alt.FieldEqualPredicate(field="facet", equal=facet))
            .mark_rect()
            .encode(
                x=alt.X(
                    field="x",
                    type="ordinal",
                    title=f"{len(keys)} entries",
                    axis=alt.Axis(labels=False, ticks=False),
                    scale=alt.Scale(domain=keys),
                ),
                y=alt.Y(field="label", type="nominal", sort=labels, title=None),
                color=alt.Color(
                    field="value",
                    type="quantitative",
                    title="probability",
                    scale=alt.Scale(type="sqrt", range=list(HEAT), domain=[0, 1]),
                ),
            )
            .properties(title=facet, width=width, height=max(50, 11 * len(labels)))
        )
    return finish(alt.concat(*charts, columns=columns), kept, "")


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
    charts = []
    for facet in distinct(kept, "facet"):
        ours = [row for row in kept if row["facet"] == facet]
        labels = distinct(ours, "category")
        base = (
            alt.Chart()
            .transform_filter(alt.FieldEqualPredicate(field="facet", equal=facet))
            .encode(
                y=alt.Y(
                    field="category",
                    type="nominal",
                    sort=labels,
                    title=None,
                    axis=alt.Axis(labelOverlap=False),
                )
            )
        )
        colour = alt.Color(
            field="series",
            type="nominal",
            title="perturbed share",
            scale=alt.Scale(domain=["not drawn", "drawn"], range=[HEAT[2], SERIES[1]]),
        )
        share: dict[str, Any] = {"title": "share (tick: counted)", "as_percent": True, "zero": True}
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
    return finish(alt.concat(*charts, columns=columns), kept, "")


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
    base = alt.Chart().encode(
        x=alt.X(
            field="column",
            type="nominal",
            sort=distinct(kept, "column"),
            title="row of the block",
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y(field="line", type="nominal", sort=distinct(kept, "line"), title=None),
    )
    names = distinct(kept, "series")
    room = width / max(1, len(distinct(kept, "column"))) - _GAP
    colour = alt.Color(
        field="series",
        type="nominal",
        title=None,
        scale=alt.Scale(domain=names, range=[HEAT[2], SERIES[1]][: len(names)]),
    )
    layers = alt.layer(
        base.mark_rect(stroke=PAPER, strokeWidth=2).encode(color=colour, description=description()),
        base.mark_text(fontSize=10, limit=room).encode(
            text=alt.Text(field="label", type="nominal")
        ),
    )
    return finish(layers, kept, "", width=width, height=44 * len(distinct(kept, "line")))
