"""Rules as people write them: by feature name and category, not by index and code.

In go the ``[[rules]]`` tables of a schema file and the features they speak of; out come
`Rule` values (R18), and the way back. A rule is written in one of three forms:

* ``forbid = { MDC = ["14"], sex = ["Male"] }``: these cannot occur together;
* ``order = ["admitted", "discharged"]``: none is above the next (`order_rules`);
* ``when = { MDC = ["14"] }`` with ``allow_only = { sex = ["Female"] }``: where the first
  holds, no other category of the second can occur, "(missing)" included unless listed.

Categories are given as a list, or as a range ``{ at_least = x, below = y }`` of a numeric
feature (at its edges) or of an ordinal feature whose categories are numbers.

Rules on order, as ``order = ["admitted", "discharged"]``: no feature is above the next (R18).

Such a rule forbids pairs of categories. It is decided by categories alone, so every pair has to be
in order or out of order as a whole; where bins overlap it is not, and the rule is refused: a date
or number that is counted from the other (`after`) is never before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import moment
from pegsynth.schema.entry import Entry, shown
from pegsynth.schema.feature import Feature, missing_code_of
from pegsynth.schema.keys import optional
from pegsynth.schema.rules import NamedRule, Rule
from pegsynth.schema.temporal import chain

_PUBLIC = "assumption `public-rules`"
_RANGE_KEYS = ("at_least", "below")
_DEEPEST_NAME = 32


@dataclass(frozen=True)
class RuleTable:
    """A rule as ``[[rules]]`` states it, in one of three forms."""

    label: str = optional("", '"no births by men"', "What messages call the rule.")
    forbid: Any = optional(
        None,
        '{ sex = ["m"], birth = ["yes"] }',
        "Categories that cannot occur together; a range is `{ at_least = 18, below = 65 }`.",
        _PUBLIC,
        form="table",
        left_out="or `when`",
    )
    when: Any = optional(
        None,
        '{ ward = ["maternity"] }',
        "Where this holds ..",
        _PUBLIC,
        form="table",
        left_out="with `allow_only`",
    )
    allow_only: Any = optional(
        None,
        '{ sex = ["f"] }',
        ".. no other category of these features can occur.",
        _PUBLIC,
        form="table",
        left_out="with `when`",
    )
    order: tuple[str, ...] = optional(
        (),
        '["admitted", "discharged"]',
        "None of these features is above the next; where bins overlap use `after`.",
        _PUBLIC,
        left_out="or `forbid`",
    )
    drafted_from_data: bool = optional(
        False,
        "true",
        "A program found that the combination never occurs. Leave it as it is.",
        "listed in the ledger: a person declared the rule public afterwards",
    )


def read_rules(tables: Sequence[object], features: Sequence[Feature]) -> tuple[Rule, ...]:
    """Turn the ``[[rules]]`` tables into rules over feature indices and codes."""
    positions = {feature.name: index for index, feature in enumerate(features)}
    return tuple(
        rule
        for number, table in enumerate(tables, start=1)
        for rule in _read_rule(_entry(number, table), positions, features)
    )


def resolved(rules: Sequence[Rule | NamedRule], features: Sequence[Feature]) -> tuple[Rule, ...]:
    """Return rules over feature indices and codes, those by name looked up in the features."""
    found: list[Rule] = []
    for rule in rules:
        if isinstance(rule, NamedRule):
            forbid = {name: list(labels) for name, labels in rule.values}
            drafted = rule.drafted_from_data
            table = {"forbid": forbid, "label": rule.label, "drafted_from_data": drafted}
            found += read_rules([table], features)
        else:
            found.append(rule)
    return tuple(found)


def rule_labels(rule: Rule, features: Sequence[Feature]) -> dict[str, tuple[str, ...]]:
    """Feature name to the labels a rule forbids together, for writing."""
    return {
        features[index].name: tuple(features[index].labels[code] for code in sorted(codes))
        for index, codes in rule.forbidden
    }


def named_rules(rules: Sequence[Rule], features: Sequence[Feature]) -> Iterator[NamedRule]:
    """Yield rules by name, without those that follow from a panel."""
    for rule in rules:
        if not rule.structural:
            values = tuple(rule_labels(rule, features).items())
            yield NamedRule(values, rule.label, rule.drafted_from_data)


def said(rule: Rule, features: Sequence[Feature]) -> str:
    """Say in words what cannot occur together."""
    return " and ".join(f"{n} in {', '.join(v)}" for n, v in rule_labels(rule, features).items())


def _entry(number: int, table: object) -> Entry:
    label = table.get("label") if isinstance(table, dict) else None
    name = f"rule {shown(label)}" if isinstance(label, str) and label else f"rule {number}"
    return Entry.at(RuleTable, name, table)


def _read_rule(
    entry: Entry, positions: Mapping[str, int], features: Sequence[Feature]
) -> Iterable[Rule]:
    stated = entry.made(RuleTable)
    label, drafted = stated.label, stated.drafted_from_data
    given = set(entry.values) - {"label", "drafted_from_data"}
    if given == {"forbid"}:
        codes = _read_codes(entry, "forbid", positions, features)
        return (Rule.of(codes, label, drafted=drafted),)
    if given == {"when", "allow_only"}:
        when = _read_codes(entry, "when", positions, features)
        allowed = _read_codes(entry, "allow_only", positions, features)
        return tuple(
            Rule.of(
                {**when, index: _others(entry, features[index], codes, index in when)},
                label,
                drafted=drafted,
            )
            for index, codes in allowed.items()
        )
    if given == {"order"}:
        return tuple(order_rules(entry, positions, features))
    raise entry.error("give either forbid, order, or when together with allow_only")


def _others(entry: Entry, feature: Feature, allowed: Sequence[int], repeated: bool) -> list[int]:
    if repeated:
        raise entry.error(f"feature {feature.name!r} is named in both when and allow_only")
    if feature.private_categories or feature.private_edges:
        raise entry.error(
            f"what {feature.name!r} may hold is private, so that allow_only cannot say what else "
            "is forbidden; use forbid, or list its categories or edges"
        )
    others = sorted(set(range(feature.category_count)) - set(allowed))
    if not others:
        raise entry.error(
            f"allow_only lists every category of {feature.name!r} and so forbids nothing; "
            "list fewer or remove the rule"
        )
    return others


def _read_codes(
    entry: Entry, key: str, positions: Mapping[str, int], features: Sequence[Feature]
) -> dict[int, tuple[int, ...]]:
    table = entry.values[key]
    if not isinstance(table, dict) or not table:
        raise entry.error(f"{key} must name features, as {key} = {{ sex = [..] }}")
    codes: dict[int, tuple[int, ...]] = {}
    for name, value in _flatten(entry, table, positions):
        if name not in positions:
            raise entry.error(
                f"{key} names {shown(name)}, which is not a modelled feature of this schema; "
                "correct the name (identifiers and the unit column cannot be in a rule)"
            )
        if positions[name] in codes:
            raise entry.error(f"{key} names {shown(name)} twice; name it once")
        codes[positions[name]] = _codes(entry, features[positions[name]], value)
    return codes


def _flatten(
    entry: Entry, table: Mapping[str, Any], positions: Mapping[str, int], prefix: str = ""
) -> Iterable[tuple[str, Any]]:
    # TOML reads an unquoted `age.yrs = ..` as a table in a table; here it is one name.
    for key, value in table.items():
        name = prefix + key
        a_range = name in positions and isinstance(value, dict) and set(value) <= set(_RANGE_KEYS)
        longer = any(other.startswith(name + ".") for other in positions)
        if a_range or not longer or not isinstance(value, dict):
            yield name, value
        elif name.count(".") >= _DEEPEST_NAME:
            raise entry.error("a feature name has too many parts; put it in quotes")
        else:
            yield from _flatten(entry, value, positions, name + ".")


def _codes(entry: Entry, feature: Feature, value: object) -> tuple[int, ...]:
    where = f"{entry.where}, feature {feature.name!r}"
    if isinstance(value, dict) and feature.private_edges:
        raise SchemaError(
            f"{where}: its edges are private, so no range of it is known yet; list its edges, or "
            "take it out of the rule"
        )
    if isinstance(value, dict):
        return _range_codes(Entry.of(where, value, _RANGE_KEYS), feature)
    if not isinstance(value, list) or not value:
        raise SchemaError(
            f"{where}: give a list of categories, or a range {{ at_least = .., below = .. }}"
        )
    return _listed_codes(Entry(where, {"categories": value}), feature)


def _listed_codes(entry: Entry, feature: Feature) -> tuple[int, ...]:
    known = {label: code for code, label in enumerate(feature.labels)}
    pairs = [(feature.not_applicable_code, text) for text in feature.not_applicable]
    pairs += [(missing_code_of(feature, text), text) for text in feature.missing]
    for code, text in pairs:
        known.setdefault(text, code if code is not None else -1)
    wanted = entry.categories("categories")
    for text in wanted:
        if text not in known and feature.private_categories:
            raise entry.error(
                "its categories are private, so that none of them is known yet; list them, or name "
                "special ones such as (other) only"
            )
        if text not in known:
            raise entry.error(
                f"{shown(text)} is not one of its categories; write it as the schema does"
            )
    return tuple(known[text] for text in wanted)


def _range_codes(entry: Entry, feature: Feature) -> tuple[int, ...]:
    low, high = (_read_bound(entry, feature, key) for key in _RANGE_KEYS)
    if low is None and high is None:
        raise entry.error("a range needs at_least, below or both")
    if feature.binned:
        codes = _bins_between(entry, feature.edges, low, high)
    else:
        codes = _categories_between(entry, feature, low, high)
    if not codes:
        raise entry.error("the range holds no category; at_least must lie under below")
    return codes


def _read_bound(entry: Entry, feature: Feature, key: str) -> float | None:
    """Read one end of a range of a feature: a date where it has dates, else a number."""
    if not feature.calendar or key not in entry.values:
        return entry.number(key)
    try:
        return moment(feature.kind, feature.resolution, entry.values[key])
    except ValueError as error:
        raise entry.error(f"{key} {error}") from None


def _bins_between(
    entry: Entry, edges: Sequence[float], low: float | None, high: float | None
) -> tuple[int, ...]:
    for key, value, possible in (("at_least", low, edges[:-1]), ("below", high, edges[1:-1])):
        if value is not None and value not in possible:
            raise entry.error(
                f"{key} does not fall on an inner bin edge; use an edge of the feature "
                "(leave below out to include the last bin, which holds its upper edge)"
            )
    first = 0 if low is None else edges.index(low)
    last = len(edges) - 1 if high is None else edges.index(high)
    return tuple(range(first, last))


def _categories_between(
    entry: Entry, feature: Feature, low: float | None, high: float | None
) -> tuple[int, ...]:
    try:
        values = [float(text) for text in feature.categories]
    except ValueError:
        values = []
    if feature.kind != "ordinal" or not values:
        raise entry.error("its categories are not ordered numbers; list them instead of a range")
    floor, ceiling = -math.inf if low is None else low, math.inf if high is None else high
    return tuple(code for code, value in enumerate(values) if floor <= value < ceiling)


_LEAST = 2


def order_rules(
    entry: Entry, positions: Mapping[str, int], features: Sequence[Feature]
) -> Iterator[Rule]:
    """Yield the rules that forbid what is out of order."""
    names = entry.texts("order")
    if len(names) < _LEAST or len(set(names)) < len(names):
        raise entry.error('order names two or more features, as order = ["admitted", "discharged"]')
    for name in names:
        if name not in positions:
            raise entry.error(f"order names {shown(name)}, which is not a modelled feature")
    for first, second in pairwise(names):
        low, high = features[positions[first]], features[positions[second]]
        if low in chain(high, features):
            # It is counted from the other, and never before it.
            continue
        lows, highs = _spans(entry, low), _spans(entry, high)
        for code, (least, most) in enumerate(highs):
            above = [place for place, span in enumerate(lows) if span[0] > most]
            if any(span[0] <= most and span[1] > least for span in lows):
                raise entry.error(
                    f"bins of {low.name!r} and {high.name!r} overlap, so categories do not tell "
                    f'their order; for dates write after = "{low.name}" under {high.name!r} instead'
                )
            if above:
                forbidden = {positions[first]: above, positions[second]: [code]}
                yield Rule.of(forbidden, entry.text("label"))


def _spans(entry: Entry, feature: Feature) -> list[tuple[float, float]]:
    """Return the lowest and the highest value of every category or bin."""
    if feature.private_edges or feature.after is not None:
        raise entry.error(
            f"{feature.name!r} has no public bins of its own to be put in order; for dates write "
            "after = .. under the later one instead"
        )
    if feature.binned:
        last = len(feature.edges) - 2
        # The highest value of a bin; with any decimals it comes as near to the edge as it likes.
        step = 1.0 if feature.integer else 0.0
        return [
            (low, high if place == last else high - step if step else math.nextafter(high, low))
            for place, (low, high) in enumerate(pairwise(feature.closed_edges))
        ]
    if feature.kind != "ordinal":
        raise entry.error(f"{feature.name!r} is nominal and has no order; make it ordinal")
    try:
        values = [float(text) for text in feature.categories]
    except ValueError:
        raise entry.error(
            f"categories of {feature.name!r} are no numbers; forbid what is out of order"
        ) from None
    return [(value, value) for value in values]
