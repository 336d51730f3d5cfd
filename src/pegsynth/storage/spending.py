"""``MODEL.pegs.spent``: what was drawn from a saved model, kept beside it.

The file is written and synced before an output becomes visible, under a lock on the
model, so that a crash may lose budget and never regain it, and two processes cannot
spend the same rows. It is confidential: visit counters tell which keys occur.

A model that replaces another has its record under ``MODEL.pegs.spent.new`` until it is in
place, so that whichever of the two a crash leaves has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from pegsynth.errors import ModelError
from pegsynth.methods.session import Spent
from pegsynth.tables.atomic import holding
from pegsynth.tables.container import (
    Container,
    ContainerError,
    OtherFormatError,
    decoded,
    read_container,
    save_container,
)

KIND = "record of what was spent"
FORMAT = 2
NOTICE = "CONFIDENTIAL: goes with the model; without it the model is refused"
_COUNTERS = "counters of chain "


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model it belongs to, and what was drawn from that."""

    model: str
    rows: int
    blocks: int
    seeded: bool


class _Record(NamedTuple):
    model: str
    spent: Spent


def spent_path(model: str | Path) -> Path:
    """Return the name of the file beside a model."""
    return Path(f"{model}.spent")


@contextmanager
def locked(model: str | Path) -> Iterator[None]:
    """Hold the model for this process alone; wait for others."""
    with ExitStack() as stack:
        try:
            stack.enter_context(holding(model))
        except OSError as error:
            raise ModelError(
                f"{model}: the model cannot be opened ({error.strerror}); check the name"
            ) from None
        yield


def write_spent(model: str | Path, identity: str, spent: Spent, *, replacing: bool = False) -> None:
    """Write what was spent, whole, synced and readable by the owner only.

    Parameters
    ----------
    replacing
        Whether another model still stands under the name; `adopt_spent` ends that.
    """
    manifest = _Manifest(identity, spent.rows, spent.blocks, spent.seeded)
    arrays = {f"{_COUNTERS}{chain}": line for chain, line in enumerate(spent.counters)}
    content = Container(NOTICE, KIND, FORMAT, msgspec.json.encode(manifest), arrays)
    path = _waiting_path(model) if replacing else spent_path(model)
    save_container(path, content)


def adopt_spent(model: str | Path) -> None:
    """Give the record of a model that has replaced another its place."""
    with suppress(FileNotFoundError):
        _waiting_path(model).replace(spent_path(model))


def _waiting_path(model: str | Path) -> Path:
    return Path(f"{spent_path(model)}.new")


def read_spent(model: str | Path, identity: str) -> Spent:
    """Read what was spent; a budgeted model without it is refused."""
    path = spent_path(model)
    record = _read(path)
    if record is None or record.model != identity:
        waiting = _read(_waiting_path(model))
        if waiting is not None and waiting.model == identity:
            # The run that replaced the model was killed before it could do this.
            adopt_spent(model)
            record = waiting
    if record is None:
        raise ModelError(
            f"{path}: the record of what was spent is missing, so this model may not be sampled; "
            "restore the file, or fit a new model with a budget of its own"
        )
    if record.model != identity:
        raise ModelError(f"{path}: this record belongs to another model; restore the right one")
    return record.spent


def rows_were_drawn(model: str | Path) -> bool:
    """Whether a model stands under this name and its record says that rows were drawn.

    A record that cannot be read says nothing.
    """
    try:
        record = _read(spent_path(model)) if Path(model).exists() else None
    except ModelError:
        return False
    return record is not None and record.spent.rows > 0


def _read(path: Path) -> _Record | None:
    """Read a record, of whatever model; None if there is none."""
    try:
        with path.open("rb") as handle:
            return _record(read_container(handle, kind=KIND, format_=FORMAT))
    except FileNotFoundError:
        return None
    except OtherFormatError as error:
        raise ModelError(error.message(path, KIND, FORMAT)) from None
    except (OSError, ContainerError):
        raise ModelError(
            f"{path}: the record of what was spent is damaged; restore it, or fit a new model"
        ) from None


def _record(content: Container) -> _Record:
    manifest = decoded(content, _Manifest)
    names = [f"{_COUNTERS}{chain}" for chain in range(len(content.arrays))]
    lines = tuple(content.arrays[name] for name in names if name in content.arrays)
    fits = len(lines) == len(names) and all(
        line.dtype == np.uint32 and line.ndim == 1 and len(line) == len(lines[0]) for line in lines
    )
    if min(manifest.rows, manifest.blocks) < 0 or not fits:
        raise ContainerError("its counters are damaged")
    return _Record(manifest.model, Spent(manifest.rows, manifest.blocks, manifest.seeded, lines))
