"""How close a synthetic table is to its original, whoever made it.

`evaluate_codes` compares code matrices and returns `Metrics`, which ``metrics.json`` holds
and the report renders. `total_variation`, `tvd1`, `tvd2` and `tvd3` are the bare distances.
"""

from pegsynth.evaluation.distances import total_variation
from pegsynth.evaluation.records import Marginal, Metrics, Record
from pegsynth.evaluation.tables import evaluate_codes, tvd1, tvd2, tvd3

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
