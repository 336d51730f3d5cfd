"""The kinds of files that tables are read from and written to: one entry for each.

A new reader is a module and its entry here. What names a file's kind, opens it, writes it and
speaks of it in messages follows from the entry.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What a format can hold.

    Parameters
    ----------
    names
        Names that columns may have; words that a program keeps for itself are none.
    name_bytes
        The most bytes of a name.
    caseless
        Whether names that differ in upper and lower case only are the same.
    columns, rows
        The most of a table.
    """

    names: re.Pattern[str] = re.compile(r"[\s\S]*")
    name_bytes: int = sys.maxsize
    caseless: bool = False
    columns: int = sys.maxsize
    rows: int = sys.maxsize


@dataclass(frozen=True)
class FileKind:
    """One kind of files.

    Parameters
    ----------
    name
        What the program calls it.
    extensions
        What names of such files end with.
    opener
        Module and function that open one: of this package, or for `foreign` kinds of
        `pegsynth.tables.foreign`.
    writer
        Module and class that write one; empty where none is written.
    written
        The extensions that are written; None for all.
    foreign
        What messages call such a file if a process of its own reads it.
    writes_with, extra
        The package that writing needs, and our extra that installs what reading and writing need.
    tables, queries
        Whether a file holds several tables, and answers queries.
    codebook
        Whether its header describes its columns.
    limits
        What can be written in one.
    """

    name: str
    extensions: tuple[str, ...]
    opener: str
    writer: str = ""
    written: tuple[str, ...] | None = None
    foreign: str = ""
    writes_with: str = ""
    extra: str = ""
    tables: bool = False
    queries: bool = False
    codebook: bool = False
    limits: Limits = Limits()

    def writes(self, path: object) -> bool:
        """Say whether tables are written in a file of that name."""
        endings = self.extensions if self.written is None else self.written
        return bool(self.writer) and str(path).lower().endswith(endings)


def named(place: str) -> Any:
    """Return what ``module:name`` stands for in this package; libraries are loaded by need."""
    module, name = place.split(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


_STATISTICS: dict[str, Any] = {
    "opener": "statistics_files:StatisticsFile",
    "writes_with": "pyreadstat",
    "extra": "office",
    "codebook": True,
}
_OFFICE = "office_write:OfficeWriter"
_ARROW = "table_output:ArrowWriter"
_TEXTS = (".csv", ".tsv", ".txt")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind(
            "csv",
            tuple(
                f".{name}{end}" for name in ("csv", "tsv", "txt") for end in ("", *_COMPRESSIONS)
            ),
            "csv_read:open_csv",
            "table_output:CsvWriter",
        ),
        FileKind("parquet", (".parquet", ".pq"), "arrow_read:open_parquet", _ARROW),
        FileKind("ipc", (".arrow", ".feather", ".ipc"), "arrow_read:open_ipc", _ARROW),
        FileKind(
            "spss",
            (".sav", ".zsav"),
            foreign="an SPSS",
            writer=_OFFICE,
            limits=Limits(
                re.compile(
                    r"(?!(?i:all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with)\Z)"
                    r"[^\W\d_@#$.][\w@#$.]{0,62}(?<![.])"
                ),
                name_bytes=64,
                caseless=True,
            ),
            **_STATISTICS,
        ),
        FileKind(
            "stata",
            (".dta",),
            foreign="a Stata",
            writer=_OFFICE,
            limits=Limits(
                re.compile(
                    r"(?!(?:_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_[nN]|_pi|_pred"
                    r"|_rc|_skip|strL|str\d+|using|with)\Z)[A-Za-z_][A-Za-z0-9_]{0,31}"
                )
            ),
            **_STATISTICS,
        ),
        FileKind("sas", (".sas7bdat",), foreign="a SAS", **_STATISTICS),
        FileKind("xport", (".xpt",), foreign="a SAS transport", **_STATISTICS),
        FileKind(
            "excel",
            (".xlsx", ".xlsm", ".xlsb", ".xls"),
            "excel:ExcelSheet",
            _OFFICE,
            (".xlsx",),
            foreign="an Excel",
            writes_with="xlsxwriter",
            extra="office",
            tables=True,
            limits=Limits(re.compile(r"[\s\S]{1,255}"), columns=16_384, rows=1_048_575),
        ),
        FileKind(
            "duckdb",
            (".duckdb",),
            "duck:DuckTable",
            foreign="a DuckDB",
            extra="duckdb",
            tables=True,
            queries=True,
        ),
    )
}
EXTENSIONS: Mapping[str, str] = {
    ending: kind.name for kind in KINDS.values() for ending in kind.extensions
}


def table_format(path: object) -> str | None:
    """Return the kind of table that the extension of a file name says, else None."""
    suffixes = [each.lower() for each in PurePosixPath(str(path)).suffixes[-2:]]
    return EXTENSIONS.get("".join(suffixes)) or EXTENSIONS.get(suffixes[-1] if suffixes else "")


def compression_of(path: object) -> str | None:
    """Return how a text file is compressed, by its name."""
    ending = str(path).lower()
    return next((how for end, how in _COMPRESSIONS.items() if ending.endswith(end)), None)


def known_extensions(*, writable: bool = False) -> str:
    """Return the extensions of tables for a message."""
    plain = [
        ending
        for ending, kind in EXTENSIONS.items()
        if not compression_of(ending) and not (writable and not KINDS[kind].writes(ending))
    ]
    return ", ".join(plain) + "; text also with .gz or .zst"
