"""Wild files of offices: text of other dialects, SPSS, Stata, SAS, Excel, DuckDB."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from checks.fuzz.mutations import NUMBERS
from checks.fuzz.tables import COLUMNS, SECRET, SECRET_NUMBER, VALID, csv_bytes, number, text

ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "latin-1", "windows-1252", "windows-1251")
SEPARATORS = (",", ";", "tab", "|")
# The mark of a SAS data set, without which no reader looks further.
SAS_MAGIC = bytes.fromhex("00" * 12 + "c2ea8160b31411cfbd92080009c7318c181f1011")
SAS_ROWS = range(0x100B8, 0x11828)
"""Where the rows of the sound one stand; the rest is what it says of itself."""


def dialect_case(
    source: random.Random, damaged: Callable[..., bytes]
) -> tuple[str, bytes, tuple[str, ...]]:
    """Return a name, bytes of a text file in some dialect, and flags that mostly fit."""
    mark = source.choice((",", ";", "\t", "|"))
    coding = source.choice(("utf-8", "utf-16", "latin-1", "windows-1252"))
    decimal = source.choice((",", ".")) if mark != "," else "."
    swapped = str.maketrans({",": mark, ".": decimal})
    content = csv_bytes(source).decode("utf-8", "replace").translate(swapped)
    fits = source.random() < 0.7
    flags = _fitting(mark, coding, decimal) if fits else _any_flags(source)
    written = content.encode(coding, "replace")
    kind = source.random()
    written = damaged(written, source) if kind < 0.2 else written
    packed = source.choice(("", "", ".gz", ".zst"))
    if packed:
        codec = {".gz": "gzip", ".zst": "zstd"}[packed]
        written = pa.Codec(codec).compress(written, asbytes=True)
    written = damaged(written, source) if kind > 0.9 else written
    return f"bad.{source.choice(('csv', 'tsv', 'txt'))}{packed}", written, flags


def _fitting(mark: str, coding: str, decimal: str) -> tuple[str, ...]:
    flags = ("--separator", "tab" if mark == "\t" else mark, "--encoding", coding)
    return (*flags, "--decimal", decimal) if decimal != "." else flags


def _any_flags(source: random.Random) -> tuple[str, ...]:
    flags: tuple[str, ...] = ()
    if source.random() < 0.7:
        flags += ("--separator", source.choice(SEPARATORS))
    if source.random() < 0.6:
        flags += ("--encoding", source.choice(ENCODINGS))
    if source.random() < 0.4:
        flags += ("--decimal", source.choice((",", ".")))
    if source.random() < 0.2:
        flags += ("--thousands", source.choice(("'", " ")))
    return flags


def _frame(source: random.Random) -> pl.DataFrame:
    """Make a table that mostly fits the schema, with secrets in it."""
    rows = source.choice((1, 3, 3, 8))
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        kind = source.random()
        if kind < 0.6:
            columns[name] = source.choices(VALID[name], k=rows)
        elif kind < 0.8:
            columns[name] = [text(source).replace("\0", "")[:200] for _ in range(rows)]
        else:
            columns[name] = [float(number(source)) % 1e300 for _ in range(rows)]
    return pl.DataFrame(columns, strict=False)


def _made(write: Callable[[str], None], extension: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t.{extension}")
        write(str(path))
        return path.read_bytes()


def statistics_bytes(source: random.Random, extension: str) -> bytes:
    """Write a table as a file of SPSS, Stata or SAS."""
    import pyreadstat

    frame = _frame(source)
    labels = {
        "variable_value_labels": {n: {1.0: SECRET} for n in COLUMNS if frame[n].dtype == pl.Float64}
    }
    write = {
        "sav": lambda p: pyreadstat.write_sav(
            frame, p, row_compress=source.random() < 0.5, **labels
        ),
        "zsav": lambda p: pyreadstat.write_sav(frame, p, compress=True, **labels),
        "dta": lambda p: pyreadstat.write_dta(frame, p, version=source.choice((8, 10, 13, 15))),
        "xpt": lambda p: pyreadstat.write_xport(
            frame, p, file_format_version=source.choice((5, 8))
        ),
    }[extension]
    try:
        return _made(write, extension)
    except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, ValueError, TypeError):
        return _made(lambda p: pyreadstat.write_sav(pl.DataFrame({"a": ["x"]}), p), "sav")


@cache
def sas_sample() -> bytes:
    """Return a sound SAS data set, which nothing here can write."""
    return gzip.decompress((Path(__file__).parent / "seeds" / "iris.sas7bdat.gz").read_bytes())


def sas_bytes(source: random.Random) -> bytes:
    """Return a SAS data set with other numbers in it, or something that begins as one does."""
    kind = source.random()
    if kind < 0.9:
        return rewritten(sas_sample(), source, SAS_ROWS if kind < 0.6 else range(0))
    return SAS_MAGIC + source.randbytes(source.choice((32, 256, 4096, 70_000)))


@cache
def _told(content: bytes, spared: range) -> tuple[int, ...]:
    """Return the places of 8 bytes that say something; most of such files is empty."""
    words = np.frombuffer(content[: len(content) // 8 * 8], np.uint64)
    return tuple(8 * int(each) for each in np.flatnonzero(words) if 8 * int(each) not in spared)


def rewritten(content: bytes, source: random.Random, spared: range = range(0)) -> bytes:
    """Write other numbers over those of a file, but for some of its places; its length stays."""
    told = _told(content, spared)
    found = bytearray(content)
    for _ in range(source.choice((0, 1, 1, 2, 5, 30))):
        width = source.choice((1, 1, 2, 4, 8))
        place = source.choice(told) + source.randrange(0, 8, width)
        found[place : place + width] = source.choice(
            (
                source.randbytes(width),
                b"\xff" * width,
                b"\0" * width,
                b"\x7f" * width,
                source.randrange(16).to_bytes(width, "little"),
                (source.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, "little"),
            )
        )
    return bytes(found[: len(content)])


def excel_bytes(source: random.Random) -> bytes:
    """Write a table as a workbook, cells of all kinds in one column."""
    import xlsxwriter

    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink, {"in_memory": True, "nan_inf_to_errors": True}) as book:
        sheet = book.add_worksheet(source.choice(("t", "Sheet1", "é")))
        for column, name in enumerate(COLUMNS):
            if source.random() < 0.97:
                sheet.write_string(0, column, name)
        for row in range(1, source.choice((1, 2, 4, 9))):
            for column, name in enumerate(COLUMNS):
                value: Any = source.choice(VALID[name])
                if source.random() < 0.2:
                    value = source.choice((text(source), SECRET_NUMBER, True, "=1+1", -0.0))
                if isinstance(value, str):
                    sheet.write_string(row, column, value.replace("\0", "")[:999])
                elif value is not None:
                    sheet.write(row, column, value)
    return sink.getvalue()


def inner_damage(content: bytes, source: random.Random, damaged: Callable[..., bytes]) -> bytes:
    """Damage one part of a workbook and pack it again: beyond the check of the archive."""
    import zipfile

    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(sink, "w") as new:
        names = old.namelist()
        chosen = source.choice(names)
        for name in names:
            part = old.read(name)
            new.writestr(name, damaged(part, source) if name == chosen else part)
    return sink.getvalue()


def duckdb_mended(content: bytes) -> bytes:
    """Work out the checksums of a DuckDB file again, so that what it says is believed."""
    found = bytearray(content)
    for start, size in ((0, 4096), (4096, 4096), (8192, 4096), *_blocks(len(content))):
        words = np.frombuffer(content[start + 8 : start + size], "<u8").astype(np.uint64)
        hashed = words * np.uint64(0xBF58476D1CE4E5B9)
        found[start : start + 8] = (5381 ^ int(np.bitwise_xor.reduce(hashed))).to_bytes(8, "little")
    return bytes(found)


def _blocks(length: int) -> list[tuple[int, int]]:
    """Return where the whole blocks of a DuckDB file of this length begin, and their size."""
    size = 1 << 18
    return [(start, size) for start in range(3 * 4096, length - size + 1, size)]


def duckdb_bytes(frame: pl.DataFrame) -> bytes:
    """Write a table as the only one of a DuckDB file."""
    import duckdb

    def write(path: str) -> None:
        with duckdb.connect(path) as connection:
            connection.register("frame", frame.to_arrow())
            connection.execute("CREATE TABLE t AS SELECT * FROM frame")

    return _made(write, "duckdb")
