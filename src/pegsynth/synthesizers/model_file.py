"""The model file ``*.pegs``: one Parquet file, counts as columns, manifest as metadata.

No pickle. Each row is a cell (feature, key, category, count); the manifest holds the
schema, the hash function and the ledger so far. Nothing in the file is trusted on the way
in: every number is checked against the schema before it is used.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.blocks import Block, Blocks, DenseBlock, SparseBlock
from pegsynth.blocks.blocks import MOST_ROWS, dense_limit
from pegsynth.errors import DataError, ModelError, ParameterError, PegsynthError, SchemaError
from pegsynth.hashing import HashSpec
from pegsynth.hashing.order import plain_features
from pegsynth.io.atomic import atomic_file
from pegsynth.io.parquet_footer import row_groups
from pegsynth.io.parquet_pages import check_pages
from pegsynth.options import CHAIN_METHODS, DrawOptions, Order, PriorKind
from pegsynth.perturb.marginals import Marginals
from pegsynth.privacy import Budget, Event, Ledger, NoisyCounts, Selection
from pegsynth.privacy.draws import DRAWS
from pegsynth.privacy.files import event_from_builtins, event_to_builtins
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import dtype_name, polars_dtype
from pegsynth.schema.toml import dumps, loads
from pegsynth.synthesizers.model import Model, hash_spec
from pegsynth.synthesizers.model_arrays import (
    StoredArray,
    arrays_of,
    conditionals_of,
    described,
    released_of,
    restored,
    rows_of,
)
from pegsynth.synthesizers.recipe import Recipe, detail_count, shape_of, split_draws
from pegsynth.synthesizers.released_blocks import ONCE

FORMAT = 1
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

Int64 = NDArray[np.int64]


class StoredRecipe(msgspec.Struct, frozen=True):
    """A settled recipe; its events are enough to recompute the guarantee."""

    order: Order
    prior: PriorKind
    seed_pool: str
    draw: dict[str, Any]
    budget: dict[str, Any]
    numerator: int
    scale: int
    events: str


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
    recipe: StoredRecipe | None = None
    arrays: list[StoredArray] = []


def save_model(model: Model, path: str | Path) -> None:
    """Write a model, readable by its owner only, whole or not at all.

    A model with a budget gets its record of what was spent first, beside it.
    """
    if model.recipe is not None and model.recipe.draw.urn:
        raise ModelError("urns are not saved with a model; fit with --no-urn, or use synthesize")
    import pyarrow as pa
    import pyarrow.parquet as pq

    spec = model.blocks.spec
    notice = notice_of(model)
    # The same noisy numbers give the same file, byte for byte.
    identity = secrets.token_hex(16) if model.released is None else "0" * 32
    marginals = model.marginals
    arrays = arrays_of(model)
    manifest = Manifest(
        format=FORMAT,
        notice=notice,
        identity=identity,
        schema=dumps(model.schema),
        columns=list(model.columns),
        dtypes={name: dtype_name(dtype) for name, dtype in model.dtypes.items()},
        heads=[list(heads) for heads in spec.heads],
        tail_bits=spec.tail_bits,
        ledger=msgspec.Raw(model.ledger.to_json().encode()),
        shares=[line.tolist() for line in marginals.shares] if marginals else [],
        total=marginals.total if marginals else 1.0,
        recipe=_stored(model.recipe) if model.recipe else None,
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
            before=lambda: _open_account(model, path, identity, replacing=replacing),
        ) as temporary,
        pq.ParquetWriter(temporary, layout, compression="zstd") as writer,
    ):
        for target, block in enumerate(model.blocks.blocks):
            keys, codes, counts = block.cells()
            feature = np.full(len(keys), target, dtype=np.uint32)
            none = pa.nulls(len(keys))
            parts = (feature, keys, codes.astype(np.uint32), counts, none, none)
            writer.write_table(_rows(parts, layout))
        for name, array in arrays.items():
            zero = np.zeros(1, dtype=np.int64)
            content = np.ascontiguousarray(array).tobytes()
            writer.write_table(_rows((zero, zero, zero, zero, [name], [content]), layout))
    if replacing:
        from pegsynth.synthesizers.spending import adopt_spent

        adopt_spent(path)


def _layout() -> list[tuple[str, Any]]:
    """Return names and types of the columns of every model file."""
    import pyarrow as pa

    types = [pa.uint32(), pa.int64(), pa.uint32(), pa.int64(), pa.string(), pa.large_binary()]
    return list(zip(_COLUMNS, types, strict=True))


def notice_of(model: Model) -> str:
    """Say what may be done with the file of a model."""
    if model.released is None or model.recipe is None:
        return NOTICE
    events = (*model.ledger.events, *model.recipe.events)
    covered = Ledger(events, delta=model.recipe.budget.delta or 0.0).guarantee.epsilon is not None
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
        schema, spec, ledger = _public_part(manifest, path)
        blocks = Blocks(spec, tuple(_read_blocks(file, spec, path)))
        contents = _read_contents(file, path, len(manifest.arrays)) if manifest.arrays else {}
    dtypes = {name: polars_dtype(dtype) for name, dtype in manifest.dtypes.items() if dtype}
    if any(dtype is None for dtype in dtypes.values()):
        raise _foreign(path, "it names a column type that is not known")
    marginals = _marginals(manifest, spec, path)
    recipe = _recipe(manifest.recipe, schema, spec, path) if manifest.recipe else None
    try:
        arrays = restored(manifest.arrays, contents)
        originals = rows_of(arrays, schema)
        method = recipe.draw.method if recipe else None
        conditionals = conditionals_of(arrays, method, schema)
        released = released_of(arrays, schema)
        if (method == ONCE) != (released is not None):
            raise ModelError("it does not hold what its method needs")
    except ModelError as error:
        raise _foreign(path, str(error)) from None
    columns = tuple(manifest.columns)
    return Model(
        schema,
        blocks,
        ledger,
        marginals,
        recipe,
        originals,
        conditionals,
        released,
        columns=columns,
        dtypes=dtypes,
    )


def _unused(path: str | Path) -> AbstractContextManager[None]:
    """Wait until nobody samples the model that is about to be replaced, if there is one."""
    from pegsynth.synthesizers.spending import locked

    there = Path(path).is_file() and os.access(path, os.R_OK)
    return locked(path) if there else nullcontext()


def _open_account(model: Model, path: str | Path, identity: str, *, replacing: bool) -> None:
    """Write the record of a budgeted model before the model becomes visible."""
    if model.recipe is not None and model.released is None:
        from pegsynth.synthesizers.session import Session
        from pegsynth.synthesizers.spending import write_spent

        session = Session(model, model.recipe, RandomStream())
        write_spent(path, identity, session.spent, replacing=replacing)


def _stored(recipe: Recipe) -> StoredRecipe:
    budget = {
        name: getattr(recipe.budget, name)
        for name in ("epsilon", "delta", "epsilon_per_row", "l", "alpha")
    }
    draw = {name: getattr(recipe.draw, name) for name in DrawOptions.__dataclass_fields__}
    if recipe.draw.method in CHAIN_METHODS:
        draw["seed_pool"] = str(recipe.seed_pool)
    return StoredRecipe(
        recipe.order,
        recipe.prior,
        str(recipe.seed_pool),
        draw,
        budget,
        recipe.numerator,
        recipe.scale,
        json.dumps([event_to_builtins(event) for event in recipe.events]),
    )


def _recipe(stored: StoredRecipe, schema: Schema, spec: HashSpec, path: str | Path) -> Recipe:
    try:
        events = tuple(event_from_builtins(event) for event in json.loads(stored.events))
        draw = DrawOptions(**stored.draw)
        budget = Budget(**stored.budget, released_blocks=draw.method == ONCE)
        charges = tuple(event for event in events if isinstance(event, DRAWS))
        price = (charges[0].alpha_numerator, charges[0].alpha_denominator) if charges else (0, 1)
        draws = shape_of(schema, draw).event(*price) if charges else None
        details = detail_count(schema, draw)
    except (PegsynthError, TypeError, ValueError, RecursionError):
        raise _foreign(path, "its recipe is damaged") from None
    price = price if charges else (0, stored.scale)
    if (stored.numerator, stored.scale) != price or split_draws(draws, details) != charges:
        # What is drawn must be what is charged.
        raise _foreign(path, "its recipe does not fit its events")
    if draw.urn:
        raise _foreign(path, "it asks for urns, which no model file holds")
    return Recipe(
        max(len(spec.heads[i]) for i in plain_features(schema)),
        spec.tail_bits,
        stored.order,
        next((event for event in events if isinstance(event, Selection)), None),
        next((event for event in events if isinstance(event, NoisyCounts)), None),
        stored.prior,
        stored.seed_pool,
        draw,
        budget,
        stored.numerator,
        stored.scale,
        draws,
        details,
        _around(events),
    )


def _around(events: tuple[Event, ...]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Return the events before and after the draws."""
    places = [i for i, event in enumerate(events) if isinstance(event, DRAWS)]
    if not places:
        return events, ()
    return events[: places[0]], events[places[-1] + 1 :]


def _marginals(manifest: Manifest, spec: HashSpec, path: str | Path) -> Marginals | None:
    if not manifest.shares:
        return None
    shares = tuple(np.array(line, dtype=np.float64) for line in manifest.shares)
    sizes = tuple(len(line) for line in shares)
    if sizes != spec.category_counts or any(
        not len(line) or line.min() < 0 or not np.isclose(line.sum(), 1.0) for line in shares
    ):
        raise _foreign(path, "its marginals do not fit its schema")
    return Marginals(shares, manifest.total)


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


def _public_part(manifest: Manifest, path: str | Path) -> tuple[Any, HashSpec, Ledger]:
    try:
        schema = loads(manifest.schema, source=f"the schema inside {path}")
        heads = tuple(tuple(line) for line in manifest.heads)
        features = len(schema.features)
        if len(heads) != features or any(not 0 <= h < features for line in heads for h in line):
            raise _foreign(path, "its heads do not fit its schema")
        spec = hash_spec(schema, heads, manifest.tail_bits)
        return schema, spec, Ledger.from_json(bytes(manifest.ledger), source=f"{path}")
    except (SchemaError, ParameterError) as error:
        raise _foreign(path, f"its manifest is damaged ({error})") from None


def _read_blocks(file: Any, spec: HashSpec, path: str | Path) -> Iterator[Block]:
    features = len(spec.category_counts)
    if [(field.name, field.type) for field in file.schema_arrow] != _layout():
        raise _foreign(path, "its columns are not those of a model")
    most = max(_MOST_CELLS, _CELLS_PER_BYTE * Path(path).stat().st_size)
    parts: list[list[tuple[Int64, Int64, Int64]]] = [[] for _ in range(features)]
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
    for target in range(features):
        yield _checked_block(spec, target, parts[target], path)


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


def _checked_block(
    spec: HashSpec, target: int, parts: list[tuple[Int64, Int64, Int64]], path: str | Path
) -> Block:
    empty = np.empty(0, dtype=np.int64)
    keys, codes, counts = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (empty,) * 3
    )
    categories, space = spec.category_counts[target], spec.key_space(target)
    sorted_cells = (np.diff(keys) > 0) | ((np.diff(keys) == 0) & (np.diff(codes) > 0))
    if len(keys) and (
        not sorted_cells.all()
        or keys[0] < 0
        or int(keys[-1]) >= space
        or codes.min() < 0
        or codes.max() >= categories
        or counts.min() < 1
        or counts.max() > MOST_ROWS
        or int(counts.sum()) > MOST_ROWS
    ):
        raise _foreign(path, f"the counts of feature {spec.names[target]!r} do not fit the schema")
    if space * categories > dense_limit(len(spec.category_counts)):
        return SparseBlock.from_cells(categories, keys, codes, counts)
    table = np.zeros((space, categories), dtype=np.int64)
    table[keys, codes] = counts
    return DenseBlock(table)
