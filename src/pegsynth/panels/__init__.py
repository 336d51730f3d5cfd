"""Panels: rows of a unit folded into one wide row before anything is counted, and unfolded (R24).

In goes a long table, out comes an ordinary one with a row for every unit; methods, rules and
numbers do not know that it was folded. Unfolding is post-processing of synthetic rows.
"""

from pegsynth.panels.counted_rows import CountedRows
from pegsynth.panels.folded_reader import folded_reader
from pegsynth.panels.folding import Folding
from pegsynth.panels.unfolding import Unfolding, unfolded_frames, unfolded_pairs

__all__ = [
    "CountedRows",
    "Folding",
    "Unfolding",
    "folded_reader",
    "unfolded_frames",
    "unfolded_pairs",
]
