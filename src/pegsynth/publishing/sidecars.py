"""Marks that travel with a table: inside a Parquet file, beside a CSV file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pegsynth.io.atomic import atomic_text
from pegsynth.publishing.facts import Facts


def sidecar_name(table: str) -> str:
    """Return the name that "CSV on the Web" gives the description of a file."""
    return f"{table}-metadata.json"


def write_sidecars(public: Path, facts: Facts) -> None:
    """Write a description beside every CSV table, which says first of all that it is synthetic."""
    if facts.table_format != "csv":
        return
    for table in facts.files():
        content: dict[str, Any] = {
            "@context": "http://www.w3.org/ns/csvw",
            "url": table,
            "dc:title": facts.title,
            "dc:description": facts.mark,
            "dc:type": f"{facts.kind_of_data} data",
            **({"dc:date": facts.date} if facts.date else {}),
            **({"dc:publisher": facts.about.owner} if facts.about.owner else {}),
            "dc:relation": "privacy.json",
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
        atomic_text(public / sidecar_name(table), text + "\n")
