"""Every figure of the report as SVG and as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.reporting.drawing import save_chart
from pegsynth.reporting.features import feature_figures
from pegsynth.reporting.figure import Figure, chart_of
from pegsynth.reporting.lookup import Lookup
from pegsynth.reporting.number_figures import number_figures
from pegsynth.reporting.pair_figures import pair_figures
from pegsynth.reporting.regression_figures import regression_figures
from pegsynth.reporting.risk_figures import risk_figures, risk_maps

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Metrics


def figures(metrics: Metrics, *, points: Sequence[Mapping[str, Any]] = ()) -> list[Figure]:
    """List every figure of the report, in its order."""
    found = Lookup(metrics)
    return [
        *feature_figures(found),
        *number_figures(found),
        *pair_figures(found),
        *regression_figures(found),
        *risk_figures(found),
        *risk_maps(found, points),
    ]


def write_figures(
    metrics: Metrics, folder: str | Path, *, points: Sequence[Mapping[str, Any]] = ()
) -> list[Path]:
    """Write every figure as SVG and as PNG.

    Parameters
    ----------
    metrics
        Saved results. The figures are made from real data: only the owner may read them.
    folder
        Where to write; it is made when missing.
    points
        More points for the first map, as `risk_maps` takes them.

    Raises
    ------
    OutputError
        The folder cannot be made or written to.
    """
    from pegsynth.io.atomic import output_error

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(target, error) from None
    written: list[Path] = []
    for figure in figures(metrics, points=points):
        written += save_chart(chart_of(figure), target / figure.name, mode=0o600)
    return written
