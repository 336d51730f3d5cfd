"""Utility and disclosure risk of synthetic tables, whoever made them.

`pegsynth.evaluate` takes tables and a schema and returns all measures as `Metrics`, which
``metrics.json`` holds and the report renders. `evaluate_codes` compares the one-, two- and
three-way tables of code matrices alone, and `total_variation` is the distance of two tables of
counts.
"""

from pegsynth.evaluation.records import Marginal, Metrics, Record
from pegsynth.evaluation.utility.distances import evaluate_codes, total_variation

__all__ = [
    "Marginal",
    "Metrics",
    "Record",
    "evaluate_codes",
    "total_variation",
]
