"""Virtual rows: Dirichlet priors, l-diversity, and the rules that restrict a draw."""

from pegsynth.mechanisms.prior import SCALE, Prior, dirichlet, diverse, uniform_weights
from pegsynth.mechanisms.rule_patterns import rule_tables

__all__ = ["SCALE", "Prior", "dirichlet", "diverse", "rule_tables", "uniform_weights"]
