"""Folders of Delta, Hudi and Iceberg tables are refused: their logs say which files count.

Such a folder also keeps files whose rows were deleted or rewritten. Read as plain files, people
who were deleted return, and rewritten rows count twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pegsynth.errors import DataError

Listed = Callable[[str], Sequence[str] | None]
"""The names in a folder; None for one that is not there."""

_REMEDIES = {
    "a Delta": "with DuckDB (COPY (SELECT * FROM delta_scan('..')) TO 'snapshot.parquet') or Spark "
    '(spark.read.format("delta"))',
    "a Hudi": 'with Spark (spark.read.format("hudi"))',
    "an Iceberg": "with DuckDB (COPY (SELECT * FROM iceberg_scan('..')) TO 'snapshot.parquet') or "
    'Spark (spark.read.format("iceberg"))',
}
_LOGS = {"_delta_log": "a Delta", ".hoodie": "a Hudi"}
_ICEBERG = re.compile(r"v?\d.*\.metadata\.json")
"""How Iceberg itself names its files; tables that were migrated in place have no ``data/``."""


def refuse_lakehouses(places: Iterable[str], listed: Listed) -> None:
    """Refuse files and folders that lie in or below the folder of a lakehouse table.

    Parameters
    ----------
    places
        Their full names, with slashes.
    listed
        Looks into a folder.
    """
    for folder in dict.fromkeys(folder for place in places for folder in _upwards(place)):
        found = _lakehouse(folder, listed)
        if found is not None:
            kind, mark = found
            raise DataError(
                f"{folder}: this folder is {kind} table (it has {mark}), and its files also "
                "hold rows that were deleted or replaced; export its current rows to a Parquet "
                f"file, {_REMEDIES[kind]}, and give that file"
            )


def _upwards(place: str) -> Iterator[str]:
    """Yield a place and the folders above it, up to the root or the bucket."""
    place = place.rstrip("/")
    while place and not place.endswith(("/", ":")):
        yield place
        place = place.rpartition("/")[0]


def _lakehouse(folder: str, listed: Listed) -> tuple[str, str] | None:
    """Return whose folder it is, and what tells it."""
    for mark, kind in _LOGS.items():
        if listed(f"{folder}/{mark}") is not None:
            return kind, mark
    tables = [
        name for name in listed(f"{folder}/metadata") or () if name.endswith(".metadata.json")
    ]
    if any(map(_ICEBERG.fullmatch, tables)) or (tables and listed(f"{folder}/data") is not None):
        return "an Iceberg", "metadata/*.metadata.json"
    return None
