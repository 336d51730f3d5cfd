"""How close a synthetic table is to its original, whoever made it.

`evaluate_codes` compares code matrices and returns `Metrics`, which ``metrics.json`` holds
and the report renders. `total_variation`, `tvd1`, `tvd2` and `tvd3` are the bare distances.
"""

from pegsynth.evaluate.distances import total_variation
from pegsynth.evaluate.records import Marginal, Metrics, Record
from pegsynth.evaluate.tables import evaluate_codes, tvd1, tvd2, tvd3

__all__ = [
    "Marginal",
    "Metrics",
    "Record",
    "evaluate_codes",
    "total_variation",
    "tvd1",
    "tvd2",
    "tvd3",
]
