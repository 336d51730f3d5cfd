"""The model file ``*.pegs``: one Parquet file, counts as columns, manifest as metadata.

No pickle. Each row is a cell (feature, key, category, count) or an array; the manifest holds
the schema, the plan and the ledger so far. What of a fit is stored is the method's affair.
Nothing in the file is trusted on the way in: every number is checked against the schema
before it is used. Format 1, in which options that a method does not take were stored too, is
still read.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pegsynth.errors import DataError, ModelError, ParameterError, PegsynthError, SchemaError
from pegsynth.io.atomic import atomic_file
from pegsynth.io.parquet_footer import row_groups
from pegsynth.io.parquet_pages import check_pages
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.session import Session, Spent
from pegsynth.methods.stored_model import Cells, StoredArray, StoredModel, described, restored
from pegsynth.options import DEFAULT_METHOD, Order, PriorKind
from pegsynth.privacy import Budget, Ledger
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.privacy.privacy_json import event_from_builtins, event_to_builtins
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import dtype_name, polars_dtype
from pegsynth.schema.toml import dumps, loads
from pegsynth.storage.shapes import shape_arrays, stored_shapes
from pegsynth.storage.spending import adopt_spent, locked, write_spent

FORMAT = 2
NOTICE = "CONFIDENTIAL: exact counts, and perhaps rows, of a confidential table; not for release"
SHAREABLE = (
    "SHAREABLE: noisy counts of released blocks, paid for by the events in this file; rows may be "
    "drawn from it without limit"
)
UNCOVERED = (
    "CONFIDENTIAL: noisy counts of released blocks that no guarantee covers; not for release"
)
_KEY = b"pegsynth"
_COUNTS = ("feature", "key", "category", "count")
_COLUMNS = (*_COUNTS, "name", "content")
# A small file may stand for any number of cells, so how many are taken in is bounded.
_MOST_CELLS = 1 << 24
_CELLS_PER_BYTE = 100
_MOST_BYTES = 1 << 27
_MOST_GROWTH = 256


class StoredPlan(msgspec.Struct, frozen=True):
    """A settled plan; its events are enough to recompute the guarantee."""

    draw: dict[str, Any]
    budget: dict[str, Any]
    events: str
    order: Order = "public"
    prior: PriorKind = "uniform"
    seed_pool: str = "uniform"
    numerator: int = 0
    scale: int = DEFAULT_SCALE


class Manifest(msgspec.Struct, frozen=True):
    """What a model file says about itself; public or paid-for parameters only."""

    format: int
    notice: str
    identity: str
    schema: str
    columns: list[str]
    dtypes: dict[str, str]
    heads: list[list[int]]
    tail_bits: int
    ledger: msgspec.Raw
    shares: list[list[float]] = []
    total: float = 1.0
    recipe: StoredPlan | None = None
    arrays: list[StoredArray] = []


def save_model(model: Model, path: str | Path, *, spent: Spent | None = None) -> None:
    """Write a model, readable by its owner only, whole or not at all.

    A model with a budget gets its record of what was spent first, beside it.

    Parameters
    ----------
    spent
        What was drawn from it before; None: nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    method = get(model.method)
    plan = _stored(model.plan) if model.plan else None
    stored = method.store(model.content)
    arrays = {**stored.arrays, **shape_arrays(model.shapes)}
    notice = notice_of(model)
    # The same noisy numbers give the same file, byte for byte.
    identity = "0" * 32 if method.released else secrets.token_hex(16)
    features = len(model.schema.features)
    manifest = Manifest(
        format=FORMAT,
        notice=notice,
        identity=identity,
        schema=dumps(model.schema),
        columns=list(model.columns),
        dtypes={name: dtype_name(dtype) for name, dtype in model.dtypes.items()},
        heads=[list(line) for line in stored.heads or ((),) * features],
        tail_bits=stored.tail_bits,
        ledger=msgspec.Raw(model.ledger.to_json().encode()),
        shares=stored.shares,
        total=stored.total,
        recipe=plan,
        arrays=described(arrays),
    )
    layout = pa.schema(_layout())
    layout = layout.with_metadata({_KEY: msgspec.json.encode(manifest)})
    replacing = Path(path).exists()
    with (
        _unused(path),
        atomic_file(
            path,
            mode=0o644 if notice == SHAREABLE else 0o600,
            before=lambda: _open_account(model, path, identity, spent, replacing=replacing),
        ) as temporary,
        pq.ParquetWriter(temporary, layout, compression="zstd") as writer,
    ):
        for target, (keys, codes, counts) in enumerate(stored.cells):
            feature = np.full(len(keys), target, dtype=np.uint32)
            none = pa.nulls(len(keys))
            parts = (feature, keys, codes.astype(np.uint32), counts, none, none)
            writer.write_table(_rows(parts, layout))
        for name, array in arrays.items():
            zero = np.zeros(1, dtype=np.int64)
            content = np.ascontiguousarray(array).tobytes()
            writer.write_table(_rows((zero, zero, zero, zero, [name], [content]), layout))
    if replacing:
        adopt_spent(path)


def _layout() -> list[tuple[str, Any]]:
    """Return names and types of the columns of every model file."""
    import pyarrow as pa

    types = [pa.uint32(), pa.int64(), pa.uint32(), pa.int64(), pa.string(), pa.large_binary()]
    return list(zip(_COLUMNS, types, strict=True))


def notice_of(model: Model) -> str:
    """Say what may be done with the file of a model."""
    if not get(model.method).released or model.plan is None:
        return NOTICE
    events = (*model.ledger.events, *model.plan.events)
    covered = Ledger(events, delta=model.plan.budget.delta or 0.0).guarantee.epsilon is not None
    return SHAREABLE if covered else UNCOVERED


def _rows(parts: Sequence[Any], layout: Any) -> Any:
    import pyarrow as pa

    # By way of Polars, because `pa.array` would load pandas.
    arrays = (part if isinstance(part, pa.Array) else pl.Series(part).to_arrow() for part in parts)
    columns = [part.cast(field.type) for part, field in zip(arrays, layout, strict=True)]
    return pa.Table.from_arrays(columns, schema=layout)


def read_manifest(path: str | Path) -> Manifest:
    """Read what a model file says about itself, without its counts."""
    with _opened(path) as file:
        return _manifest(file, path)


def load_model(path: str | Path) -> Model:
    """Read a model; every number is checked against its schema."""
    with _opened(path) as file:
        manifest = _manifest(file, path)
        schema, ledger = _public_part(manifest, path)
        cells = list(_read_cells(file, len(schema.features), path))
        contents = _read_contents(file, path, len(manifest.arrays)) if manifest.arrays else {}
    dtypes = {name: polars_dtype(dtype) for name, dtype in manifest.dtypes.items() if dtype}
    if any(dtype is None for dtype in dtypes.values()):
        raise _foreign(path, "it names a column type that is not known")
    try:
        stored = StoredModel(
            tuple(tuple(line) for line in manifest.heads),
            manifest.tail_bits,
            cells,
            manifest.shares,
            manifest.total,
            restored(manifest.arrays, contents),
        )
        plan = _plan(manifest.recipe, schema, stored) if manifest.recipe else None
        method = get(plan.method if plan else DEFAULT_METHOD)
        content = method.load(stored, schema, plan)
        shapes = stored_shapes(stored.arrays, schema)
    except ModelError as error:
        raise _foreign(path, str(error)) from None
    columns = tuple(manifest.columns)
    return Model(schema, method.name, content, ledger, plan, columns, dtypes, shapes)


def _unused(path: str | Path) -> AbstractContextManager[None]:
    """Wait until nobody samples the model that is about to be replaced, if there is one."""
    there = Path(path).is_file() and os.access(path, os.R_OK)
    return locked(path) if there else nullcontext()


def _open_account(
    model: Model, path: str | Path, identity: str, spent: Spent | None, *, replacing: bool
) -> None:
    """Write the record of a budgeted model before the model becomes visible."""
    if model.plan is not None and not get(model.method).released:
        session = Session(model, model.plan, RandomStream(), spent=spent)
        write_spent(path, identity, session.spent, replacing=replacing)


def _stored(plan: Plan) -> StoredPlan:
    budget = {
        name: getattr(plan.budget, name)
        for name in ("epsilon", "delta", "epsilon_per_row", "l", "alpha")
    }
    options = {each.name: getattr(plan.options, each.name) for each in fields(plan.options)}
    plain = {name: str(v) if isinstance(v, Path) else v for name, v in options.items()}
    return StoredPlan(
        draw={"method": plan.method, **plain},
        budget=budget,
        events=json.dumps([event_to_builtins(event) for event in plan.events]),
        **get(plan.method).store_plan(plan),
    )


def _plan(stored: StoredPlan, schema: Schema, model: StoredModel) -> Plan:
    """Rebuild a plan; format 1 holds options that the method does not take, at their defaults."""
    try:
        method = get(stored.draw["method"])
        known = {each.name for each in fields(method.options)}
        options = method.options(**{n: v for n, v in stored.draw.items() if n in known})
        parts: Mapping[str, Any] = {
            name: getattr(stored, name) for name in stored.__struct_fields__
        } | {
            "events": tuple(event_from_builtins(event) for event in json.loads(stored.events)),
            "budget": Budget(**stored.budget, released_blocks=method.released),
            "options": options,
        }
    except (PegsynthError, KeyError, TypeError, ValueError, RecursionError):
        raise ModelError("its recipe is damaged") from None
    try:
        plan: Plan = method.load_plan(parts, schema, model)
    except ModelError:
        raise
    except (PegsynthError, TypeError, ValueError):
        raise ModelError("its recipe does not fit its events") from None
    return plan


def _foreign(path: str | Path, why: str) -> ModelError:
    return ModelError(f"{path}: {why}; make the model again with pegs fit")


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).is_dir():
        raise ModelError(f"{path}: this is a folder; give a model file that pegs fit wrote")
    if not Path(path).is_file():
        raise ModelError(f"{path}: there is no such model file; check the name")
    try:
        with pq.ParquetFile(path) as file:
            _check_size(path)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _foreign(path, "this is not a model file, or it is truncated or damaged") from None


def _check_size(path: str | Path) -> None:
    """Refuse a file that would unpack to far more than it is."""
    try:
        with Path(path).open("rb") as handle:
            check_pages(handle, most=_MOST_BYTES, growth=_MOST_GROWTH)
    except DataError as error:
        raise _foreign(path, str(error)) from None
    except ValueError:
        raise _foreign(path, "its pages are damaged") from None


def _manifest(file: Any, path: str | Path) -> Manifest:
    text = (file.schema_arrow.metadata or {}).get(_KEY)
    if text is None:
        raise _foreign(path, "this Parquet file is not a model")
    # The format is looked at first: a newer file may have other fields altogether.
    stated = re.match(rb'\{"format":(\d{1,9})\b', text)
    if stated is None or int(stated[1]) < 1:
        raise _foreign(path, "its manifest is damaged")
    if int(stated[1]) > FORMAT:
        raise ModelError(
            f"{path}: the model has format {int(stated[1])} and this program reads up to {FORMAT}; "
            "update pegsynth"
        )
    try:
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _foreign(path, "its manifest is damaged") from None


def _public_part(manifest: Manifest, path: str | Path) -> tuple[Schema, Ledger]:
    try:
        schema = loads(manifest.schema, source=f"the schema inside {path}")
        return schema, Ledger.from_json(bytes(manifest.ledger), source=f"{path}")
    except (SchemaError, ParameterError) as error:
        raise _foreign(path, f"its manifest is damaged ({error})") from None


def _read_cells(file: Any, features: int, path: str | Path) -> Iterator[Cells]:
    """Yield keys, categories and counts of every feature."""
    if [(field.name, field.type) for field in file.schema_arrow] != _layout():
        raise _foreign(path, "its columns are not those of a model")
    most = max(_MOST_CELLS, _CELLS_PER_BYTE * Path(path).stat().st_size)
    parts: list[list[Cells]] = [[] for _ in range(features)]
    last = 0
    for batch in file.iter_batches(batch_size=1 << 20, columns=[*_COUNTS, "name"]):
        kept = batch.filter(batch.column("name").is_null())
        most -= kept.num_rows
        if most < 0 or any(kept.column(name).null_count for name in _COUNTS):
            raise _foreign(path, "it holds cells that no model of its size has")
        feature, keys, codes, counts = (
            pl.Series(kept.column(name)).to_numpy().astype(np.int64) for name in _COUNTS
        )
        if not len(feature):
            continue
        if feature[0] < last or np.any(np.diff(feature) < 0) or feature[-1] >= features:
            raise _foreign(path, "its cells are out of order")
        last = int(feature[-1])
        for target in np.unique(feature):
            chosen = slice(*np.searchsorted(feature, [target, target + 1]))
            parts[target].append((keys[chosen], codes[chosen], counts[chosen]))
    empty = np.empty(0, dtype=np.int64)
    for held in parts:
        columns = zip(*held, strict=True) if held else ((empty,),) * 3
        keys, codes, counts = (np.concatenate(column) for column in columns)
        yield keys, codes, counts


def _read_contents(file: Any, path: str | Path, arrays: int) -> dict[str, bytes]:
    """Return the raw bytes of every array in the file, one at a time."""
    most = max(_MOST_BYTES, _MOST_GROWTH * Path(path).stat().st_size)
    contents: dict[str, bytes] = {}
    with Path(path).open("rb") as handle:
        chunks = [group[_COLUMNS.index("content")] for group in row_groups(handle)]
    for group, chunk in enumerate(chunks):
        if chunk.nulls == chunk.values:
            continue
        for batch in file.iter_batches(1, row_groups=[group], columns=["name", "content"]):
            name, content = (batch.column(index)[0].as_py() for index in range(2))
            if name is None:
                continue
            most -= len(content or b"")
            if name in contents or len(contents) >= arrays or most < 0:
                raise _foreign(path, "it holds arrays that its manifest does not tell of")
            contents[name] = content or b""
    return contents
