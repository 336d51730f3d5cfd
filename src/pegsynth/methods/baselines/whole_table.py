"""What methods that keep the rows of the table have in common: fit, storage and plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegsynth.errors import ModelError
from pegsynth.methods.base import Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegsynth.methods.base import Codes, Rows
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.random import RandomStream, Words
    from pegsynth.schema import Schema

TABLE_CHUNK = 1 << 17


@dataclass(frozen=True)
class RowsFit:
    """All rows of the table; confidential."""

    rows: Codes = field(repr=False)


class ChunkSampler(Sampler):
    """Draws every table chunk by chunk, each chunk from random words of its own.

    Parameters
    ----------
    table
        Makes what draws the chunks of one table.
    """

    def __init__(
        self,
        schema: Schema,
        table: Callable[[RandomStream], Callable[[int, Words], NDArray[np.uint32]]],
    ) -> None:
        super().__init__()
        self._dtype, self._table = schema.code_dtype, table

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K tables."""
        from pegsynth.methods.baselines.sequential_draws import in_chunks

        return [
            (
                chunk.astype(self._dtype)
                for chunk in in_chunks(rows, stream, self._table(stream), chunk=TABLE_CHUNK)
            )
            for _ in range(datasets)
        ]


def matching(codes: Codes, clamped: Mapping[int, int]) -> Codes:
    """Return the rows that hold the given values."""
    import numpy as np

    chosen = np.ones(len(codes), dtype=bool)
    for feature, code in clamped.items():
        chosen &= codes[:, feature] == code
    return codes[chosen]


def store_rows(content: RowsFit) -> StoredModel:
    """Return what a model file holds of the rows."""
    from pegsynth.methods.stored_model import StoredModel, with_rows

    return StoredModel(arrays=with_rows({}, content.rows))


def load_rows(stored: StoredModel, schema: Schema) -> RowsFit:
    """Rebuild the rows, checked against the schema."""
    from pegsynth.methods.stored_model import stored_rows

    rows = stored_rows(stored.arrays, schema)
    if rows is None:
        raise ModelError("it does not hold what its method needs")
    return RowsFit(rows)
