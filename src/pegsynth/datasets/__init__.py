"""Built-in data: an invented table of hospital discharges and its reviewed schema."""

from pegsynth.datasets.discharge import discharge, discharge_batches
from pegsynth.datasets.discharge_codebook import discharge_schema

__all__ = ["discharge", "discharge_batches", "discharge_schema"]
