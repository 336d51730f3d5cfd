"""The dialect of a text file, recognised from the file itself; for drafts alone.

Encoding, separator and marks of numbers are found by looking at values, so that what is found
goes into the draft, is said, and is for a person to review. A release never comes here (R30).
"""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from pegsynth.errors import DataError
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.csv_read import open_text
from pegsynth.tables.file_kinds import table_format
from pegsynth.tables.file_sets import File

_PIECE = 1 << 20
_LINES = 2_000
_USUAL_SEPARATORS = (",", ";", "\t", "|")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

_BOTH = re.compile(r"[+-]?\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})+([.,])\d+")
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})+")
_ONE_GROUP = re.compile(r"[+-]?\d{1,3}([.,])\d{3}")
_BROKEN = re.compile(r"[+-]?\d*([.,])\d+(?:[eE][+-]?\d+)?")


def recognised(file: File, stated: Dialect) -> Dialect:
    """Return the dialect of a file: what was stated, and the rest as it seems to be.

    Only what differs from the usual is in it. Files that are no text have none.
    """
    if table_format(file) != "csv":
        return stated
    encoding = stated.encoding or _encoding(file)
    lines = _first_lines(file, Dialect(encoding=encoding))
    usual = Dialect().settled(str(file)).separator
    separator = stated.separator or _separator(lines, usual)
    settled = Dialect(separator=separator, encoding=encoding).settled(str(file))
    cells = _columns(lines, settled.separator)
    found = Dialect(
        separator="" if separator == usual else separator,
        encoding="" if encoding == "utf-8" else encoding,
        **_marks(cells, settled.separator),
    )
    return stated.over(found)


def _encoding(file: File) -> str:
    """Return UTF-8 if all of the file is, or what other bytes are likely to mean."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8, page = True, True
    undefined = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
    with open_text(file, Dialect()) as stream:
        piece = stream.read(_PIECE)
        if piece[:2] in _MARKS:
            return _MARKS[piece[:2]]
        while piece and (utf8 or page):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                utf8 = False
            page = utf8 or not undefined.search(piece)
            piece = stream.read(_PIECE)
    if utf8:
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            utf8 = False
    return "utf-8" if utf8 else "windows-1252" if page else "latin-1"


def _first_lines(file: File, dialect: Dialect) -> list[str]:
    with open_text(file, dialect) as stream:
        text = stream.read(_PIECE).decode(errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()
    # The last one may be cut.
    return lines[: min(_LINES, max(1, len(lines) - 1))]


def _separator(lines: Sequence[str], usual: str) -> str:
    """Return what cuts the lines into the most fields, as many in nearly all of them."""
    best, most = usual, 1
    for mark in dict.fromkeys((usual, *_USUAL_SEPARATORS)):
        widths = [len(cells) for cells in _cut(lines, mark)]
        if not widths or widths[0] <= most:
            continue
        alike = sum(width == widths[0] for width in widths)
        if alike >= 0.9 * len(widths):
            best, most = mark, widths[0]
    return best


def _cut(lines: Iterable[str], mark: str) -> Iterator[list[str]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=mark)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue
        if cells:
            yield cells


def _columns(lines: Sequence[str], mark: str) -> list[list[str]]:
    _, *rows = list(_cut(lines, mark)) or [[]]
    return [
        [cell.strip() for cell in column if cell and cell.strip()]
        for column in itertools.zip_longest(*rows)
    ]


def _marks(columns: Iterable[Sequence[str]], separator: str) -> dict[str, str]:
    """Find the decimal and the thousands mark from columns that hold nothing but numbers."""
    decimals: set[str] = set()
    thousands: set[str] = set()
    unsure: set[str] = set()
    for cells in columns:
        if not cells or sum(map(_is_number, cells)) < 0.95 * len(cells):
            continue
        for cell in cells:
            if (found := _BOTH.fullmatch(cell)) and found[1] != found[2]:
                thousands.add(found[1])
                decimals.add(found[2])
            elif found := _GROUPS.fullmatch(cell):
                thousands.add(found[1])
            elif found := _ONE_GROUP.fullmatch(cell):
                unsure.add(found[1])
            elif found := _BROKEN.fullmatch(cell):
                decimals.add(found[1])
    if "," in unsure and not decimals & {","} and not thousands:
        # 1,234 alone may mean either; files with commas between fields are English.
        (thousands if separator == "," or "." in decimals else decimals).add(",")
    if "." in unsure and decimals == {","} and not thousands:
        thousands.add(".")
    if len(decimals) > 1 or len(thousands) > 1 or decimals & thousands:
        return {}
    decimal = "".join(decimals - {"."})
    group = "".join(thousands)
    if group == "." and not decimal:
        decimal = ","
    return {"decimal": decimal, "thousands": group}


def _is_number(cell: str) -> bool:
    patterns = (_BOTH, _GROUPS, _ONE_GROUP, _BROKEN)
    return cell.lstrip("+-").isdigit() or any(p.fullmatch(cell) for p in patterns)


def check_known(dialects: Sequence[tuple[File, Dialect]]) -> Dialect:
    """Return the dialect of several files, which must be one."""
    (first, dialect), *others = dialects
    for file, other in others:
        if other != dialect:
            raise DataError(
                f"{file}: it seems to be written in another way ({other.said() or 'plain CSV'}) "
                f"than {first}; write both alike, or state --separator, --decimal and --encoding"
            )
    return dialect
