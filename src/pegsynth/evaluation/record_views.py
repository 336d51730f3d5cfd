"""Measured figures to look at: a dataframe, a picture, a short card for a notebook.

Goes in: records, as any measure gives them. Everything that comes out holds figures of
the original table and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.views import CONFIDENTIAL, Picture, card, table

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.evaluation.records import Cumulative, Marginal, Record

FOUND, BASELINE = "synthetic tables", "baseline"
_COLUMNS = (
    "name",
    "subject",
    "value",
    "low",
    "high",
    "baseline",
    "better",
    "n",
    "note",
    "no_power",
)
_FIGURES = ("value", "low", "high", "baseline")
_SHOWN = ("figure", "subject", "value", "low", "high", "baseline", "better")
_MOST_PANELS = 40


def records_frame(records: Sequence[Record]) -> pl.DataFrame:
    """Return one line for each record; a figure that could not be computed is null."""
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(_COLUMNS, pl.String)
    kinds |= dict.fromkeys(_FIGURES, pl.Float64) | {"n": pl.Int64}
    lines = [msgspec.structs.asdict(record) for record in records]
    return pl.DataFrame({name: [line[name] for line in lines] for name in _COLUMNS}, schema=kinds)


def records_picture(records: Sequence[Record], name: str | None = None) -> Picture:
    """Draw figures beside their baselines, each on a scale of its own.

    Parameters
    ----------
    name
        A measure, which is then drawn for all its subjects, the worst first; by default the
        figures of the table as a whole.
    """
    chosen = [r for r in records if (r.name == name if name else not r.subject)]
    if name and not chosen:
        known = ", ".join(dict.fromkeys(record.name for record in records))
        raise ParameterError(f"there is no figure {name!r}; there are {known}")
    known_values = [record for record in chosen if record.value is not None]
    if name:
        known_values.sort(key=_badness, reverse=True)
    rows = [row for record in known_values[:_MOST_PANELS] for row in _rows(record, by=name)]
    title = f"{name} by subject" if name else "the figures of the table as a whole"
    return Picture(
        "forest_plot", rows, title, {"order": (FOUND, BASELINE), "zero": True}, confidential=True
    )


def marginal_picture(marginal: Marginal) -> Picture:
    """Draw the shares of a feature's categories side by side."""
    series = {"original": marginal.original, "synthetic": marginal.synthetic}
    rows = [
        {"category": category, "value": share, "series": name}
        for name, shares in series.items()
        for category, share in zip(marginal.categories, shares, strict=True)
    ]
    title = f"shares of the categories of {marginal.feature}"
    options = {"x_title": marginal.label or marginal.feature, "order": tuple(series)}
    return Picture("histograms", rows, title, options, confidential=True)


def cumulative_picture(cumulative: Cumulative) -> Picture:
    """Draw the distribution functions of a feature in both tables."""
    series = {"original": cumulative.original, "synthetic": cumulative.synthetic}
    rows = [
        {"x": value, "y": share, "series": name}
        for name, shares in series.items()
        for value, share in zip(cumulative.values, shares, strict=True)
    ]
    title = f"share of rows up to each value of {cumulative.feature}"
    options = {
        "x_title": cumulative.label or cumulative.feature,
        "y_title": "share of rows",
        "log_x": False,
        "log_y": False,
        "as_percent": True,
        "steps": True,
    }
    return Picture("curves", rows, title, options, confidential=True)


def records_card(
    title: str, records: Sequence[Record], *, first: Sequence[str] = (), lines: Sequence[str] = ()
) -> str:
    """Return a card of the figures of the table as a whole, those named in `first` before others.

    Figures of single features follow as far as there is space.
    """
    order = {name: place for place, name in enumerate(first)}
    known = [record for record in records if record.value is not None]
    known.sort(key=lambda record: (bool(record.subject), order.get(record.name, len(order))))
    rows = [
        (r.name, r.subject or "the whole table", r.value, r.low, r.high, r.baseline, r.better)
        for r in known
    ]
    missing = len(records) - len(known)
    said = [*lines, f"{len(known):,} figures; {missing:,} could not be computed (see their notes)."]
    return card(title, said, table=table(_SHOWN, rows), warning=CONFIDENTIAL)


def _badness(record: Record) -> float:
    value = record.value or 0.0
    return value if record.better == "lower" else -value


def _rows(record: Record, *, by: str | None) -> list[dict[str, Any]]:
    """Return a record as rows of a forest plot: the figure, and what it is held against."""
    label = (record.subject or "the whole table") if by else record.name
    found = {"label": label, "value": record.value, "series": FOUND}
    if record.low is not None and record.high is not None:
        found |= {"low": record.low, "high": record.high}
    if record.baseline is None:
        return [found]
    return [found, {"label": label, "value": record.baseline, "series": BASELINE}]
