"""Conditional models fitted to codes: regressions, trees, forests (R8, R16).

They answer with the probabilities of one feature given the others, straight from the rows
they were fitted to; what a draw from them costs is for the perturbation to say.
"""

from pegsynth.imputation.glm import GlmModel
from pegsynth.imputation.glm_fit import fit_glm
from pegsynth.imputation.tree_fit import fit_cart, fit_forest
from pegsynth.imputation.trees import TreeModel
from pegsynth.imputation.weights import bayesian_bootstrap

__all__ = [
    "GlmModel",
    "TreeModel",
    "bayesian_bootstrap",
    "fit_cart",
    "fit_forest",
    "fit_glm",
]
