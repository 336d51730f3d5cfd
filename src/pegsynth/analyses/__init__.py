"""Declared analyses: what a release is to hold is measured, and rows are calibrated to it (R26).

`settle_declared` says, from the schema alone, which tables are measured and which sums; a
`SumDesign` says what one row adds to each sum, in integers, and by how much at most.
"""

from pegsynth.analyses.declared_plan import DeclaredPlan, settle_declared
from pegsynth.analyses.terms import Block, Design, Part, design_of

__all__ = [
    "Block",
    "DeclaredPlan",
    "Design",
    "Part",
    "design_of",
    "settle_declared",
]
