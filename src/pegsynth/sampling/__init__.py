"""Draw rows: seed pools, Gibbs chains over perturbed blocks, and the trace of one row."""

from pegsynth.sampling.chains import Machine, Schedule, sample_rows
from pegsynth.sampling.seeds import FilePool, SeedPool, WeightedPool
from pegsynth.sampling.trace import TraceStep, trace_row

__all__ = [
    "FilePool",
    "Machine",
    "Schedule",
    "SeedPool",
    "TraceStep",
    "WeightedPool",
    "sample_rows",
    "trace_row",
]
