"""Figures from plain rows: each function takes dictionaries and gives an Altair chart.

Rows may have any keys and any text in them: what is drawn is copied under names of our own,
so no value is ever read as a field, a format or a link. Rows whose figure is missing (None or
NaN) are left out. `save_chart` writes a chart as SVG and as PNG, without a network.
"""

from pegsynth.report.chart_bars import bars, histogram_grid
from pegsynth.report.chart_intervals import forest_plot, lines_with_intervals
from pegsynth.report.chart_maps import heat_map, risk_utility_map
from pegsynth.report.drawing import save_chart, svg_of

__all__ = [
    "bars",
    "forest_plot",
    "heat_map",
    "histogram_grid",
    "lines_with_intervals",
    "risk_utility_map",
    "save_chart",
    "svg_of",
]
