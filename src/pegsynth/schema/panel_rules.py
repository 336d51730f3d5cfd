"""What no unit of a folded panel can be, as rules that follow from the schema alone (R18, R24).

A unit with n rows has every feature at the first n positions and none at the others, so there
are no gaps and nothing is absent alone. Rows without a known time come last, and a time that has
categories does not run backwards; one that is a number or a date is counted from the row before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pegsynth.schema.feature import Feature
from pegsynth.schema.panel import Panel
from pegsynth.schema.rules import Rule


def structural_rules(panel: Panel, features: Sequence[Feature]) -> tuple[Rule, ...]:
    """Return the rules of a folded panel, as far as its categories are known."""
    places = {feature.name: place for place, feature in enumerate(features)}
    if panel.count not in places:
        return ()
    return (*_presence(panel, features, places), *_order(panel, features, places))


def _presence(panel: Panel, features: Sequence[Feature], places: dict[str, int]) -> Iterator[Rule]:
    count = places[panel.count]
    for position in panel.positions:
        if panel.sure(position):
            continue
        without = list(range(position - panel.least))
        reaches = list(range(position - panel.least, panel.most - panel.least + 1))
        for name in panel.changing(places):
            feature = features[places[panel.at(name, position)]]
            absent = feature.not_applicable_code
            if absent is None:
                continue
            place = places[feature.name]
            yield _rule({count: reaches, place: [absent]}, f"{feature.name} is there")
            present = [code for code in range(feature.category_count) if code != absent]
            if present:
                yield _rule({count: without, place: present}, f"{feature.name} is not there")


def _order(panel: Panel, features: Sequence[Feature], places: dict[str, int]) -> Iterator[Rule]:
    for position in panel.positions[:-1]:
        first = features[places[panel.at(panel.time, position)]]
        second = features[places[panel.at(panel.time, position + 1)]]
        here, there = places[first.name], places[second.name]
        known = list(range(second.bin_count))
        unknown = [
            code
            for code in range(first.bin_count, first.category_count)
            if code != first.not_applicable_code
        ]
        if unknown and known:
            yield _rule({here: unknown, there: known}, f"{second.name} follows a known time")
        if not first.binned:
            for code in range(1, first.bin_count):
                yield _rule({here: [code], there: known[:code]}, f"{second.name} is not before")


def _rule(forbidden: dict[int, list[int]], label: str) -> Rule:
    return Rule(
        tuple((place, frozenset(codes)) for place, codes in forbidden.items()),
        f"panel: {label}",
        structural=True,
    )
