"""`pegs-once`: noisy tables are released once, and any number of rows is drawn from them (R11).

`_fit` tells the story. Others import from here; the modules of this room are its own.
"""

from pegsynth.methods.released._asked_counts import asked_frame, check_asked
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._calibration import CALIBRATED_ROWS, OVERSAMPLED, Calibration
from pegsynth.methods.released._declared import (
    AnalysedTable,
    CodedValues,
    ValueTable,
    affordable_tables,
    analysed_tables,
    declared_costs,
    labels_of_declared,
    settle_declared,
)
from pegsynth.methods.released._draw import released_total
from pegsynth.methods.released._fit import Work
from pegsynth.methods.released._pegs_once import PEGS_ONCE
from pegsynth.methods.released._pooled import fit_pooled
from pegsynth.methods.released._release import ReleasedPlan, fit_released
from pegsynth.methods.released._replicates import LEAST_REPLICATES
from pegsynth.methods.released._row_pool import Features, cell_count
from pegsynth.methods.released._row_replicates import FITTED_ROWS, Replicates, Signs, bounded
from pegsynth.methods.released._shape_replicates import replicated_shapes, reweighed
from pegsynth.methods.released._sum_design import SumCounter, SumDesign
from pegsynth.methods.released._supported import Support, supported
from pegsynth.methods.released._values import (
    CountedTable,
    NoisyTable,
    Released,
    TableCounter,
    level_counts,
)

__all__ = [
    "CALIBRATED_ROWS",
    "FITTED_ROWS",
    "LEAST_REPLICATES",
    "OVERSAMPLED",
    "PEGS_ONCE",
    "AnalysedTable",
    "Calibration",
    "CodedValues",
    "CountedTable",
    "Features",
    "NoisyTable",
    "Released",
    "ReleasedPlan",
    "Replicates",
    "Signs",
    "Steps",
    "SumCounter",
    "SumDesign",
    "Support",
    "TableCounter",
    "ValueTable",
    "Work",
    "affordable_tables",
    "analysed_tables",
    "asked_frame",
    "bounded",
    "cell_count",
    "check_asked",
    "declared_costs",
    "fit_pooled",
    "fit_released",
    "labels_of_declared",
    "level_counts",
    "released_total",
    "replicated_shapes",
    "reweighed",
    "settle_declared",
    "supported",
]
