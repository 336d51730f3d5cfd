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
    features = schema.features
    drafted = [each.name for each in features if each.drafted_from_data]
    if drafted:
        yield f"Read off the data, and public only by that declaration: {_named(drafted)}."
    if schema.drafted_rules:
        yield f"{len(schema.drafted_rules)} rules were found in the data; the same holds for them."
    measured = [each.name for each in features if each.private_edges]
    if measured:
        yield f"Edges are measured, and paid for: {_named(measured)}."
    found = [each.name for each in features if each.private_categories]
    if found:
        yield (
            f"Categories are found by noisy counts, and paid for: {_named(found)}. It takes a "
            "--delta, and a value that nobody else has may come to light with a small part of it."
        )
    merging = [each.name for each in features if each.merges_rare]
    if merging:
        yield f"Rare categories are merged by noisy counts, and paid for: {_named(merging)}."
    yield from _recodings(schema)
    for each in features:
        if each.after is not None:
            yield (
                f"{each.name!r} is counted from {each.after!r}: before it counts as the same "
                "moment, and where the other is not known it is missing."
            )
    yield from _refusals(features)
    yield from _public(schema)


def _recodings(schema: Schema) -> Iterator[str]:
    for feature in schema.features:
        if feature.recoding is not None:
            yield (
                f"Recoded row by row before counting, by public rules: {feature.name!r} "
                f"({feature.recoding.said()})."
            )
    described = [each.name for each in schema.columns if each.label_of is not None]
    if described:
        yield f"Neither read nor modelled, written from codes by public texts: {_named(described)}."


def _refusals(features: Sequence[Feature]) -> Iterator[str]:
    strict = [each.name for each in features if each.unknown == "error"]
    if strict:
        yield (
            "A value that is not listed, or no number or date, refuses the table: "
            f"{_named(strict)}."
        )
    complete = [each.name for each in features if not each.missing]
    if complete:
        yield f"A missing value refuses the table: {_named(complete)}."


def _public(schema: Schema) -> Iterator[str]:
    for what, names in (
        ("heads", [each.name for each in schema.features if each.heads]),
        ("parents", [each.name for each in schema.features if each.parent]),
        ("shares", [each.name for each in schema.features if each.shares]),
    ):
        if names:
            yield f"Taken to be public knowledge: the {what} of {_named(names)}."
    if schema.rules:
        yield f"Taken to be public knowledge: {len(schema.rules)} rules."
    dropped = [each.name for each in schema.columns if each.dropped]
    if dropped:
        yield f"Dropped: {_named(dropped)}."
    if schema.dialect:
        yield f"The table is text of this form: {schema.dialect.said()}."


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more
