"""``--resume FILE``: the counts so far, so that counting can go on where it stopped.

The file is CONFIDENTIAL and readable by its owner only. It holds exact counts, how far
the table was read and, for units, which rows are kept; nothing of the random stream, and
nothing that was drawn or perturbed. It belongs to one table and one way of counting, is
locked by the run that uses it, and is deleted when the work is done.

Counting that goes on where an earlier run stopped, by way of a checkpoint.

`resuming` opens the checkpoint that belongs to a table and a way of counting; `count_into`
counts a table into it now and then.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.code_table import KeptRows
from pegsynth.errors import ModelError, ParameterError
from pegsynth.progress import Progress
from pegsynth.tables.atomic import check_target, lock, output_error, set_mode
from pegsynth.tables.container import (
    Arrays,
    Container,
    ContainerError,
    ForeignFileError,
    OtherFormatError,
    decoded,
    is_container,
    read_container,
    write_container,
)
from pegsynth.tables.reader import Place

if TYPE_CHECKING:
    from pegsynth.codec.code_table import CodeTable
    from pegsynth.kernels.arrays import Codes
    from pegsynth.schema import Schema
    from pegsynth.tables.reader import TableReader


KIND = "checkpoint"
FORMAT = 2
NOTICE = "CONFIDENTIAL: counts of a confidential table, kept for pegs --resume; not for release"
SECONDS_BETWEEN = 30.0
_KEPT = "kept rows"
_MOST_PLACE = 1 << 62
# Arrays are named by the number of their stage and their own name.
_OF = ": "


class Counter(Protocol):
    """What counts batches and can take in counts of other rows."""

    def add(self, batch: Codes) -> None:
        """Count one batch."""

    def arrays(self) -> Arrays:
        """Return the counts so far."""

    def absorb(self, arrays: Mapping[str, NDArray[np.int64]]) -> None:
        """Add counts of other rows."""


@dataclass(frozen=True)
class Stage:
    """One pass over the table: its counts so far, and where it goes on."""

    place: Place
    complete: bool
    arrays: Arrays


class _Manifest(msgspec.Struct, frozen=True):
    """What the counts belong to, the number of rows with a choice of kept ones, and places."""

    belongs: str
    rows: int
    stages: dict[str, tuple[int, int, int, bool]]


class Checkpoint:
    """The file, and what it held when it was opened.

    Parameters
    ----------
    path
        The file; it need not exist yet.
    belongs
        A text that stands for the table and the way of counting. A file that was made for
        another is refused.
    """

    def __init__(self, path: Path, belongs: str) -> None:
        self._path = path
        self._belongs = belongs
        self._stages: dict[str, Stage] = {}
        self._kept: KeptRows | None = None
        self._next = time.monotonic() + SECONDS_BETWEEN
        self._held: BinaryIO | None = None
        if path.exists():
            self._load()

    @property
    def kept(self) -> KeptRows | None:
        """Rows kept of every unit, if they were chosen before."""
        return self._kept

    def keep(self, kept: KeptRows | None) -> None:
        """Remember the rows kept of every unit."""
        self._kept = kept

    def stage(self, name: str) -> Stage | None:
        """Return what is known of a pass."""
        return self._stages.get(name)

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() >= self._next

    def save(self, name: str, stage: Stage) -> None:
        """Write the counts of a pass, and those of the passes before it."""
        self._stages[name] = stage
        started = time.monotonic()
        new = self._path.with_name(self._path.name + ".new")
        flags = os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        try:
            handle = os.fdopen(os.open(new, flags, 0o600), "wb")
            try:
                self._lock(handle)
                self._check_ours()
                try:
                    handle.truncate(0)
                    set_mode(handle.fileno(), 0o600)
                    self._write(handle)
                    handle.flush()
                    os.fsync(handle.fileno())
                    new.replace(self._path)
                finally:
                    new.unlink(missing_ok=True)
            except BaseException:
                handle.close()
                raise
        except OSError as error:
            raise output_error(self._path, error) from None
        self._hold(handle)
        # Saving takes at most about a twentieth of the time.
        cost = time.monotonic() - started
        self._next = time.monotonic() + max(SECONDS_BETWEEN, 20 * cost)

    def remove(self) -> None:
        """Delete the file; the work is done."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other runs use the file."""
        self._hold(None)

    def _hold(self, handle: BinaryIO | None) -> None:
        if self._held is not None:
            self._held.close()
        self._held = handle

    def _check_ours(self) -> None:
        """Refuse to replace a file that another run has made meanwhile."""
        with suppress(FileNotFoundError), self._path.open("rb") as there:
            ours = self._held is not None and os.path.samestat(
                os.fstat(self._held.fileno()), os.fstat(there.fileno())
            )
            if not ours:
                self._lock(there)

    def _lock(self, handle: BinaryIO) -> None:
        if not lock(handle.fileno(), wait=False):
            raise ModelError(
                f"{self._path}: another run uses this checkpoint; give --resume another name"
            )

    def _write(self, handle: BinaryIO) -> None:
        places = {
            name: (stage.place.part, stage.place.skip, stage.place.rows, stage.complete)
            for name, stage in self._stages.items()
        }
        manifest = _Manifest(self._belongs, self._kept.rows if self._kept else 0, places)
        arrays = {
            f"{number}{_OF}{each}": array
            for number, stage in enumerate(self._stages.values())
            for each, array in stage.arrays.items()
        }
        if self._kept is not None:
            arrays[_KEPT] = self._kept.bits
        content = Container(NOTICE, KIND, FORMAT, msgspec.json.encode(manifest), arrays)
        # Packing would take longer than the counting that is saved.
        write_container(handle, content, pack=False)

    def _load(self) -> None:
        try:
            with self._path.open("rb") as handle:
                if not is_container(handle):
                    raise ForeignFileError("no checkpoint")
                self._lock(handle)
                self._take(read_container(handle, kind=KIND, format_=FORMAT))
                self._hold(os.fdopen(os.dup(handle.fileno()), "rb"))
        except ForeignFileError:
            raise ModelError(
                f"{self._path}: this file is no checkpoint; give --resume another name"
            ) from None
        except OtherFormatError as error:
            raise ModelError(error.message(self._path, KIND, FORMAT)) from None
        except (OSError, ContainerError):
            raise self._damaged() from None

    def _take(self, content: Container) -> None:
        """Take in what a file holds, if it belongs here and can be true."""
        manifest = decoded(content, _Manifest)
        if manifest.belongs != self._belongs:
            raise ModelError(
                f"{self._path}: the checkpoint belongs to another table or other options, or the "
                "table has changed since; delete it to start again"
            )
        arrays = dict(content.arrays)
        self._kept = _kept(manifest.rows, arrays.pop(_KEPT, None))
        for number, (name, place) in enumerate(manifest.stages.items()):
            part, skip, rows, complete = place
            if not (0 <= part < _MOST_PLACE and 0 <= skip <= rows < _MOST_PLACE):
                raise ContainerError("a place outside of any table")
            prefix = f"{number}{_OF}"
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            if any(array.dtype.kind == "f" for array in own.values()):
                raise ContainerError("an array of something else than counts")
            self._stages[name] = Stage(Place(part, skip, rows), complete, own)

    def _damaged(self) -> ModelError:
        return ModelError(f"{self._path}: the checkpoint is damaged; delete it to start again")

    def restore(self, name: str, counter: Counter) -> Stage | None:
        """Give a counter what is known of a pass."""
        stage = self.stage(name)
        if stage is not None:
            try:
                counter.absorb(stage.arrays)
            except (ParameterError, KeyError, ValueError, TypeError, OverflowError):
                raise self._damaged() from None
        return stage


def _kept(rows: int, bits: NDArray[Any] | None) -> KeptRows | None:
    """Return the rows kept of every unit, if they are all there."""
    if not rows and bits is None:
        return None
    if bits is None or bits.dtype != np.uint8 or bits.shape != ((rows + 7) // 8,):
        raise ContainerError("kept rows that are not all there")
    return KeptRows(bits, rows)


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
            f"{reader.source}: --resume requires files; rows of a database or a dataframe cannot "
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
    from pegsynth.runtime import __version__
    from pegsynth.schema.toml import dumps

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
