"""Built-in data: invented tables and their reviewed schemas.

Hospital discharges, stays of people over time, and households with their members.
"""

from pegsynth.datasets.discharge import (
    discharge,
    discharge_batches,
    discharge_schema,
    reviewed_discharge_draft,
)
from pegsynth.datasets.units_with_rows import households, households_schema, panel, panel_schema

__all__ = [
    "discharge",
    "discharge_batches",
    "discharge_schema",
    "households",
    "households_schema",
    "panel",
    "panel_schema",
    "reviewed_discharge_draft",
]
