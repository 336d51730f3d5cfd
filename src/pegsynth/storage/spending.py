"""``MODEL.pegs.spent``: what was drawn from a saved model, kept beside it.

The file is written and synced before an output becomes visible, under a lock on the
model, so that a crash may lose budget and never regain it, and two processes cannot
spend the same rows. It is confidential: visit counters tell which keys occur.

A model that replaces another has its record under ``MODEL.pegs.spent.new`` until it is in
place, so that whichever of the two a crash leaves has its own.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import numpy as np

from pegsynth.errors import ModelError
from pegsynth.io.atomic import atomic_text
from pegsynth.methods.session import Spent

FORMAT = 1
_MOST_BYTES = 1 << 30


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as JSON."""

    format: int
    notice: str
    model: str
    rows: int
    blocks: int
    seeded: bool
    entries: int
    counters: list[str]


def spent_path(model: str | Path) -> Path:
    """Return the name of the file beside a model."""
    return Path(f"{model}.spent")


@contextmanager
def locked(model: str | Path) -> Iterator[None]:
    """Hold the model for this process alone; wait for others."""
    while True:
        try:
            handle = os.open(model, os.O_RDONLY)
        except OSError as error:
            raise ModelError(
                f"{model}: the model cannot be opened ({error.strerror}); check the name"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever waited may hold a model that was replaced meanwhile: not the one in use.
            if _stands_under(handle, model):
                yield
                return
        finally:
            os.close(handle)


def _stands_under(handle: int, path: str | Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def write_spent(model: str | Path, identity: str, spent: Spent, *, replacing: bool = False) -> None:
    """Write what was spent, whole, synced and readable by the owner only.

    Parameters
    ----------
    replacing
        Whether another model still stands under the name; `adopt_spent` ends that.
    """
    file = _File(
        format=FORMAT,
        notice="CONFIDENTIAL: goes with the model; without it the model is refused",
        model=identity,
        rows=spent.rows,
        blocks=spent.blocks,
        seeded=spent.seeded,
        entries=len(spent.counters[0]) if spent.counters else 0,
        counters=[base64.b85encode(zlib.compress(c.tobytes())).decode() for c in spent.counters],
    )
    path = _waiting_path(model) if replacing else spent_path(model)
    atomic_text(path, msgspec.json.encode(file).decode() + "\n", mode=0o600)


def adopt_spent(model: str | Path) -> None:
    """Give the record of a model that has replaced another its place."""
    with suppress(FileNotFoundError):
        _waiting_path(model).replace(spent_path(model))


def _waiting_path(model: str | Path) -> Path:
    return Path(f"{spent_path(model)}.new")


def read_spent(model: str | Path, identity: str) -> Spent:
    """Read what was spent; a budgeted model without it is refused."""
    path = spent_path(model)
    file = _decoded(path)
    if file is None or file.model != identity:
        waiting = _decoded(_waiting_path(model))
        if waiting is not None and waiting.model == identity:
            # The run that replaced the model was killed before it could do this.
            adopt_spent(model)
            file = waiting
    if file is None:
        raise ModelError(
            f"{path}: the record of what was spent is missing, so this model may not be sampled; "
            "restore the file, or fit a new model with a budget of its own"
        )
    if file.model != identity:
        raise ModelError(f"{path}: this record belongs to another model; restore the right one")
    if file.format > FORMAT:
        raise ModelError(f"{path}: the record is of a newer format; update pegsynth")
    if min(file.rows, file.blocks, file.entries) < 0 or 4 * file.entries > _MOST_BYTES:
        raise _damaged(path)
    counters = tuple(_counters(line, file.entries, path) for line in file.counters)
    return Spent(file.rows, file.blocks, file.seeded, counters)


def rows_were_drawn(model: str | Path) -> bool:
    """Whether a model stands under this name and its record says that rows were drawn.

    A record that cannot be read says nothing.
    """
    try:
        file = _decoded(spent_path(model)) if Path(model).exists() else None
    except ModelError:
        return False
    return file is not None and file.rows > 0


def _decoded(path: Path) -> _File | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _damaged(path) from None


def _counters(text: str, entries: int, path: Path) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    try:
        packed = base64.b85decode(text)
        # The declared size bounds what is unpacked, whatever the file says inside.
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(packed, 4 * entries + 1)
    except (ValueError, zlib.error, binascii.Error):
        raise _damaged(path) from None
    if len(raw) != 4 * entries or not unpacking.eof or unpacking.unused_data:
        raise _damaged(path)
    return np.frombuffer(raw, dtype=np.uint32).copy()


def _damaged(path: Path) -> ModelError:
    return ModelError(
        f"{path}: the record of what was spent is damaged; restore it, or fit a new model"
    )
