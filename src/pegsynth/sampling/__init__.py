"""Draw rows: seed pools, and Gibbs chains over perturbed blocks."""

from pegsynth.sampling.chains import Machine, Schedule, sample_rows
from pegsynth.sampling.seeds import FilePool, SeedPool, WeightedPool

__all__ = ["FilePool", "Machine", "Schedule", "SeedPool", "WeightedPool", "sample_rows"]
