"""The confidential table as code batches, with every unit's rows bounded first (R12).

When the schema names a unit, at most k of its rows are kept, chosen at random by the
secure stream; k is public. A row's fate depends on its own unit alone, so adding or
removing a unit changes the rows of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import DataError
from pegsynth.random import RandomStream
from pegsynth.schema.codec import Encoder, encode_table
from pegsynth.schema.dtypes import as_text

if TYPE_CHECKING:
    from pegsynth.io.read import TableReader
    from pegsynth.schema import Schema

Codes = NDArray[np.unsignedinteger[Any]]


def bounded_codes(
    reader: TableReader, schema: Schema, stream: RandomStream
) -> Callable[[], Iterator[Codes]]:
    """Return a function that streams the codes of the rows to count, as often as called."""
    if schema.unit is None:
        return lambda: encode_table(reader, schema)
    # Columns are checked before the unit column is read.
    Encoder(schema, source=reader.source, columns=reader.columns)
    kept = kept_rows(reader, schema.unit, schema.rows_per_unit, stream)

    def stream_kept() -> Iterator[Codes]:
        first = 0
        for codes in encode_table(reader, schema):
            chosen = codes[kept[first : first + len(codes)]]
            first += len(codes)
            if len(chosen):
                yield chosen

    return stream_kept


def kept_rows(
    reader: TableReader, unit: str, rows_per_unit: int, stream: RandomStream
) -> NDArray[np.bool_]:
    """Say for every row whether it is among the at most k kept of its unit."""
    units = pl.concat([as_text(batch.to_series()) for batch in reader.batches([unit])])
    blank = units.is_null() | (units.str.strip_chars() == "")
    if blank.any():
        raise DataError(
            f"{reader.source}: unit column {unit!r}: {int(blank.sum())} values are missing; every "
            "row must name its unit, so fill them in or drop these rows"
        )
    words = stream.substream().take(len(units))
    chosen = (
        pl.DataFrame({"unit": units, "word": words})
        .with_row_index("row")
        .sort("word")
        .group_by("unit", maintain_order=True)
        .head(rows_per_unit)
    )
    kept = np.zeros(len(units), dtype=bool)
    kept[chosen.get_column("row").to_numpy()] = True
    return kept
