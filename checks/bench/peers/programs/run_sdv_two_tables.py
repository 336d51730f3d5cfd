"""The hierarchical synthesizer of SDV (HMA) on two tables, every feature categorical; no privacy.

The folder that is the program's only argument holds ``units.csv``, ``rows.csv`` and
``keys.json``: the column that both tables have, and the features of each. The program leaves
``synthetic-units.csv``, ``synthetic-rows.csv`` and ``times.json`` there.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from exchange import clocks
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer

PACKAGES = ("sdv", "copulas", "rdt", "numpy", "pandas")


def metadata_of(key: str, features: dict[str, list[str]]) -> Metadata:
    """Declare both tables and the key between them; nothing is detected."""
    tables: dict[str, Any] = {
        name: {
            "columns": {key: {"sdtype": "id"}}
            | {feature: {"sdtype": "categorical"} for feature in features[name]}
        }
        for name in ("units", "rows")
    }
    tables["units"]["primary_key"] = key
    link = {
        "parent_table_name": "units",
        "parent_primary_key": key,
        "child_table_name": "rows",
        "child_foreign_key": key,
    }
    return Metadata.load_from_dict({"tables": tables, "relationships": [link]})


def read(path: Path, key: str) -> pd.DataFrame:
    """Read a table: whole numbers as keys, everything else as text, and no text means missing."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.astype({key: "int64"})


def main() -> None:
    folder = Path(sys.argv[1])
    told = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
    key, features = told["key"], told["features"]
    tables = {name: read(folder / f"{name}.csv", key) for name in ("units", "rows")}
    start = clocks()
    model = HMASynthesizer(metadata_of(key, features), verbose=False)
    model.fit(tables)
    fitted = clocks()
    print(f"fitted: {fitted[1] - start[1]:.1f} s of processor time", flush=True)
    drawn = model.sample_scale(scale=1.0)
    end = clocks()
    for name, table in drawn.items():
        columns = [key, *features[name]]
        table[columns].to_csv(folder / f"synthetic-{name}.csv", index=False)
    times = {
        "fit_cpu": fitted[1] - start[1],
        "sample_cpu": end[1] - fitted[1],
        "versions": {name: version(name) for name in PACKAGES},
    }
    (folder / "times.json").write_text(json.dumps(times), encoding="utf-8")


if __name__ == "__main__":
    main()
