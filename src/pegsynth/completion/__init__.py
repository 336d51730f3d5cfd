"""Missing values of synthetic rows, imputed from synthetic rows (R23).

A synthetic table goes in, r completed versions of it come out. Nothing here can open a table,
read a model or ask a method: what is not in the synthetic rows cannot get into the completed
ones, so that completing costs nothing.
"""

from pegsynth.completion.chained_trees import Filled, fill
from pegsynth.completion.completed_tables import completed_frames
from pegsynth.completion.holes import check_completable, missing_cells

__all__ = ["Filled", "check_completable", "completed_frames", "fill", "missing_cells"]
