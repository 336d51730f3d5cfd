"""Which conditional models an imputation method fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.random import RandomStream

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.methods.baselines.sequential_draws import ConditionalModel
    from pegsynth.methods.stored_model import Arrays
    from pegsynth.progress import Progress
    from pegsynth.schema import Schema


Kind = Literal["regressions", "tree", "forest"]

_KINDS: dict[str, Kind] = {
    "mi": "regressions",
    "pmi": "regressions",
    "cart": "tree",
    "forest": "forest",
}


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

    Regressions of long tables are fitted to as many rows as the schema allows, and those of a
    table without rows by `pmi` to a public one. A refusal would depend on the number of rows,
    which `pmi` must not; any fit will do (R8).
    """
    from pegsynth.methods.baselines.glm_fit import MOST_CELLS, fit_glm
    from pegsynth.methods.baselines.tree_fit import fit_cart, fit_forest

    if method == "pmi" and not len(codes):
        codes = np.zeros((1, len(schema.features)), dtype=codes.dtype)
    words, kind = stream.substream(), _KINDS[method]
    told: dict[str, Any] = {"sample_weight": sample_weight, "progress": progress}
    if kind == "regressions":
        most = max(MOST_CELLS // max(schema.category_counts), 1)
        return fit_glm(codes, schema, max_rows=most, threads=threads, **told)
    if kind == "tree":
        return fit_cart(codes, schema, words=words, threads=threads, **told)
    return fit_forest(codes, schema, words=words, **told)


def load_conditionals(arrays: Arrays, method: str, schema: Schema) -> ConditionalModel:
    """Rebuild fitted models from their arrays."""
    from pegsynth.methods.baselines.glm import GlmModel
    from pegsynth.methods.baselines.trees import TreeModel

    if not arrays:
        raise ModelError("it does not hold what its method needs")
    held = GlmModel if _KINDS[method] == "regressions" else TreeModel
    model: ConditionalModel = held.from_arrays(arrays, schema)
    return model
