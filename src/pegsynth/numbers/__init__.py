"""Numbers that stay numbers: private edges, measured shapes, values inside bins (R21).

`grid_schema` gives the public grids on which a table is counted (`count_grid`), `measure`
looks at the counts through a privacy filter, `settle` makes bins and shapes of what came
out, and `value_decoder` turns synthetic codes into values. Only `measure` crosses the
privacy boundary; `exact_tree` is for methods without a guarantee.
"""

from pegsynth.numbers.bin_shape import Shape
from pegsynth.numbers.edges_plan import NumbersPlan, check_budget, plan_numbers
from pegsynth.numbers.grid_counts import GridCounter, count_grid
from pegsynth.numbers.inside import InsideModel, fit_inside
from pegsynth.numbers.measured_numbers import measure
from pegsynth.numbers.number_grid import Grid, grid_feature, grid_of, grid_schema
from pegsynth.numbers.paying import (
    CodecCounts,
    PaidCodec,
    foreseen,
    paid_codec,
    wants_codec,
    wants_grids,
    wants_numbers,
)
from pegsynth.numbers.settle import Settled, bins_for, constant_numbers, settle
from pegsynth.numbers.shape_replicates import replicated_shapes, reweighed
from pegsynth.numbers.tree import NumberTree, exact_tree
from pegsynth.numbers.value_decoding import (
    AgreeingDecoder,
    ModelDecoder,
    decode_values,
    value_decoder,
)

__all__ = [
    "AgreeingDecoder",
    "CodecCounts",
    "Grid",
    "GridCounter",
    "InsideModel",
    "ModelDecoder",
    "NumberTree",
    "NumbersPlan",
    "PaidCodec",
    "Settled",
    "Shape",
    "bins_for",
    "check_budget",
    "constant_numbers",
    "count_grid",
    "decode_values",
    "exact_tree",
    "fit_inside",
    "foreseen",
    "grid_feature",
    "grid_of",
    "grid_schema",
    "measure",
    "paid_codec",
    "plan_numbers",
    "replicated_shapes",
    "reweighed",
    "settle",
    "value_decoder",
    "wants_codec",
    "wants_grids",
    "wants_numbers",
]
