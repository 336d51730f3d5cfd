"""Counting that goes on where an earlier run stopped, by way of a checkpoint.

`resuming` opens the checkpoint that belongs to a table and a way of counting; `count_into`
counts a table into it now and then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pegsynth.errors import ParameterError
from pegsynth.io.atomic import check_target
from pegsynth.io.reader import Place
from pegsynth.progress import Progress
from pegsynth.tables.checkpoint import Checkpoint, Counter, Stage

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader
    from pegsynth.schema import Schema
    from pegsynth.tables.code_table import CodeTable


@contextmanager
def resuming(
    path: Path | None, reader: TableReader, schema: Schema, plan: object, seed: int | None
) -> Iterator[Checkpoint | None]:
    """Yield the checkpoint asked for, and delete it when the block ends well."""
    if path is None:
        yield None
        return
    identity = reader.identity
    if identity is None:
        raise ParameterError(
            f"{reader.source}: --resume goes with files; rows of a database or a dataframe cannot "
            "be read again from the middle"
        )
    check_target(path)
    checkpoint = Checkpoint(Path(path), _belongs(identity, schema, plan, seed))
    try:
        yield checkpoint
        checkpoint.remove()
    finally:
        checkpoint.release()


def _belongs(identity: str, schema: Schema, plan: object, seed: int | None) -> str:
    from pegsynth.schema.toml import dumps
    from pegsynth.version import __version__

    parts = (identity, __version__, dumps(schema), repr(plan), repr(seed))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def count_into(
    counter: Counter,
    table: CodeTable,
    name: str,
    *,
    key: str = "",
    checkpoint: Checkpoint | None,
    progress: Progress,
) -> None:
    """Count a table, going on where a checkpoint left off and writing it now and then.

    Parameters
    ----------
    name
        The pass, for people and for the checkpoint.
    key
        What the counts depend on beside the table; those of another key are left alone.
    """
    saved_as = f"{name} {key}"
    stage = checkpoint.restore(saved_as, counter) if checkpoint else None
    if stage is not None and stage.complete:
        return
    start = stage.place if stage else Place()
    total = table.reader.expected_rows
    progress(name, start.rows, total)
    for batch in table.batches(start):
        counter.add(batch)
        progress(name, table.place.rows, total)
        # A table with a value that has no code is refused in the end, whoever reads it.
        if checkpoint and checkpoint.due and table.sound:
            checkpoint.save(saved_as, Stage(table.place, False, counter.arrays()))
    if checkpoint:
        checkpoint.save(saved_as, Stage(table.place, True, counter.arrays()))
