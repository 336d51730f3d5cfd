"""What documents say of preprocessing before counting: the cap, bounds, unlisted values, recodings.

All of it follows from the schema and the ledger. How many rows or values it concerned is
computed from the original, and is said nowhere unless it was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegsynth.privacy import UnitBound
from pegsynth.privacy.statement import rows_folded
from pegsynth.publishing.facts import RunFacts
from pegsynth.schema import Feature
from pegsynth.schema.feature import number_text
from pegsynth.schema.temporal import bound_text

_MOST_NAMED = 12


def deeds_section(facts: RunFacts) -> str:
    """Return a section of HOW-TO-ANALYSE.md; empty where nothing was done."""
    lines = deeds_said(facts)
    if not lines:
        return ""
    items = "\n".join(f"- {line}" for line in lines)
    paid = (
        " `QUALITY.md` has the number of units that were cut, with noise."
        if facts.units_paid_for
        else ""
    )
    return f"""## What was done to the original before it was counted

{items}

How many rows and values this concerned is confidential, and not stated here.{paid}"""


def deeds_said(facts: RunFacts) -> list[str]:
    """Return one sentence or two for every step, and which way it pulls."""
    return [*_cap(facts), *_values(facts)]


def _cap(facts: RunFacts) -> Iterator[str]:
    unit, folded = code(facts.unit or "unit"), rows_folded(facts.ledger)
    if folded is not None:
        yield (
            f"Of the rows of one {unit} the first {folded} count, in their order; later ones "
            f"were left out. So whoever has more than {folded} rows has fewer here."
        )
        return
    for event in facts.ledger.events:
        if isinstance(event, UnitBound):
            most = event.rows_per_unit
            rows = "one row" if most == 1 else f"{most} rows"
            counted = "was counted" if most == 1 else "were counted"
            yield (
                f"At most {rows} of one {unit} {counted}, drawn at random; a {unit} with "
                "more counts for less than its rows. So whatever comes with having many rows comes "
                "out too rare: proportions are pulled towards those of units with few rows, and "
                "totals are too small. Proportions among units with few rows are not touched."
            )


def _values(facts: RunFacts) -> Iterator[str]:
    drawn = [each for each in facts.schema.features if each.name not in facts.kept]
    unlisted = [f.name for f in drawn if f.unknown == "category"]
    if unlisted:
        yield (
            f"Values of {names_in(unlisted)} that `schema.toml` does not list were counted "
            "together, as one category: rare values cannot be told apart, and have not vanished."
        )
    measured = facts.edges_measured
    for feature in drawn:
        if feature.binned:
            yield _bounded(feature, measured=feature.name in measured)
        yield from _recoded(facts, feature)


def _bounded(feature: Feature, *, measured: bool) -> str:
    """Say what became of numbers and dates beyond the first and the last edge."""
    low, high = (
        bound_text(feature, edge) if feature.calendar else number_text(edge)
        for edge in feature.public_bounds
    )
    if measured:
        return (
            f"The ends of {code(feature.name)}, {low} and {high}, were measured with noise: values "
            "beyond, if there were any, were counted in the first and the last bin."
        )
    if feature.after is not None:
        return (
            f"Times from {code(feature.after)} to {code(feature.name)} above {high} "
            f"{feature.resolution}s, if there were any, were counted as that: means and spreads "
            "are too small."
        )
    return (
        f"Values of {code(feature.name)} below {low} or above {high}, if there were any, were "
        "counted as these bounds: means and spreads are pulled towards the middle."
    )


def _recoded(facts: RunFacts, feature: Feature) -> Iterator[str]:
    recoding = feature.recoding
    if recoding is None:
        return
    if recoding.round is not None:
        yield f"Numbers of {code(feature.name)} were rounded to multiples of {recoding.round:g}."
    if feature.name in facts.recoded:
        yield (
            f"Values of {code(feature.name)} were recoded into the categories of `schema.toml` by "
            "public rules; what a category holds together cannot be told apart."
        )
    if recoding.groups and feature.name in facts.rare_merged:
        yield (
            f"Categories of {code(feature.name)} with a small noisy count were merged: "
            "`schema.toml` says which."
        )


def names_in(names: Sequence[str]) -> str:
    """List names as code; a long list ends with the number of those left out."""
    listed = ", ".join(map(code, names[:_MOST_NAMED]))
    more = len(names) - _MOST_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def code(name: str) -> str:
    """Return a name as code in Markdown, on one line, whatever it holds."""
    return f"`{' '.join(name.split()).replace('`', chr(39))}`"
