"""Completed versions of a synthetic dataframe: every missing cell gets the value of a donor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pegsynth.completion.chained_trees import fill
from pegsynth.completion.donated_values import with_donors
from pegsynth.completion.holes import check_holes
from pegsynth.progress import Progress, quiet
from pegsynth.schema.codec import Encoder

if TYPE_CHECKING:
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema


def completed_frames(
    frame: pl.DataFrame,
    schema: Schema,
    stream: RandomStream,
    *,
    imputations: int = 1,
    source: str = "the table",
    strict: bool = False,
    threads: int = 1,
    progress: Progress = quiet,
) -> list[pl.DataFrame]:
    """Return r versions of a synthetic table in which no value is missing.

    Cells that are not missing stay as they are, in all of them; a date that is counted from a
    missing one is missing with it.

    Parameters
    ----------
    source
        What messages call the table.
    strict
        Refuse a table in which nothing is missing, or a feature has no value at all.
    """
    encoder = Encoder(schema, source=source, columns=frame.columns, need_unit=False)
    codes = encoder.encode(frame)
    encoder.finish()
    if strict:
        check_holes(codes, schema, source=source)
    filled = fill(
        codes, schema, stream, imputations=imputations, threads=threads, progress=progress
    )
    return [with_donors(frame, schema, each) for each in filled]
