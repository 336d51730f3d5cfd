"""``--resume FILE``: the counts so far, so that counting can go on where it stopped.

The file is CONFIDENTIAL and readable by its owner only. It holds exact counts, how far
the table was read and, for units, which rows are kept; nothing of the random stream, and
nothing that was drawn or perturbed. It belongs to one table and one way of counting, is
locked by the run that uses it, and is deleted when the work is done.
"""

from __future__ import annotations

import fcntl
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
from msgspec.structs import replace
from numpy.typing import NDArray

from pegsynth.errors import ModelError, ParameterError
from pegsynth.io.atomic import output_error
from pegsynth.io.reader import Place
from pegsynth.progress import Progress
from pegsynth.tables.units import KeptRows

if TYPE_CHECKING:
    from pegsynth.arrays import Codes
    from pegsynth.io.reader import TableReader
    from pegsynth.schema import Schema
    from pegsynth.tables.code_table import CodeTable

NOTICE = b"CONFIDENTIAL: counts of a confidential table, kept for pegs --resume; not for release\n"
SECONDS_BETWEEN = 30.0
_FORMAT = 1
_MOST_HEADER = 1 << 24
_MOST_PLACE = 1 << 62
_UNITS = "units"

Arrays = Mapping[str, NDArray[Any]]


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


class _Array(msgspec.Struct, frozen=True):
    stage: str
    name: str
    dtype: str
    length: int


class _Header(msgspec.Struct, frozen=True):
    format: int
    belongs: str
    rows: int
    stages: dict[str, tuple[int, int, int, bool]]
    arrays: list[_Array]
    sha256: str = ""


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
        flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW
        try:
            handle = os.fdopen(os.open(new, flags, 0o600), "wb")
            try:
                self._lock(handle)
                self._check_ours()
                try:
                    handle.truncate(0)
                    os.fchmod(handle.fileno(), 0o600)
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
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelError(
                f"{self._path}: another run uses this checkpoint; give --resume another name"
            ) from None

    def _all_arrays(self) -> dict[tuple[str, str], NDArray[Any]]:
        arrays = {
            (name, each): np.ascontiguousarray(array)
            for name, stage in self._stages.items()
            for each, array in stage.arrays.items()
        }
        if self._kept is not None:
            arrays[_UNITS, "bits"] = self._kept.bits
        return arrays

    def _write(self, handle: BinaryIO) -> None:
        arrays = self._all_arrays()
        header = _Header(
            _FORMAT,
            self._belongs,
            self._kept.rows if self._kept else 0,
            {
                name: (stage.place.part, stage.place.skip, stage.place.rows, stage.complete)
                for name, stage in self._stages.items()
            },
            [
                _Array(stage, name, array.dtype.str, len(array))
                for (stage, name), array in arrays.items()
            ],
        )
        digest = _digest(header)
        for array in arrays.values():
            digest.update(array.data)
        handle.write(NOTICE)
        handle.write(msgspec.json.encode(replace(header, sha256=digest.hexdigest())) + b"\n")
        for array in arrays.values():
            handle.write(array.data)

    def _load(self) -> None:
        try:
            with self._path.open("rb") as handle:
                if handle.readline(len(NOTICE)) != NOTICE:
                    raise ModelError(
                        f"{self._path}: this file is no checkpoint; give --resume another name"
                    )
                self._lock(handle)
                header = msgspec.json.decode(handle.readline(_MOST_HEADER), type=_Header)
                self._check(header)
                arrays = dict(_arrays(handle, header, self._path.stat().st_size))
                _check_places(header, arrays)
                self._hold(os.fdopen(os.dup(handle.fileno()), "rb"))
        except (OSError, ValueError, TypeError, RecursionError, msgspec.DecodeError) as error:
            if isinstance(error, ModelError):
                raise
            raise self._damaged() from None
        if header.rows:
            self._kept = KeptRows(arrays[_UNITS, "bits"].copy(), header.rows)
        for name, (part, skip, rows, complete) in header.stages.items():
            own = {each: array for (stage, each), array in arrays.items() if stage == name}
            self._stages[name] = Stage(Place(part, skip, rows), complete, own)

    def _check(self, header: _Header) -> None:
        if header.format != _FORMAT:
            raise ModelError(f"{self._path}: the checkpoint is of another version; delete it")
        if header.belongs != self._belongs:
            raise ModelError(
                f"{self._path}: the checkpoint belongs to another table or other options, or the "
                "table has changed since; delete it to start again"
            )

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


def _digest(header: _Header) -> Any:
    """Start the checksum of everything with the header."""
    return hashlib.sha256(msgspec.json.encode(header))


def _arrays(
    handle: BinaryIO, header: _Header, size: int
) -> Iterator[tuple[tuple[str, str], NDArray[Any]]]:
    """Yield the arrays; what the header says of them is believed if the file can hold it."""
    digest = _digest(replace(header, sha256=""))
    for each in header.arrays:
        dtype = np.dtype(each.dtype)
        if each.dtype != dtype.str or dtype.kind not in "iub":
            raise ValueError("an array of something else than counts")
        if not 0 <= each.length <= size // dtype.itemsize:
            raise ValueError("an array longer than the file")
        raw = handle.read(dtype.itemsize * each.length)
        digest.update(raw)
        yield (each.stage, each.name), np.frombuffer(raw, dtype=dtype, count=each.length)
    if digest.hexdigest() != header.sha256 or handle.read(1):
        raise ValueError("the bytes do not add up")


def _check_places(header: _Header, arrays: Mapping[tuple[str, str], NDArray[Any]]) -> None:
    """Raise ValueError for places that no table has, and kept rows that are not all there."""
    for part, skip, rows, _ in header.stages.values():
        if not (0 <= part < _MOST_PLACE and 0 <= skip <= rows < _MOST_PLACE):
            raise ValueError("a place outside of any table")
    bits = arrays.get((_UNITS, "bits"))
    if not header.rows and bits is None:
        return
    if bits is None or bits.dtype != np.uint8 or len(bits) != (header.rows + 7) // 8:
        raise ValueError("kept rows that are not all there")


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
