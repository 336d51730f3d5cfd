"""Valid inference from synthetic datasets (R16, R28): one estimate, one variance each."""

from pegsynth.inference.combine import Combined, combine
from pegsynth.inference.combining_rules import RULES, Floor, Rule
from pegsynth.inference.pooled import pooled
from pegsynth.inference.pooled_result import Pooled, WaldTest, anova

__all__ = [
    "RULES",
    "Combined",
    "Floor",
    "Pooled",
    "Rule",
    "WaldTest",
    "anova",
    "combine",
    "pooled",
]
