"""Wild files of offices: text of other dialects, SPSS, Stata, SAS, Excel, DuckDB."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from fuzz.tables import COLUMNS, SECRET, SECRET_NUMBER, VALID, csv_bytes, number, text

ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "latin-1", "windows-1252", "windows-1251")
SEPARATORS = (",", ";", "tab", "|")
# The mark of a SAS data set, without which no reader looks further.
SAS_MAGIC = bytes.fromhex("00" * 12 + "c2ea8160b31411cfbd92080009c7318c181f1011")


def dialect_case(source: random.Random) -> tuple[str, bytes, tuple[str, ...]]:
    """Return a name, bytes of a text file in some dialect, and flags that may or may not fit."""
    found = csv_bytes(source).decode("utf-8", "replace")
    mark = source.choice((",", ";", "\t", "|"))
    coding = source.choice(("utf-8", "utf-16", "latin-1", "cp1252"))
    content = found.replace(",", mark).encode(coding, "replace")
    packed = source.choice(("", "", ".gz", ".zst"))
    if packed:
        codec = {".gz": "gzip", ".zst": "zstd"}[packed]
        content = pa.Codec(codec).compress(content, asbytes=True)
    flags: tuple[str, ...] = ()
    if source.random() < 0.7:
        flags += ("--separator", source.choice(SEPARATORS))
    if source.random() < 0.6:
        flags += ("--encoding", source.choice(ENCODINGS))
    if source.random() < 0.4:
        flags += ("--decimal", source.choice((",", ".")))
    if source.random() < 0.2:
        flags += ("--thousands", source.choice(("'", " ")))
    return f"bad.{source.choice(('csv', 'tsv', 'txt'))}{packed}", content, flags


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


def sas_sample() -> bytes:
    """Return a sound SAS data set, which nothing here can write."""
    return gzip.decompress((Path(__file__).parent / "seeds" / "iris.sas7bdat.gz").read_bytes())


def sas_bytes(source: random.Random) -> bytes:
    """Return a SAS data set with other numbers in it, or something that begins as one does."""
    if source.random() < 0.7:
        content = bytearray(sas_sample())
        # Most of the file is empty; what it says of itself and its rows stands in few places.
        told = [place for place in range(0, len(content), 8) if any(content[place : place + 8])]
        for _ in range(source.choice((0, 1, 1, 2, 5, 30))):
            place = source.choice(told)
            width = source.choice((1, 2, 4, 8))
            content[place : place + width] = source.choice(
                (source.randbytes(width), b"\xff" * width, b"\0" * width, b"\x7f" * width)
            )
        return bytes(content)
    return SAS_MAGIC + source.randbytes(source.choice((32, 256, 4096, 70_000)))


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


def duckdb_bytes(frame: pl.DataFrame) -> bytes:
    """Write a table as the only one of a DuckDB file."""
    import duckdb

    def write(path: str) -> None:
        with duckdb.connect(path) as connection:
            connection.register("frame", frame.to_arrow())
            connection.execute("CREATE TABLE t AS SELECT * FROM frame")

    return _made(write, "duckdb")
