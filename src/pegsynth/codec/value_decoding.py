"""Codes to values: measured shapes inside bins, and ranks that a model gives (R21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import agreeing_shapes, bin_counts
from pegsynth.codec.codec import Decoder
from pegsynth.codec.inside import InsideModel, fit_inside
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.random import RandomStream
from pegsynth.schema.schema import Schema

Words = NDArray[np.uint64]
Mode = Literal["model", "values"]

CHUNK_ROWS = 1 << 16
_UNITS = 2.0**53
_SHIFT = np.uint64(11)


class ModelDecoder(Decoder):
    """A decoder whose values inside bins follow a model of all features.

    Every row has words of its own. Few rows are decoded one by one; as many as were fitted are
    ranked among themselves (`InsideModel.ranks`).

    Parameters
    ----------
    schema
        The settled schema.
    shapes
        Shapes inside bins, by name.
    model
        What `fit_inside` made of synthetic codes.
    options
        As for `Decoder`.
    """

    def __init__(
        self, schema: Schema, shapes: Mapping[str, Shape], model: InsideModel, **options: Any
    ) -> None:
        super().__init__(schema, how="values", shapes=shapes, **options)
        self._model = model
        self._places = [self._word_of[name] for name in model.names]

    def words_needed(self, rows: int) -> int:
        """Random words that `decode` takes: one per number, and those of its scores."""
        return rows * (len(self._word_of) + self._model.words_per_row)

    def decode(self, codes: Codes, words: Words | None = None) -> pl.DataFrame:
        """Return the table that a code matrix stands for; see `Decoder.decode`."""
        needed = self.words_needed(len(codes))
        if words is None or len(words) < needed:
            raise ParameterError(f"decoding {len(codes)} rows takes {needed} random words")
        lines = words[:needed].reshape(len(codes), -1)
        draws = lines[:, : len(self._word_of)].copy()
        sweeps = np.ascontiguousarray(lines[:, len(self._word_of) :])
        ranks = self._model.ranks(codes, sweeps, draws[:, self._places])
        draws[:, self._places] = (ranks * _UNITS).astype(np.uint64) << _SHIFT
        return super().decode(codes, draws.reshape(-1))


class AgreeingDecoder(Decoder):
    """A decoder whose means agree with clipped sums, for the rows that it decodes at once.

    It serves where nobody sees the first rows of a table before the others are decoded.

    Parameters
    ----------
    schema
        The settled schema.
    shapes
        Shapes inside bins, by name.
    options
        As for `Decoder`.
    """

    def __init__(self, schema: Schema, shapes: Mapping[str, Shape], **options: Any) -> None:
        super().__init__(schema, how="values", shapes=shapes, **options)
        self._book, self._shapes, self._options = schema, shapes, options

    def counted(self, codes: Codes) -> Int64:
        """Count rows by their bins; counts of parts of a table add up."""
        return bin_counts(self._shapes, self._book, codes)

    def agreeing(self, counts: Int64) -> Decoder:
        """Return a decoder for a table with these counts, whatever parts it is decoded in."""
        shapes = agreeing_shapes(self._shapes, self._book, counts)
        return Decoder(self._book, how="values", shapes=shapes, **self._options)

    def decode(self, codes: Codes, words: Words | None = None) -> pl.DataFrame:
        """Return the table that a code matrix stands for; see `Decoder.decode`."""
        return self.agreeing(self.counted(codes)).decode(codes, words)


def value_decoder(
    schema: Schema,
    shapes: Mapping[str, Shape],
    sample: Codes,
    stream: RandomStream,
    *,
    mode: Mode = "model",
    **options: Any,
) -> Decoder:
    """Return the decoder of a settled schema.

    Parameters
    ----------
    sample
        Synthetic codes that a model is fitted to; means agree with clipped sums for them.
    mode
        "model": ranks inside bins follow a model of all features; "values": they are drawn
        one by one.
    """
    if mode not in ("model", "values"):
        raise ParameterError(f'mode is "model" or "values", not {mode!r}')
    shapes = agreeing_shapes(shapes, schema, bin_counts(shapes, schema, sample))
    model = fit_inside(sample, schema, shapes, stream) if mode == "model" else None
    if model is None:
        return Decoder(schema, how="values", shapes=shapes, **options)
    return ModelDecoder(schema, shapes, model, **options)


def decode_values(
    codes: Codes,
    schema: Schema,
    shapes: Mapping[str, Shape],
    stream: RandomStream,
    *,
    mode: Mode = "model",
    **options: Any,
) -> pl.DataFrame:
    """Return the table of a whole code matrix, decoded chunk by chunk."""
    decoder = value_decoder(schema, shapes, codes, stream, mode=mode, **options)
    words = stream.substream()
    frames = []
    for start in range(0, max(len(codes), 1), CHUNK_ROWS):
        chunk = codes[start : start + CHUNK_ROWS]
        frames.append(decoder.decode(chunk, words.take(decoder.words_needed(len(chunk)))))
    return pl.concat(frames)
