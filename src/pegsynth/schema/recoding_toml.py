"""Recodings as ``schema.toml`` holds them: keys of a feature in, a `Recoding` out, and back.

Forms that would look at the table are refused here, each with its reason (R31).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pegsynth.errors import SchemaError
from pegsynth.schema.entry import Entry
from pegsynth.schema.feature import PRIVATE, Feature, number_text
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.public_files import PublicFiles
from pegsynth.schema.recoding import (
    Recoding,
    check_paid,
    check_public_number,
    refused_filling,
    refused_grouping,
    refused_suppression,
)

_Listed = TypeVar("_Listed")
_NUMBERS = ("top", "bottom", "round")
_KEYS = (*_NUMBERS, "groups", "hierarchy", "level", "rare")
_REFUSED: dict[str, Callable[[str], SchemaError]] = {
    **dict.fromkeys(("fill", "impute", "fill_missing", "default"), refused_filling),
    **dict.fromkeys(("k", "k_anonymity", "suppress", "suppress_below"), refused_suppression),
    **dict.fromkeys(("min_count", "least", "group_below", "threshold"), refused_grouping),
}
_FILLED = ("mode", "mean", "median", "most frequent")


def refuse_by_data(where: str, raw: Mapping[str, Any]) -> None:
    """Refuse recodings that would depend on other rows, and say why."""
    for key in raw:
        if key in _REFUSED:
            raise SchemaError(f"{where}: {_REFUSED[key](key)}")
    if raw.get("missing") in _FILLED:
        raise SchemaError(f"{where}: {refused_filling('missing')}")
    if isinstance(raw.get("groups"), str | int | float):
        raise SchemaError(f"{where}: {refused_grouping('groups')}")
    try:
        for key in _NUMBERS:
            if isinstance(raw.get(key), str):
                check_public_number(key, raw[key])
        check_paid(raw.get("rare"))
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def read_recoding(entry: Entry, files: PublicFiles) -> Recoding | None:
    """Read the recoding of a feature; None where it has none."""
    if not any(key in entry.values for key in _KEYS):
        return None
    try:
        return Recoding(
            **{key: entry.number(key) for key in _NUMBERS},
            groups=_groups(entry),
            hierarchy=_hierarchy(entry, files),
            level=entry.whole("level", 1),
            rare=entry.text("rare") or None,
        )
    except SchemaError as error:
        raise entry.error(str(error).removeprefix(f"{entry.where}: ")) from None


def _groups(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = entry.values.get("groups", {})
    if not isinstance(table, dict):
        raise entry.error('groups must be a table, as groups = { heart = ["I20", "I21"] }')
    inside = Entry(f"{entry.where}, groups", table)
    return tuple((name, inside.categories(name)) for name in table)


def _hierarchy(entry: Entry, files: PublicFiles) -> Hierarchy | None:
    stated = entry.values.get("hierarchy")
    if stated is None:
        return None
    if isinstance(stated, dict):
        return Hierarchy(entry.labels("hierarchy"))
    text = entry.text("hierarchy")
    by_prefix = Hierarchy.by_prefix(text)
    if by_prefix is not None:
        return by_prefix
    if text.startswith("prefix"):
        raise entry.error('hierarchy by prefix is written "prefix:3", or "prefix:3,1"')
    lines = files.lines(text, "hierarchy")
    try:
        return Hierarchy.of_lines(lines)
    except SchemaError as error:
        raise SchemaError(f"hierarchy = {text[:80]!r}: {error}") from None


def read_categories(entry: Entry, files: PublicFiles) -> Any:
    """Read categories: a list, the name of a public file that lists them, or "private"."""
    if entry.values.get("categories") == PRIVATE:
        return PRIVATE
    if not isinstance(entry.values.get("categories"), str):
        return entry.categories("categories")
    return _of_file(entry, "categories", files.codes)


def read_value_labels(entry: Entry, files: PublicFiles) -> tuple[tuple[str, str], ...]:
    """Read texts by code: a table, or the name of a public file that lists them."""
    if not isinstance(entry.values.get("value_labels"), str):
        return entry.labels("value_labels")
    return _of_file(entry, "value_labels", files.labels)


def _of_file(entry: Entry, key: str, read: Callable[[str, str], _Listed]) -> _Listed:
    try:
        return read(entry.text(key), key)
    except SchemaError as error:
        raise entry.error(str(error)) from None


def recoding_lines(
    feature: Feature, text: Callable[[str], str], items: Callable[[list[str]], str]
) -> Iterator[str]:
    """Yield the lines of a feature's recoding; files are written out.

    Parameters
    ----------
    text, items
        Write a text and a list as TOML.
    """
    recoding = feature.recoding
    if feature.label_of:
        yield f"label_of = {text(feature.label_of)}"
    if recoding is None:
        return
    for key in _NUMBERS:
        if (value := getattr(recoding, key)) is not None:
            yield f"{key} = {number_text(value)}"
    if recoding.groups:
        named = (f"{text(name)} = {items([*map(text, v)])}" for name, v in recoding.groups)
        yield f"groups = {{ {', '.join(named)} }}"
    if recoding.hierarchy is not None:
        pairs = ", ".join(f"{text(a)} = {text(b)}" for a, b in recoding.hierarchy.pairs)
        prefix = "prefix:" + ",".join(map(str, recoding.hierarchy.prefixes))
        yield f"hierarchy = {{ {pairs} }}" if pairs else f"hierarchy = {text(prefix)}"
        yield f"level = {recoding.level}"
    if recoding.rare:
        yield f"rare = {text(recoding.rare)}"
