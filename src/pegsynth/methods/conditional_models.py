"""Which conditional models an imputation method fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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


class _Fit(Protocol):
    """One kind of conditional model, fitted to all features."""

    def __call__(
        self,
        codes: Codes,
        schema: Schema,
        stream: RandomStream,
        *,
        sample_weight: NDArray[np.float64] | None,
        threads: int,
        progress: Progress,
    ) -> ConditionalModel: ...


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
    """Fit every feature given the others: regressions (mi, pmi) or trees (cart, forest)."""
    return _FITS[method](
        codes, schema, stream, sample_weight=sample_weight, threads=threads, progress=progress
    )


def load_conditionals(arrays: Arrays, method: str, schema: Schema) -> ConditionalModel:
    """Rebuild fitted models from their arrays."""
    from pegsynth.imputation import GlmModel, TreeModel

    if not arrays:
        raise ModelError("it does not hold what its method needs")
    kind = GlmModel if _FITS[method] is _regressions else TreeModel
    model: ConditionalModel = kind.from_arrays(arrays, schema)
    return model


def _regressions(
    codes: Codes,
    schema: Schema,
    stream: RandomStream,
    *,
    sample_weight: NDArray[np.float64] | None,
    threads: int,
    progress: Progress,
) -> ConditionalModel:
    """Fit regressions to as many rows as the schema allows.

    A refusal would depend on the number of rows, which `pmi` must not; any fit will do (R8).
    """
    from pegsynth.imputation import fit_glm
    from pegsynth.imputation.glm_fit import MOST_CELLS

    stream.substream()
    return fit_glm(
        codes,
        schema,
        sample_weight=sample_weight,
        max_rows=max(MOST_CELLS // max(schema.category_counts), 1),
        threads=threads,
        progress=progress,
    )


def _trees(
    codes: Codes,
    schema: Schema,
    stream: RandomStream,
    *,
    sample_weight: NDArray[np.float64] | None,
    threads: int,
    progress: Progress,
) -> ConditionalModel:
    from pegsynth.imputation import fit_cart

    return fit_cart(
        codes,
        schema,
        words=stream.substream(),
        sample_weight=sample_weight,
        threads=threads,
        progress=progress,
    )


def _forest(
    codes: Codes,
    schema: Schema,
    stream: RandomStream,
    *,
    sample_weight: NDArray[np.float64] | None,
    threads: int,
    progress: Progress,
) -> ConditionalModel:
    from pegsynth.imputation import fit_forest

    return fit_forest(
        codes, schema, words=stream.substream(), sample_weight=sample_weight, progress=progress
    )


_FITS: dict[str, _Fit] = {
    "mi": _regressions,
    "pmi": _regressions,
    "cart": _trees,
    "forest": _forest,
}
