"""Valid inference from several synthetic datasets (R16): one estimate, one variance each."""

from pegsynth.inference.combine import Combined, combine
from pegsynth.inference.pooled import Pooled, pooled
from pegsynth.inference.rules import RULES, Rule

__all__ = ["RULES", "Combined", "Pooled", "Rule", "combine", "pooled"]
