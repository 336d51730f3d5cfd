"""What a conditional model offers, and the checks that all of them share.

A model is fitted to a matrix of codes and answers, for one target feature, with the
probabilities of its categories given the other features of a row. A model gives no
privacy: everything in it comes straight from the rows it was fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes
from pegsynth.errors import DataError, ModelError

if TYPE_CHECKING:
    from pegsynth.schema import Schema

Integers = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


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


def unpack_text(packed: NDArray[Any]) -> str:
    """Return the text of `pack_text`."""
    try:
        return np.asarray(packed, dtype=np.uint8).tobytes().decode()
    except UnicodeDecodeError:
        raise damaged() from None


def take(arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any) -> NDArray[Any]:
    """Return one array of a saved model, refusing one that is missing or of another kind."""
    held = arrays.get(name)
    if held is None or held.ndim != 1 or held.dtype.kind != np.dtype(dtype).kind:
        raise damaged()
    return np.ascontiguousarray(held, dtype=dtype)


def damaged() -> ModelError:
    """Return the error for arrays that are no model of this schema."""
    return ModelError(
        "the arrays of the imputation model are damaged or belong to another schema; "
        "restore the file, or fit the model again"
    )
