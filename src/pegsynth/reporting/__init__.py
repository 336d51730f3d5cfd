"""Saved results as a page to read: nothing here sees data or computes from it.

`render` gives the report of one comparison, `write_figures` its figures as files,
`render_study` a page made of `Section`, `Figure` and `Table`; `report.charts` draws.
"""

from pegsynth.reporting.figure import Figure, Table
from pegsynth.reporting.html import render
from pegsynth.reporting.page import Section, render_study
from pegsynth.reporting.saving import write_figures

__all__ = ["Figure", "Section", "Table", "render", "render_study", "write_figures"]
