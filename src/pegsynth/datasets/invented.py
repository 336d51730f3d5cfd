"""What invented tables are made of: seekable random draws, weights, and codebooks.

Every variable of every chunk of rows has a keystream of its own, and row r of the chunk
takes its word number r. A row is therefore the same however many rows follow it. Codebooks and
figures are files of this folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64
from pegsynth.schema import Feature, Schema
from pegsynth.schema.toml import loads

if TYPE_CHECKING:
    from pegsynth.random import RandomStream

Codes = NDArray[np.int64]

CHUNK_ROWS = 1 << 17
LOST = -1
"""What a number that is not written down is drawn as."""

_UNIT = 2.0**-53
# Group plus uniform must not round up to the next group.
_BELOW_ONE = 1.0 - 2.0**-40


class SeekableDraws:
    """The random numbers of one chunk of rows.

    Parameters
    ----------
    stream
        Source of words, seeded or not.
    chunk
        Number of the chunk.
    rows
        How many of its rows are wanted.
    names
        Every variable that will be drawn, in an order that fixes the keystreams.
    """

    def __init__(
        self, stream: RandomStream, *, chunk: int, rows: int, names: tuple[str, ...]
    ) -> None:
        self.rows = rows
        self._stream = stream
        self._numbers = {name: chunk * len(names) + k for k, name in enumerate(names)}

    @classmethod
    def chunks(
        cls, stream: RandomStream, rows: int, names: tuple[str, ...]
    ) -> Iterator[tuple[int, SeekableDraws]]:
        """Yield the numbers of one chunk of rows after the other, and where it starts."""
        for chunk, start in enumerate(range(0, rows, CHUNK_ROWS)):
            yield start, cls(stream, chunk=chunk, rows=min(CHUNK_ROWS, rows - start), names=names)

    def uniform(self, name: str) -> Float64:
        """One uniform number in [0, 1) per row; a name always gives the same numbers."""
        words = self._stream.substream(self._numbers[name]).take(self.rows)
        return np.asarray((words >> np.uint64(11)) * _UNIT, dtype=np.float64)

    def normal(self, name: str) -> Float64:
        """One standard normal number per row."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(name) + _UNIT / 2), dtype=np.float64)

    def chance(self, name: str, probability: NDArray[Any] | float) -> NDArray[np.bool_]:
        """Whether an event of the given probability happens, row by row."""
        return np.asarray(self.uniform(name) < probability)

    def category(
        self, name: str, cumulative: Float64, group: NDArray[np.integer[Any]] | int = 0
    ) -> Codes:
        """One category per row, from row `group` of a table made by `cumulate`."""
        count = cumulative.shape[-1]
        steps = np.atleast_2d(cumulative)
        flat = (steps + np.arange(len(steps))[:, None]).ravel()
        keys = np.minimum(self.uniform(name), _BELOW_ONE) + group
        return np.asarray(np.searchsorted(flat, keys, side="right") - count * np.asarray(group))


def cumulate(weights: Any) -> Float64:
    """Scale the last axis of a table of weights to one and sum it up.

    Categories of weight 0 are never drawn: they repeat the step before them, and the last
    step is exactly 1.
    """
    steps = np.cumsum(np.asarray(weights, dtype=np.float64), axis=-1)
    return np.asarray(steps / steps[..., -1:])


def file_of(name: str) -> str:
    """Return the text of a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def codebook(name: str) -> Schema:
    """Return the reviewed codebook of an invented table."""
    return loads(file_of(f"{name}.schema.toml"), name)


def values(feature: Feature, codes: Codes) -> pl.Series:
    """Return categories by their codes, the code after the last being null; numbers as they are."""
    if feature.binned:
        numbers = pl.Series(feature.name, codes)
        return numbers.set(numbers == LOST, None) if feature.missing else numbers
    texts = pl.Series(feature.name, [*feature.categories, None], dtype=pl.String)
    listed = texts.cast(pl.Int64) if feature.integer else texts
    return listed.gather(codes.astype(np.uint32))


def at_least_one(**counts: object) -> None:
    """Refuse what is no whole number of at least 1."""
    for name, value in counts.items():
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < 1:  # type: ignore[operator]
            raise ParameterError(f"{name} must be a whole number of at least 1")
