"""One sheet of an Excel workbook, every cell as its own text.

A cell of a workbook has its own kind, whatever stands above and below it. Each becomes text for
itself (R30). The first row that is not empty names the columns; a row without any value is no row.
"""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pegsynth.tables.foreign import Asked, Described, ForeignError, schema_text

if TYPE_CHECKING:
    import fastexcel

MOST_UNPACKED = 8 << 30
MOST_PACKED_FACTOR = 2_000
ROWS_AT_ONCE = 1 << 16


class ExcelSheet:
    """A sheet, by name; the first one if none is given."""

    def __init__(self, asked: Asked) -> None:
        try:
            import fastexcel
        except ImportError:
            raise ForeignError("missing-package", ["fastexcel"]) from None
        _check_size(asked.path)
        book = fastexcel.read_excel(asked.path)
        names = list(book.sheet_names)
        if asked.table is not None and asked.table not in names:
            raise ForeignError("no-sheet", names)
        if not names:
            raise ForeignError("broken")
        self._book, self._sheet = book, names[0] if asked.table is None else asked.table
        self._table: pa.Table | None = None

    def describe(self) -> Described:
        """Return the names of the columns; all hold text. Cells below them are not looked at."""
        names = _names(_columns(self._book, self._sheet, 1))
        rows = self._book.load_sheet(self._sheet, header_row=None, n_rows=0).total_height - 1
        return Described(schema_text(self.row_schema(names)), max(rows, 0), coded=names)

    def row_schema(self, columns: Sequence[str]) -> pa.Schema:
        """Return the types of some columns."""
        return pa.schema([(name, pa.string()) for name in columns])

    def batches(self, columns: Sequence[str], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows in order."""
        if self._table is None:
            self._table = _texts(self._book, self._sheet)
        chosen = self._table.select(list(columns)).slice(skip)
        yield from chosen.to_batches(max_chunksize=min(rows, ROWS_AT_ONCE))


def _check_size(path: str) -> None:
    """Refuse a workbook that unpacks to more than any real one."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise ForeignError("broken") from None
    packed = sum(part.compress_size for part in parts)
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MOST_UNPACKED or unpacked > MOST_PACKED_FACTOR * packed + (1 << 20):
        raise ForeignError("too-large")


def _texts(book: fastexcel.ExcelReader, name: str) -> pa.Table:
    """Return the rows below the names, those without any value left out."""
    columns = _columns(book, name)
    table = pa.Table.from_arrays([each.slice(1) for each in columns], names=_names(columns))
    some = pa.array([False] * table.num_rows, pa.bool_())
    for column in table.columns:
        some = pc.or_(some, pc.is_valid(column.combine_chunks()))
    return table.filter(some)


def _columns(book: fastexcel.ExcelReader, name: str, rows: int | None = None) -> list[pa.Array]:
    """Return the columns of a sheet with their names on top, or the first rows of them."""
    cells = book.load_sheet(name, header_row=None, n_rows=rows, dtypes="string")
    if not (cells.width and cells.height):
        return []
    numbers = book.load_sheet(name, header_row=None, n_rows=rows, dtypes="float")
    return [
        _dated(_exact(texts.cast(pa.string()), found))
        for texts, found in zip(cells.to_arrow().columns, numbers.to_arrow().columns, strict=True)
    ]


def _names(columns: Sequence[pa.Array]) -> list[str]:
    return [column[0].as_py() or "" for column in columns]


def _exact(texts: pa.Array, numbers: pa.Array) -> pa.Array:
    """Write numbers with all of their digits; the library rounds the texts of numbers.

    A cell of text that spells a number is that number; one that is not is a rounded number.
    """
    cells = texts.to_pylist()
    for row, number in enumerate(numbers.to_pylist()):
        text = cells[row]
        if number is None or text is None:
            continue
        with contextlib.suppress(ValueError):
            if float(text) != number and math.isfinite(number):
                cells[row] = repr(number)
    return pa.array(cells, pa.string())


def _dated(texts: pa.Array) -> pa.Array:
    """Write times as everywhere else: midnight as its date, a time of no day as that."""
    texts = pc.replace_substring_regex(texts, r"^1899-12-3[01] (\d\d:\d\d:\d\d(?:\.\d+)?)$", r"\1")
    texts = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d) 00:00:00$", r"\1")
    return pc.replace_substring_regex(
        texts, r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$", r"\1T\2"
    )
