"""Which conditional models an imputation method fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.random import RandomStream

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.methods.stored_model import Arrays
    from pegsynth.progress import Progress
    from pegsynth.sampling.sequential_draws import ConditionalModel
    from pegsynth.schema import Schema

_REGRESSIONS = ("mi", "pmi")


def fit_conditionals(
    codes: Codes,
    schema: Schema,
    method: str,
    stream: RandomStream,
    *,
    threads: int,
    progress: Progress,
    sample_weight: NDArray[np.float64] | None = None,
) -> ConditionalModel:
    """Fit every feature given the others: regressions (mi, pmi) or trees (cart, forest).

    Regressions of long tables are fitted to as many rows as the schema allows. A refusal
    would depend on the number of rows, which `pmi` must not; any fit will do (R8).
    """
    words = stream.substream()
    if method in _REGRESSIONS:
        from pegsynth.imputation import fit_glm
        from pegsynth.imputation.glm_fit import MOST_CELLS

        regressions: ConditionalModel = fit_glm(
            codes,
            schema,
            sample_weight=sample_weight,
            max_rows=max(MOST_CELLS // max(schema.category_counts), 1),
            threads=threads,
            progress=progress,
        )
        return regressions
    from pegsynth.imputation import fit_cart, fit_forest

    trees: ConditionalModel
    if method == "cart":
        trees = fit_cart(
            codes,
            schema,
            words=words,
            sample_weight=sample_weight,
            threads=threads,
            progress=progress,
        )
    else:
        trees = fit_forest(
            codes, schema, words=words, sample_weight=sample_weight, progress=progress
        )
    return trees


def load_conditionals(arrays: Arrays, method: str, schema: Schema) -> ConditionalModel:
    """Rebuild fitted models from their arrays."""
    from pegsynth.imputation import GlmModel, TreeModel

    if not arrays:
        raise ModelError("it does not hold what its method needs")
    kind = GlmModel if method in _REGRESSIONS else TreeModel
    model: ConditionalModel = kind.from_arrays(arrays, schema)
    return model
