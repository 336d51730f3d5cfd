"""What a guarantee will assume of a table because its schema says so, in words.

A schema goes in, lines come out; no table is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

_MOST_NAMES = 6


def assumed(schema: Schema) -> Iterator[str]:
    """Yield what will be taken for public or true, and what is not protected."""
    if schema.unit is None:
        yield (
            "One row is protected: neighbouring tables differ in one row. If a person can have "
            "several rows, name the column that tells them under [table], as unit."
        )
    elif schema.panel is not None:
        panel = schema.panel
        yield (
            f"All rows of one {panel.unit!r} are protected together: they are folded into one row "
            f"in the order of {panel.time!r}, and at most {panel.most} count. Prices do not grow "
            "with that number."
        )
    else:
        yield (
            f"All rows of one {schema.unit!r} are protected together, of which at most "
            f"{schema.rows_per_unit} count (rows_per_unit); prices grow with that number."
        )
    if schema.reviewed:
        signed = " by ".join(filter(None, (schema.reviewed_on, schema.reviewer)))
        yield f"Reviewed{f' ({signed})' if signed else ''}: a person declared all of it public."
    else:
        yield "Not reviewed: a release is refused, or made without a guarantee."
    yield from _named(
        schema.features,
        ("Read off the data, and public only by that declaration: {}.", "drafted_from_data"),
    )
    if schema.drafted_rules:
        yield f"{len(schema.drafted_rules)} rules were found in the data; the same holds for them."
    yield from _named(
        schema.features,
        ("Edges are measured, and paid for: {}.", "private_edges"),
        (
            "Categories are found by noisy counts, and paid for: {}. It takes a --delta, and a "
            "value that nobody else has may come to light with a small part of it.",
            "private_categories",
        ),
        ("Rare categories are merged by noisy counts, and paid for: {}.", "merges_rare"),
    )
    for each in schema.features:
        if each.recoding is not None:
            yield (
                f"Recoded row by row before counting, by public rules: {each.name!r} "
                f"({each.recoding.said()})."
            )
    yield from _named(
        schema.columns,
        ("Neither read nor modelled, written from codes by public texts: {}.", "label_of"),
    )
    for each in schema.features:
        if each.after is not None:
            yield (
                f"{each.name!r} is counted from {each.after!r}: before it counts as the same "
                "moment, and where the other is not known it is missing."
            )
    yield from _named(
        [each for each in schema.features if each.unknown == "error"],
        ("A value that is not listed, or no number or date, refuses the table: {}.", "modelled"),
    )
    yield from _named(
        [each for each in schema.features if not each.missing],
        ("A missing value refuses the table: {}.", "modelled"),
    )
    yield from _named(
        schema.features,
        ("Taken to be public knowledge: the heads of {}.", "heads"),
        ("Taken to be public knowledge: the parents of {}.", "parent"),
        ("Taken to be public knowledge: the shares of {}.", "shares"),
    )
    if schema.rules:
        yield f"Taken to be public knowledge: {len(schema.rules)} rules."
    yield from _named(schema.columns, ("Dropped: {}.", "dropped"))
    if schema.dialect:
        yield f"The table is text of this form: {schema.dialect.said()}."


def _named(columns: Sequence[Feature], *sentences: tuple[str, str]) -> Iterator[str]:
    """Yield each sentence with the names of the columns that have a property, if any has."""
    for sentence, stated in sentences:
        names = [repr(each.name) for each in columns if getattr(each, stated)]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        if names:
            yield sentence.format(", ".join(names[:_MOST_NAMES]) + more)
