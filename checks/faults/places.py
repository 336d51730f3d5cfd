"""A place to work in: a table full of secrets, its schema, and a search for what leaked.

Every row holds a secret name, which no output may ever show, and a secret amount with so many
digits that no draw hits it by chance. `leaks` looks for both in the bytes of a file and in
its columns, where compression would hide them.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from pegsynth.schema import Feature, Schema

NAME = "SECRET-NAME-"
LEVELS = {"a": ("x", "y", "z"), "b": ("p", "q", "r", "s"), "c": ("0", "1")}
# Of a billion possible amounts a few real ones may be drawn by chance, never so many.
FEWEST_TELLTALE = 20
_BEGINNING = 1000
_NUMBERS = re.compile(rb"\d{1,3}\.\d{1,6}(?!\d)")


@dataclass(frozen=True)
class Place:
    """A folder with ``data.csv`` (and its parts), ``schema.toml``, ``out`` and ``tmp``."""

    folder: Path
    amounts: frozenset[float]

    @property
    def out(self) -> Path:
        """Where commands write."""
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        """The ``TMPDIR`` of commands."""
        return self.folder / "tmp"


def make_place(folder: Path, *, rows: int = 4000, parts: int = 20, seed: int = 1) -> Place:
    """Write the table, as one file and in parts, and its reviewed schema."""
    words = np.random.default_rng(seed)
    # An amount is a whole number of millionths: exact in the file and after reading.
    amounts = np.round(words.uniform(0, 1000, rows), 6)
    table = pl.DataFrame(
        {name: words.choice(levels, rows) for name, levels in LEVELS.items()}
        | {"amount": amounts, "person": [f"{NAME}{number:06}" for number in range(rows)]}
    )
    for name in ("out", "tmp", "parts"):
        (folder / name).mkdir(parents=True)
    table.write_csv(folder / "data.csv")
    for number, part in enumerate(table.iter_slices(-(-rows // parts))):
        part.write_parquet(folder / "parts" / f"{number:03}.parquet")
    features = [Feature(name, categories=levels) for name, levels in LEVELS.items()]
    edges = tuple(float(edge) for edge in range(0, 1001, 100))
    features.append(Feature("amount", kind="numeric", edges=edges))
    features.append(Feature("person", role="identifier"))
    Schema(tuple(features), reviewed=True).save(folder / "schema.toml")
    return Place(folder, frozenset(amounts.tolist()))


def leaks(path: Path, place: Place) -> list[str]:
    """Name the secrets that a file holds, in its bytes or in its columns."""
    content = path.read_bytes()
    found = ["a name"] if NAME.encode() in content else []
    numbers = {float(text) for text in _NUMBERS.findall(content)}
    if len(numbers & place.amounts) >= FEWEST_TELLTALE:
        found.append("amounts as text")
    if content.startswith(b"CONFIDENTIAL") and b'"kind":"model"' in content[:_BEGINNING]:
        return [*found, "a confidential model"]
    table = _columns(content)
    return found if table is None else found + _in_columns(table, place)


def _columns(content: bytes) -> pa.Table | None:
    for read in (pq.read_table, lambda raw: ipc.open_file(raw).read_all()):
        try:
            return read(io.BytesIO(content))
        except (pa.ArrowInvalid, OSError):
            continue
    return None


def _in_columns(table: pa.Table, place: Place) -> list[str]:
    found: list[str] = []
    for name in table.column_names:
        values = table.column(name).to_pylist()
        if any(NAME in value for value in values if isinstance(value, str)):
            found.append(f"names in column {name}")
        real = sum(value in place.amounts for value in values if isinstance(value, float))
        if real >= FEWEST_TELLTALE:
            found.append(f"amounts in column {name}")
        if any(NAME.encode() in value for value in values if isinstance(value, bytes)):
            found.append(f"names in column {name}")
    return found
