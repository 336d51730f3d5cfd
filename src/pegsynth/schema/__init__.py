"""The public codebook: features, categories, codes, rules."""

from pegsynth.schema.feature import Feature
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema

__all__ = ["Feature", "Rule", "Schema"]
