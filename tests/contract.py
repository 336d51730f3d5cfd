"""The contract suite: every method on one small table (`pegsynth.auditing.interference_cases`)."""

from __future__ import annotations

import polars as pl

import pegsynth
from pegsynth.auditing.interference_cases import (
    CATEGORIES,
    EDGES,
    ENTRIES,
    RULE,
    TOTAL,
    Entry,
    contract_schema,
    contract_table,
)

__all__ = [
    "CATEGORIES",
    "EDGES",
    "ENTRIES",
    "RULE",
    "TOTAL",
    "Entry",
    "breaks_the_rule",
    "contract_schema",
    "contract_table",
    "made",
]


def breaks_the_rule(frame: pl.DataFrame) -> int:
    return frame.filter((pl.col("a") == "x") & (pl.col("d") == "yes")).height


def made(entry: Entry, data=None, schema=None, **changes):
    """Synthesize with an entry's method and budget; seeded unless told otherwise."""
    data = contract_table() if data is None else data
    schema = contract_schema() if schema is None else schema
    return pegsynth.synthesize(data, schema, **{"rows": 200, "seed": 7} | entry.keywords | changes)
