"""Small valid files of every kind, made by the product itself, for mutations to start from."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import polars as pl

from checks.fuzz.office import duckdb_bytes, sas_sample
from checks.fuzz.oracle import run
from checks.fuzz.tables import COLUMNS, VALID

PER_ROW = ("--epsilon-per-row", "1")
MODELS = {
    "plain.pegs": (),
    "once.pegs": ("--method", "pegs-once", "--epsilon", "1"),
    "capped.pegs": ("--method", "pegs-capped", "--epsilon", "1", "--rows", "10"),
    "blocks.pegs": ("--method", "pegs-rs", "--epsilon", "1", "--rows", "10"),
    "tree.pegs": ("--method", "cart"),
    "regression.pegs": ("--method", "pmi", "--epsilon", "1", "--rows", "10"),
    "cells.pegs": ("--method", "contingency", "--epsilon", "1", "--rows", "10"),
    "margins.pegs": ("--method", "marginal", "--epsilon", "1", "--rows", "10"),
}
ESTIMATES = (
    "dataset,term,estimate,variance\n1,x,0.5,0.1\n1,y,2,0.3\n2,x,0.6,0.1\n2,y,2.1,0.2\n3,x,0.4,0.1\n"
    "3,y,1.9,0.2\n"
)
RICH_SCHEMA = """\
format = 1
reviewed = true
[table]
unit = "u"
rows_per_unit = 3
[[features]]
name = "a"
label = "first"
role = "quasi-identifier"
categories = ["x", "y", "z"]
unknown = "category"
[[features]]
name = "b"
kind = "ordinal"
categories = ["p", "q"]
missing = [""]
not_applicable = ["n/a"]
heads = ["a"]
[[features]]
name = "c"
role = "sensitive"
categories = ["=1+1", "k"]
l = 1.5
parent = "a"
[[features]]
name = "n"
kind = "numeric"
bins = { lowest = 0, highest = 100, count = 4 }
shares = [0.25, 0.25, 0.25, 0.25]
[[features]]
name = "u"
role = "identifier"
[[rules]]
label = "never"
forbid = { a = ["x"], b = ["q"] }
"""


def build(folder: Path) -> None:
    """Write the corpus into a folder; every command that makes it must succeed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.csv").write_text(_table())
    (folder / "estimates.csv").write_text(ESTIMATES)
    (folder / "rich.toml").write_text(RICH_SCHEMA)
    frame = pl.read_csv(folder / "data.csv")
    (folder / "data.duckdb").write_bytes(duckdb_bytes(frame))
    schema = folder / "schema.toml"
    _done("schema", folder / "data.csv", "--binning", "equal-width", "-o", schema)
    review(schema)
    (folder / "iris.csv").write_text(_sas_table())
    _done("schema", folder / "iris.csv", "--binning", "equal-width", "-o", folder / "iris.toml")
    review(folder / "iris.toml")
    table = (folder / "data.csv", "--schema", schema, "--threads", "1")
    for name, flags in MODELS.items():
        _done("fit", *table, "-o", folder / name, *flags)
    for name, flags in {
        "once": ("--epsilon", "1", "--method", "pegs-once"),
        "row": PER_ROW,
    }.items():
        output = folder / f"{name}.csv"
        _done(
            "synthesize",
            *table,
            "-o",
            output,
            "--rows",
            "20",
            "--ledger",
            output.with_suffix(".json"),
            *flags,
        )
    _done(
        "evaluate",
        folder / "data.csv",
        folder / "once.csv",
        "--schema",
        schema,
        "--json",
        folder / "metrics.json",
        "--threads",
        "1",
    )
    with _checkpoint_kept():
        _done("fit", *table, "-o", folder / "resumed.pegs", "--resume", folder / "counts.resume")


def review(schema: Path) -> None:
    """Declare a drafted schema public, as a reviewer does."""
    text = schema.read_text(encoding="utf-8")
    schema.write_text(re.sub(r"^reviewed = false$", "reviewed = true", text, flags=re.MULTILINE))


def _table() -> str:
    source = random.Random(1)
    lines = [",".join(COLUMNS)]
    for _ in range(40):
        picks = (source.choice(VALID[name]) for name in COLUMNS)
        lines.append(",".join("" if value is None else str(value) for value in picks))
    return "\n".join(lines) + "\n"


def _sas_table() -> str:
    """Return the rows of the sound SAS data set as CSV."""
    import pyreadstat

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "iris.sas7bdat")
        path.write_bytes(sas_sample())
        found, _ = pyreadstat.read_sas7bdat(str(path), output_format="dict")
    return pl.DataFrame(found).write_csv()


def _done(*arguments: object) -> None:
    outcome = run([str(each) for each in arguments])
    if outcome.code or outcome.error:
        raise RuntimeError(f"{arguments[0]} failed: {outcome.err}{outcome.error}")


@contextmanager
def _checkpoint_kept() -> Iterator[None]:
    """Leave the checkpoint of a finished command behind, as an interruption would."""
    with mock.patch("pegsynth.methods.checkpoint.Checkpoint.remove"):
        yield
