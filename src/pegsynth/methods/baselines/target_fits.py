"""What a conditional model offers, and the checks that all of them share.

A model is fitted to a matrix of codes and answers, for one target feature, with the
probabilities of its categories given the other features of a row. A model gives no
privacy: everything in it comes straight from the rows it was fitted to.

Bayesian-bootstrap weights, for proper synthesis by refitting (R16).

Refitting a model with such weights is a draw of its parameters. It is no privacy
mechanism: weights are continuous numbers and the rows stay what they are.

What fitting any imputation model shares: rows kept, targets allowed, targets in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import DataError, ModelError, ParameterError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.progress import Progress, quiet
from pegsynth.random import Words
from pegsynth.runtime import Stop, run_each

if TYPE_CHECKING:
    from pegsynth.schema import Schema


Integers = NDArray[np.int64]
Values = NDArray[Any]
Arrays = dict[str, Values]


def check_rows(codes: Codes, schema: Schema, *, ignore: int | None = None) -> None:
    """Refuse codes that no category of the schema has; column `ignore` may hold anything."""
    counts = np.asarray(schema.category_counts)
    if codes.ndim != 2 or codes.shape[1] != len(counts):
        raise DataError(f"the code matrix must have one column for each of {len(counts)} features")
    if not np.issubdtype(codes.dtype, np.integer):
        raise DataError("the code matrix must hold whole numbers; encode the table first")
    if len(codes) == 0:
        return
    wrong = (codes.max(axis=0) >= counts) | (codes.min(axis=0) < 0)
    if ignore is not None:
        wrong[ignore] = False
    if wrong.any():
        name = schema.names[int(np.argmax(wrong))]
        raise DataError(f"feature {name!r}: the code matrix holds codes that the schema lacks")


def cell_starts(schema: Schema) -> Integers:
    """Return where the cells (feature, code) of every feature start; the last entry ends them."""
    return np.concatenate([[0], np.cumsum(schema.category_counts)]).astype(np.int64)


def pack_text(text: str) -> NDArray[np.uint8]:
    """Return a text as bytes, to be kept among arrays."""
    return np.frombuffer(text.encode(), dtype=np.uint8).copy()


def unpack_text(packed: Values) -> str:
    """Return the text of `pack_text`."""
    try:
        return np.asarray(packed, dtype=np.uint8).tobytes().decode()
    except UnicodeDecodeError:
        raise damaged() from None


def take(arrays: Arrays, name: str, dtype: type) -> Values:
    """Return one array of a saved model, refusing one that is missing or of another kind."""
    held = arrays.get(name)
    if held is None or held.ndim != 1 or held.dtype.kind != np.dtype(dtype).kind:
        raise damaged()
    return np.ascontiguousarray(held, dtype=dtype)


def by_target(parts: Mapping[int, Arrays]) -> Arrays:
    """Return the arrays of all targets together, each under the number of its target."""
    named = {f"{t}: {name}": each for t, part in parts.items() for name, each in part.items()}
    return {"targets": np.array(sorted(parts), dtype=np.int64), **named}


def of_targets(arrays: Arrays, schema: Schema) -> Iterator[tuple[int, Arrays]]:
    """Yield the targets of a saved model, features of the schema, with the arrays of each."""
    targets: list[int] = take(arrays, "targets", np.int64).tolist()
    known = all(0 <= target < len(schema.features) for target in targets)
    if not known or len(set(targets)) != len(targets):
        raise damaged()
    for target in targets:
        start = f"{target}: "
        yield target, {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}


def damaged() -> ModelError:
    """Return the error for arrays that are no model of this schema."""
    return ModelError(
        "the arrays of the imputation model are damaged or belong to another schema; "
        "restore the file, or fit the model again"
    )


_UNIT = 2.0**-53


def bayesian_bootstrap(rows: int, words: Words) -> Float64:
    """Return `rows` weights: Dirichlet(1, .., 1) shares times `rows`, so that they average 1.

    Parameters
    ----------
    rows
        Number of rows to be weighted.
    words
        Where the randomness comes from; one word per row is read.
    """
    if rows < 1:
        raise ParameterError("rows must be at least 1")
    # The middle of one of 2**53 equal intervals is never 0, so the logarithm is finite.
    uniform = ((words.take(rows) >> np.uint64(11)).astype(np.float64) + 0.5) * _UNIT
    waits = -np.log(uniform)
    weights: Float64 = waits * (rows / waits.sum())
    return weights


_Fitted = TypeVar("_Fitted")

STAGE = "models"
MOST_CATEGORIES = 1_000


@dataclass(frozen=True)
class RowsToFit:
    """Rows that conditional models are fitted to, and how the work is done.

    Parameters
    ----------
    codes, schema
        One line of codes per row, and the codebook they follow.
    weights
        Weight of every row; a weight of 2 is the same as the row twice.
    targets
        Features to be predicted.
    max_rows
        Most rows to fit to, None for all.
    threads
        How many targets are fitted at a time.
    progress
        Told of every finished target.
    """

    codes: Codes
    schema: Schema
    weights: Float64
    targets: tuple[int, ...]
    max_rows: int | None = None
    threads: int = 1
    progress: Progress = quiet

    @classmethod
    def of(
        cls,
        codes: Codes,
        schema: Schema,
        *,
        targets: Sequence[int] | None = None,
        sample_weight: Float64 | None = None,
        max_rows: int | None = None,
    ) -> RowsToFit:
        """Check rows; all features are targets and weights are 1 where nothing else is said.

        Rows of weight 0 are left out; of the others at most `max_rows` are kept, evenly spaced.
        """
        check_rows(codes, schema)
        if len(codes) == 0:
            raise DataError("an imputation model needs at least one row to be fitted to")
        chosen = tuple(range(len(schema.features)) if targets is None else targets)
        for target in chosen:
            count = schema.category_counts[target]
            if count > MOST_CATEGORIES:
                raise ParameterError(
                    f"feature {schema.names[target]!r} has {count:,} categories; an imputation "
                    f"model predicts at most {MOST_CATEGORIES:,}. Group its categories in the "
                    "schema, or use a method of the pegs family"
                )
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        kept = np.flatnonzero(weights > 0)
        kept = kept[spaced_rows(len(kept), max_rows)]
        return cls(codes[kept], schema, weights[kept], chosen, max_rows)

    def fit_each(
        self, targets: Sequence[int], fit: Callable[[int, Stop], _Fitted], *, threads: int
    ) -> dict[int, _Fitted]:
        """Fit targets, several at a time, and tell of every one that is done.

        Ctrl-C ends it at once; fits look at the `Stop` they are given to end soon after.
        """
        fitted: dict[int, _Fitted] = {}
        self.progress(STAGE, 0, len(targets))
        for target, result in run_each(targets, fit, threads=threads):
            fitted[target] = result
            self.progress(STAGE, len(fitted), len(targets))
        return {target: fitted[target] for target in sorted(fitted)}


def spaced_rows(rows: int, most: int | None) -> NDArray[np.intp]:
    """Return at most `most` row numbers, evenly spaced: a public rule that needs no chance."""
    if most is None or rows <= most:
        return np.arange(rows)
    return (np.arange(most) * rows) // most
