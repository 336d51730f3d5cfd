"""What public papers say of deeds before counting: the cap, bounds, unlisted values, recodings.

All of it follows from the codebook and the ledger. How many rows or values a deed concerned is
computed from the original, and is said nowhere unless it was bought.
"""

from __future__ import annotations

from collections.abc import Iterator

from pegsynth.privacy import Ledger, UnitBound
from pegsynth.privacy.statement import rows_folded
from pegsynth.schema import Feature, Schema

_MOST_NAMED = 12


def deeds_section(schema: Schema, ledger: Ledger) -> str:
    """Return a section of HOW-TO-ANALYSE.md; empty where nothing was done."""
    lines = deeds_said(schema, ledger)
    if not lines:
        return ""
    items = "\n".join(f"- {line}" for line in lines)
    return f"""## What was done to the original before it was counted

{items}

How many rows and values this concerned is confidential, and not stated here."""


def deeds_said(schema: Schema, ledger: Ledger) -> list[str]:
    """Return one sentence or two for every deed, and which way it pulls."""
    return [*_cap(schema, ledger), *_values(schema)]


def _cap(schema: Schema, ledger: Ledger) -> Iterator[str]:
    folded = rows_folded(ledger)
    if folded is not None:
        unit = schema.unit or next(
            str(each.parameters.get("column", "unit"))
            for each in ledger.assumptions
            if each.code == "panel"
        )
        yield (
            f"Of the rows of one `{unit}` the first {folded} count, in their order; later ones "
            "were left out. So long histories are shorter than they were."
        )
        return
    for event in ledger.events:
        if isinstance(event, UnitBound):
            unit, most = schema.unit or "unit", event.rows_per_unit
            rows = "one row" if most == 1 else f"{most} rows"
            counted = "was counted" if most == 1 else "were counted"
            yield (
                f"At most {rows} of one `{unit}` {counted}, drawn at random; a `{unit}` with "
                "more counts for less than its rows. So whatever goes with having many rows comes "
                "out too rare: shares are pulled towards those of units with few rows, and "
                "totals are too small. Shares among units with few rows are not touched."
            )


def _values(schema: Schema) -> Iterator[str]:
    unlisted = [f.name for f in schema.features if f.unknown == "category"]
    if unlisted:
        yield (
            f"Values of {_names(unlisted)} that the codebook does not list were counted together, "
            "as one category: rare values cannot be told apart, and have not vanished."
        )
    for feature in schema.features:
        if feature.kind == "numeric" and feature.edges and not feature.private_edges:
            low, high = feature.public_bounds
            yield (
                f"Numbers of `{feature.name}` below {low:g} or above {high:g}, if there were any, "
                "were counted as these bounds: means and spreads are pulled towards the middle."
            )
        yield from _recoded(feature)


def _recoded(feature: Feature) -> Iterator[str]:
    recoding = feature.recoding
    if recoding is None:
        return
    if recoding.round is not None:
        yield f"Numbers of `{feature.name}` were rounded to multiples of {recoding.round:g}."
    if recoding.groups or recoding.hierarchy is not None:
        yield (
            f"Values of `{feature.name}` were recoded into the categories of the codebook by "
            "public rules; what a category holds together cannot be told apart."
        )
    if recoding.rare:
        yield (
            f"Categories of `{feature.name}` with a small noisy count were merged into one, "
            "`(rare)`: which ones is part of the release."
        )


def _names(names: list[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{listed} and {more} more" if more > 0 else listed
