"""Model files of formats 1 and 2, which were Parquet; they are read and no longer written.

Each row is a cell (feature, key, category, count) or an array; the manifest is the metadata.
Format 1 also holds options that a method does not take, at their defaults. In goes a file, out
come its manifest, cells and arrays, every size checked before anything is unpacked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pegsynth.errors import DataError, ModelError
from pegsynth.io.parquet_footer import row_groups
from pegsynth.io.parquet_pages import check_pages
from pegsynth.methods.stored_model import Arrays, Cells
from pegsynth.storage.model_manifest import Manifest

MAGIC = b"PAR1"
_NEWEST = 2
_KEY = b"pegsynth"
_COUNTS = ("feature", "key", "category", "count")
_COLUMNS = (*_COUNTS, "name", "content")
_TYPES = ("|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8", "|b1", "|i1", "<i2")
# A small file may stand for any number of cells, so how many are taken in is bounded.
_MOST_CELLS = 1 << 24
_CELLS_PER_BYTE = 100
_MOST_BYTES = 1 << 27
_MOST_GROWTH = 256


class _Array(msgspec.Struct, frozen=True):
    """Name, type and shape of one array."""

    name: str
    dtype: str
    shape: list[int]


class _OlderManifest(Manifest, frozen=True, kw_only=True):
    """The manifest with what the container says today."""

    notice: str
    arrays: list[_Array] = msgspec.field(default_factory=list)


def read_older_manifest(path: Path) -> Manifest:
    """Read the manifest; ModelError without the name of the file."""
    with _opened(path) as file:
        return _manifest(file)


def read_older_content(path: Path, features: int) -> tuple[list[Cells], Arrays]:
    """Read the cells of every feature, and the arrays; ModelError without the name of the file."""
    with _opened(path) as file:
        stored = _manifest(file).arrays
        cells = list(_read_cells(file, features, path))
        contents = _read_contents(file, path, len(stored)) if stored else {}
    return cells, _restored(stored, contents)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _check_size(path)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise ModelError("this is not a model file, or it is truncated or damaged") from None


def _check_size(path: Path) -> None:
    """Refuse a file that would unpack to far more than it is."""
    try:
        with path.open("rb") as handle:
            check_pages(handle, most=_MOST_BYTES, growth=_MOST_GROWTH)
    except DataError as error:
        raise ModelError(str(error)) from None
    except ValueError:
        raise ModelError("its pages are damaged") from None


def _manifest(file: Any) -> _OlderManifest:
    text = (file.schema_arrow.metadata or {}).get(_KEY)
    if text is None:
        raise ModelError("this Parquet file is not a model")
    stated = re.match(rb'\{"format":(\d{1,9})\b', text)
    if stated is None or not 1 <= int(stated[1]) <= _NEWEST:
        raise ModelError("its manifest is damaged")
    try:
        return msgspec.json.decode(text, type=_OlderManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ModelError("its manifest is damaged") from None


def _layout() -> list[tuple[str, Any]]:
    """Return names and types of the columns of every such file."""
    import pyarrow as pa

    types = [pa.uint32(), pa.int64(), pa.uint32(), pa.int64(), pa.string(), pa.large_binary()]
    return list(zip(_COLUMNS, types, strict=True))


def _read_cells(file: Any, features: int, path: Path) -> Iterator[Cells]:
    """Yield keys, categories and counts of every feature."""
    if [(field.name, field.type) for field in file.schema_arrow] != _layout():
        raise ModelError("its columns are not those of a model")
    most = max(_MOST_CELLS, _CELLS_PER_BYTE * path.stat().st_size)
    parts: list[list[Cells]] = [[] for _ in range(features)]
    last = 0
    for batch in file.iter_batches(batch_size=1 << 20, columns=[*_COUNTS, "name"]):
        kept = batch.filter(batch.column("name").is_null())
        most -= kept.num_rows
        if most < 0 or any(kept.column(name).null_count for name in _COUNTS):
            raise ModelError("it holds cells that no model of its size has")
        feature, keys, codes, counts = (
            pl.Series(kept.column(name)).to_numpy().astype(np.int64) for name in _COUNTS
        )
        if not len(feature):
            continue
        if feature[0] < last or np.any(np.diff(feature) < 0) or feature[-1] >= features:
            raise ModelError("its cells are out of order")
        last = int(feature[-1])
        for target in np.unique(feature):
            chosen = slice(*np.searchsorted(feature, [target, target + 1]))
            parts[target].append((keys[chosen], codes[chosen], counts[chosen]))
    empty = np.empty(0, dtype=np.int64)
    for held in parts:
        columns = zip(*held, strict=True) if held else ((empty,),) * 3
        keys, codes, counts = (np.concatenate(column) for column in columns)
        yield keys, codes, counts


def _read_contents(file: Any, path: Path, arrays: int) -> dict[str, bytes]:
    """Return the raw bytes of every array in the file, one at a time."""
    most = max(_MOST_BYTES, _MOST_GROWTH * path.stat().st_size)
    contents: dict[str, bytes] = {}
    with path.open("rb") as handle:
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
                raise ModelError("it holds arrays that its manifest does not tell of")
            contents[name] = content or b""
    return contents


def _restored(stored: Sequence[_Array], contents: Mapping[str, bytes]) -> Arrays:
    """Return the arrays, refusing any whose bytes are not what was said of them."""
    if len({each.name for each in stored}) != len(stored) or len(stored) != len(contents):
        raise ModelError("its arrays are incomplete")
    found: Arrays = {}
    for each in stored:
        content = contents.get(each.name)
        known = each.dtype in _TYPES and all(0 <= size <= 1 << 40 for size in each.shape)
        if content is None or not known:
            raise ModelError("its arrays are damaged")
        dtype = np.dtype(each.dtype)
        if math.prod(each.shape) * dtype.itemsize != len(content):
            raise ModelError("its arrays are damaged")
        found[each.name] = np.frombuffer(content, dtype=dtype).reshape(each.shape).copy()
    return found
