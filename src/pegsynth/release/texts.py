"""The pages of the public folder: what is promised, and how to analyse the tables."""

from __future__ import annotations

from pegsynth.privacy import Ledger
from pegsynth.schema import Schema


def privacy_page(ledger: Ledger) -> str:
    """Return PRIVACY.md: the statement, and how to check it."""
    return (
        "# What this release promises\n\n"
        f"{ledger.statement().strip()}\n\n"
        "## How to check this page\n\n"
        "`privacy.json` lists every event that touched the original table, with all public\n"
        "parameters. `pegs inspect privacy.json` works the promise out again from these events\n"
        "alone.\n"
    )


def how_to_analyse(schema: Schema, *, rows: int, datasets: int, table_format: str) -> str:
    """Return HOW-TO-ANALYSE.md: what the tables are, and code that reads them."""
    reader = "read_csv" if table_format == "csv" else "read_parquet"
    return f"""# How to analyse these tables

The folder holds {datasets} synthetic table{"s" if datasets != 1 else ""} of {rows} rows each. \
Every row was drawn from a
perturbed model of the original table; none is a real record. `schema.toml` lists every
feature with its categories. Numeric features are drawn uniformly inside public bins, so
nothing finer than a bin is information.

Analyse each table as if it were the original, then average the estimates over the tables:

```python
import glob
import polars as pl

tables = [pl.{reader}(name) for name in sorted(glob.glob("synthetic-*.{table_format}"))]
counts = [table.group_by("{schema.names[0]}").len() for table in tables]
print(pl.concat(counts).group_by("{schema.names[0]}").agg(pl.col("len").mean()))
```

The virtual rows that protect people pull every table towards uniform distributions. No
combining rule corrects that bias, and standard errors computed from one synthetic table
are too small.
"""
