"""What columns have to do with each other: details with parents, and descriptions of codes.

To which category of its parent every category of a detail belongs is a public map that comes from
the hierarchy of the detail; special categories, such as missing ones, belong to none in
particular. A column that describes the codes of another one is neither read nor modelled: which
text belongs to which code is public, so it is a function of the synthetic code and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegsynth.errors import SchemaError
from pegsynth.kernels.arrays import Int64
from pegsynth.schema.feature import Feature
from pegsynth.schema.rules import Rule

ANY = -1


def check_related(columns: Sequence[Feature], rules: Sequence[Rule]) -> None:
    """Refuse columns, or rules on them, that speak of each other as they cannot.

    A description names a feature with categories and has a text for each. A hierarchy leads every
    category of a detail to one of its parent. Rules and parents speak of no category that may be
    merged.
    """
    by_name = {column.name: column for column in columns}
    for column in columns:
        of = by_name.get(column.label_of or "")
        if column.label_of is not None:
            if of is None or not of.modelled or of.binned:
                raise SchemaError(
                    f"feature {column.name!r}: label_of names no feature with categories; give the "
                    "name of the column that holds the codes"
                )
            described_labels(column, of)
    features = [column for column in columns if column.modelled]
    for feature in features:
        if feature.parent is not None and has_map(feature):
            belongs_to(feature, by_name[feature.parent])
    named = {index for rule in rules for index, _ in rule.forbidden}
    parents = {feature.parent for feature in features}
    for index, feature in enumerate(features):
        if feature.merges_rare and (index in named or feature.name in parents):
            raise SchemaError(
                f"feature {feature.name!r}: a rule or a detail speaks of its categories, which "
                "rare could merge; leave out one of them"
            )


def has_map(detail: Feature) -> bool:
    """Whether the schema says to which category of its parent each one belongs."""
    return detail.recoding is not None and detail.recoding.hierarchy is not None


def belongs_to(detail: Feature, parent: Feature) -> Int64:
    """Return for every code of a detail the code of its parent, `ANY` for special ones.

    Raises
    ------
    SchemaError
        A category leads to none of the parent.
    """
    if detail.recoding is None or detail.recoding.hierarchy is None:
        raise SchemaError(
            f"feature {detail.name!r}: nothing says to which category of {parent.name!r} each of "
            "its own belongs; state a hierarchy"
        )
    codes = {text: code for code, text in enumerate(parent.categories)}
    found = np.full(detail.category_count, ANY, dtype=np.int64)
    for code, text in enumerate(detail.categories):
        above = [name for name in detail.recoding.hierarchy.above(text) if name in codes]
        if not above:
            raise SchemaError(
                f"feature {detail.name!r}: its hierarchy leads category number {code + 1} to no "
                f"category of its parent {parent.name!r}; complete the hierarchy, or list the "
                f"category under {parent.name!r}"
            )
        found[code] = codes[above[0]]
    return found


def ancestors(feature: Feature) -> tuple[Int64, ...]:
    """Return for every level above the categories a number for what each belongs to.

    Nearest level first; special categories have `ANY`. Empty: there is no hierarchy.
    """
    if feature.recoding is None or feature.recoding.hierarchy is None:
        return ()
    hierarchy, groups = feature.recoding.hierarchy, dict(feature.recoding.groups)
    above = [() if text in groups else hierarchy.above(text) for text in feature.categories]
    depth = max(map(len, above), default=0)
    lines = []
    for level in range(depth):
        names = [line[min(level, len(line) - 1)] if line else None for line in above]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        line = np.full(feature.category_count, ANY, dtype=np.int64)
        line[: len(names)] = [ANY if name is None else numbers[name] for name in names]
        lines.append(line)
    return tuple(lines)


def described_labels(column: Feature, of: Feature) -> list[str | None]:
    """Return the text of every code of a feature; special ones have none.

    Raises
    ------
    SchemaError
        A category has no text.
    """
    # A group is called by a name that somebody can read.
    named = {name: name for name, _ in of.recoding.groups} if of.recoding else {}
    texts = named | dict(column.value_labels or of.value_labels)
    for number, category in enumerate(of.categories, start=1):
        if category not in texts:
            raise SchemaError(
                f"feature {column.name!r}: category number {number} of {of.name!r} has no text; "
                "list it under value_labels of either, or in the file that is named there"
            )
    listed: list[str | None] = [texts[category] for category in of.categories]
    return listed + [None] * (of.category_count - of.bin_count)
