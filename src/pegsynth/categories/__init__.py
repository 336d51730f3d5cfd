"""Categories that nobody knows beforehand: found by noisy counts above a threshold (R29).

`CandidateCounts` counts the values of a table in bounded memory, `find_categories` looks at the
counts through a privacy filter, and `settled_categories` writes what was found into the schema.
Only `find_categories` crosses the privacy boundary; `frequent_categories` is for methods without
a guarantee.
"""

from pegsynth.categories.candidate_counts import MOST_BYTES, CandidateCounts, Part
from pegsynth.categories.finding import (
    CategoriesPlan,
    delta_for,
    find_categories,
    frequent_categories,
    plan_categories,
    private_names,
    provisional_categories,
    settled_categories,
)

__all__ = [
    "MOST_BYTES",
    "CandidateCounts",
    "CategoriesPlan",
    "Part",
    "delta_for",
    "find_categories",
    "frequent_categories",
    "plan_categories",
    "private_names",
    "provisional_categories",
    "settled_categories",
]
