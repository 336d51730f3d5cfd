"""The tables that a study looks at: built-in ones, or the user's own.

The built-in table is `pegsynth.datasets.discharge`. Its public pool and its hold-out come
from other seeds of the same generator, as last year's public file and patients who were
never admitted would. Of a user's table a part is held out: it stands in for the public pool
and for people that no synthesizer ever saw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import decode, encode, one_matrix
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.errors import DataError
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.tables.table_input import opened
from studies.paper.arms import MAIN
from studies.paper.size import StudySize
from studies.paper.study_design import other_population
from studies.paper.workshop import Population

POOL_SEED, FRESH_SEED = 1_000_003, 2_000_003
"""Added to the seed of the built-in table for the public pool and the hold-out."""

HELD_OUT = 0.2
LEAST_ROWS = 50


def built_in(size: StudySize, seed: int) -> dict[str, Population]:
    """Return the built-in table, and those of other sizes."""
    schema = discharge_schema()
    pool = encode(discharge(size.pool_rows, seed + POOL_SEED), schema)
    fresh = encode(discharge(size.fresh_rows, seed + FRESH_SEED), schema)
    populations = {}
    for name, rows in _sizes(size).items():
        frame = discharge(rows, seed)
        populations[name] = Population(schema, frame, encode(frame, schema), pool, fresh)
    return populations


def of_user(data: Any, schema: Schema, seed: int) -> dict[str, Population]:
    """Return a user's table, a part of it held out.

    Rows of a unit are bounded as for a release (R12); from then on a row is the unit, and
    the study's epsilons are those of a row.
    """
    stream = RandomStream(f"study table {seed}")
    with opened(data, dialect=schema.dialect) as reader:
        codes = one_matrix(CodeTable(reader, schema, stream).batches())
    if len(codes) < LEAST_ROWS:
        raise DataError(
            f"the table has {len(codes)} rows; a study needs at least {LEAST_ROWS} to hold some out"
        )
    order = np.argsort(stream.substream().take(len(codes)), kind="stable")
    held = max(2, int(HELD_OUT * len(codes)))
    rows, pool, fresh = np.split(codes[order], [len(codes) - held, len(codes) - held // 2])
    book = replace(schema, unit=None, columns=schema.features, rows_per_unit=1)
    frame = decode(rows, book, how="labels")
    return {MAIN: Population(book, frame, rows, pool, fresh)}


def _sizes(size: StudySize) -> dict[str, int]:
    return {MAIN: size.rows_in, **{other_population(rows): rows for rows in size.other_rows_in}}
