"""`schema`: draft a codebook from a table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegsynth.cli.console import say
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import OutputError, ParameterError
from pegsynth.io.atomic import check_target
from pegsynth.io.read import open_table
from pegsynth.option_kinds import check_whole
from pegsynth.schema import Schema
from pegsynth.schema.binning import MAX_BINS
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.draft import table_dialect


@dataclass(frozen=True)
class DraftWishes:
    """How a draft is made."""

    min_count: int = 1
    bins: int = 20
    binning: Any = "equal-width"
    unit: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        check_whole("min_count", self.min_count)
        if not 1 <= self.bins <= MAX_BINS:
            raise ParameterError(f"--bins must be from 1 to {MAX_BINS:,}; it was {self.bins}")
        if self.binning not in ("equal-width", "quantile"):
            raise ParameterError(f"--binning is equal-width or quantile, not {self.binning!r}")


def draft(data: Any, output: Path, wishes: DraftWishes, stated: Dialect) -> None:
    """Draft a schema and say what to do with it; a reviewed one is replaced with `force` only."""
    check_replaceable(output, force=wishes.force)
    check_not_inputs((output,), data)
    dialect = table_dialect(data, stated)
    with open_table(data, dialect=dialect) as reader:
        schema = Schema.draft(
            reader,
            min_count=wishes.min_count,
            bins=wishes.bins,
            binning=wishes.binning,
            unit=wishes.unit,
        )
    schema.save(output)
    if schema.dialect:
        found = "as stated" if stated.over(dialect) == stated else "recognised, not certain"
        say(f"Read as text of this form ({found}; see [table] of the schema): {dialect.said()}.")
    dropped = [column.name for column in schema.columns if column.role == "identifier"]
    say(
        f"{output}: {len(schema.features)} features drafted. {_identifiers(dropped)}The file is "
        "CONFIDENTIAL until a person has checked that it holds public knowledge only and set "
        "reviewed = true."
    )


def check_replaceable(output: Path, *, force: bool) -> None:
    """Refuse to write where that cannot be done, or where somebody has reviewed a schema."""
    check_target(output)
    if not force and _reviewed(output):
        raise OutputError(
            f"{output}: this schema is reviewed, and a draft would replace it; choose another "
            "name, or replace it with --force"
        )


def _reviewed(file: Path) -> bool:
    """Whether a file says that a person has reviewed it, be it valid otherwise or not."""
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig")).get("reviewed") is True
    except (OSError, ValueError, RecursionError):
        return False


def _identifiers(names: Sequence[str], most: int = 10) -> str:
    """Say which columns a draft drops, if any."""
    if not names:
        return ""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Dropped as identifiers: {', '.join(map(repr, names[:most]))}{more}. "
