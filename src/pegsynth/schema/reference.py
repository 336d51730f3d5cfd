"""All keys of ``schema.toml`` by their place, to say where one belongs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pegsynth.schema.binning import EqualWidth
from pegsynth.schema.declared import Analysis, WantedTable
from pegsynth.schema.feature import Feature
from pegsynth.schema.keys import Key, keys_of
from pegsynth.schema.panel import OneOfTwo, Panel
from pegsynth.schema.rule_text import RuleTable
from pegsynth.schema.toml import File, Table

PLACES: dict[type, str] = {
    File: "at the top of the file",
    Table: "under [table]",
    Panel: "under [panel]",
    OneOfTwo: "under [[tables]]",
    Feature: "under [[features]]",
    EqualWidth: "in bins = { .. } of a feature",
    RuleTable: "under [[rules]]",
    Analysis: "under [[analyses]]",
    WantedTable: "under [[tables_wanted]]",
}
"""The types that declare keys, and where these stand in a file."""


def all_keys() -> Iterator[tuple[type, Key]]:
    """Yield every key with the type that declares it."""
    return ((kind, key) for kind in PLACES for key in keys_of(kind))


def misplaced(name: str, kind: type) -> str:
    """Say where a key that is not known here belongs, or which key was probably meant."""
    elsewhere = [(place, key) for place, key in all_keys() if key.name == name and place != kind]
    if elsewhere:
        places = " or ".join(PLACES[place] for place, _ in elsewhere)
        return f"it belongs {places}, as {name} = {elsewhere[0][1].example}"
    here = [key.name for key in keys_of(kind)]
    close = difflib.get_close_matches(name[:60], [key.name for _, key in all_keys()], 1, 0.75)
    if close and not difflib.get_close_matches(name[:60], here, 1, 0.75):
        found = next(place for place, key in all_keys() if key.name == close[0])
        return f"did you mean {close[0]!r}? It belongs {PLACES[found]}"
    return f"did you mean {difflib.get_close_matches(name[:60], here, 1, 0.0)[0]!r}?"
