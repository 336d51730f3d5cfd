"""The schema as a file, ``schema.toml``.

In goes a path or the text of such a file, out comes a `Schema`, and the reverse. Reading
refuses unknown keys and wrong types with a `SchemaError` that says where and what to do;
writing is deterministic, and ``loads(dumps(schema)) == schema``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from pegsynth.errors import SchemaError
from pegsynth.schema.binning import MAX_BINS
from pegsynth.schema.declared import read_declared
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.entry import Entry, shown
from pegsynth.schema.feature import DROPPED, PRIVATE, Feature, Inside, Kind, Role, Unknown
from pegsynth.schema.public_files import PublicFiles
from pegsynth.schema.rule_text import read_rules
from pegsynth.schema.schema import Schema
from pegsynth.schema.section_toml import (
    is_dated,
    read_categories,
    read_moments,
    read_panel,
    read_recoding,
    read_two_tables,
    read_value_labels,
    refuse_by_data,
)
from pegsynth.schema.toml_text import FORMAT, confidential, dumps

__all__ = ["FORMAT", "dumps", "load", "loads", "save", "with_comments"]

MOST_BINS = 1 << 20


def load(path: str | Path, *, notes: bool = False) -> Schema:
    """Read a schema file.

    Parameters
    ----------
    path
        The file, usually called ``schema.toml``.
    notes
        Whether the comments on features are kept as notes.

    Returns
    -------
    Schema
        What the file says, checked.

    Raises
    ------
    SchemaError
        The file cannot be read, is not TOML, or describes no valid schema.
    """
    source = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(f"{source}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SchemaError(f"{source}: this is a folder; give the schema file in it") from None
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"{source}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise SchemaError(f"{source!r}: cannot be read ({reason}); check the path") from None
    schema = loads(text, source, folder=Path(path).absolute().parent)
    return with_comments(schema, text) if notes else schema


def loads(text: str, source: str = "schema", *, folder: Path | None = None) -> Schema:
    """Read a schema from the text of a schema file; `source` names it in messages.

    Public files that it names are looked for in `folder`; without one it may name none.
    """
    try:
        return _read_schema(_parse(text), PublicFiles(folder))
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None


def with_comments(schema: Schema, text: str) -> Schema:
    """Return the schema with the comments that stand in the blocks of its features, as notes."""
    found: dict[str, list[str]] = {}
    held: list[str] | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            held = [] if line == "[[features]]" else None
        elif held is not None and line.startswith("#"):
            held.append(line.lstrip("# "))
        elif held is not None and re.match(r"name\s*=", line):
            with suppress(ValueError):
                found[str(tomllib.loads(line)["name"])] = held
    return schema.with_columns(
        replace(column, notes=tuple(found.get(column.name, column.notes)))
        for column in schema.columns
    )


def save(schema: Schema, path: str | Path, *, notes: bool = False) -> None:
    """Write a schema file, whole or not at all.

    A draft that no person has reviewed has its notes as comments and is readable by its owner
    alone (mode 0600). Others have them with `notes` only.

    Raises
    ------
    OutputError
        The file cannot be written; an earlier one is untouched.
    """
    from pegsynth.tables.atomic import atomic_text

    private = confidential(schema)
    atomic_text(path, dumps(schema, notes=private or notes), mode=0o600 if private else None)


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SchemaError("lists or tables are nested too deeply; write them flat") from None
    except ValueError as error:
        # Besides its own error the parser lets through that of numbers with too many digits.
        raise SchemaError(f"not valid TOML: {error}; correct that line") from None


def _read_schema(document: dict[str, Any], files: PublicFiles) -> Schema:
    _check_format(document)
    file = Entry.at("file", "the file", document)
    table = Entry.at("table", "[table]", document.get("table", {}))
    columns = tuple(_read_features(_tables(file, "features"), files))
    if not columns:
        raise SchemaError("no feature is described; add a [[features]] table for each column")
    analyses, tables_wanted = read_declared(file)
    schema = Schema(
        columns=columns,
        unit=table.text("unit") or None,
        rows_per_unit=table.whole("rows_per_unit", 1),
        reviewed=file.flag("reviewed"),
        dialect=_read_dialect(table),
        reviewer=file.text("reviewed_by"),
        reviewed_on=file.text("reviewed_on"),
        panel=read_two_tables(document) or read_panel(document),
        analyses=analyses,
        tables_wanted=tables_wanted,
    )
    return replace(schema, rules=read_rules(_tables(file, "rules"), schema.features))


def _read_dialect(table: Entry) -> Dialect:
    try:
        return Dialect(**{each.name: table.text(each.name) for each in fields(Dialect)})
    except SchemaError as error:
        message = str(error).removeprefix(f"{table.where}: ")
        raise table.error(message) from None


def _read_features(tables: list[Any], files: PublicFiles) -> Iterator[Feature]:
    """Read every feature; a few lines must not stand for more bins than memory holds."""
    bins = 0
    for number, raw in enumerate(tables, start=1):
        feature = _read_feature(number, raw, files)
        few_lines = "bins" in raw or isinstance(raw.get("edges"), str)
        bins += len(feature.edges) if few_lines and not feature.private_edges else 0
        if bins > MOST_BINS:
            raise SchemaError(
                f"the features have more than {MOST_BINS:,} bins in all; use fewer, or list the "
                "edges"
            )
        yield feature


def _check_format(document: dict[str, Any]) -> None:
    # Before anything else: another format may well have keys that are unknown here.
    version = Entry("the file", document).whole("format", FORMAT)
    if version != FORMAT:
        raise SchemaError(
            f"the file has format {version}, and this program reads format {FORMAT} only; write "
            f"format = {FORMAT}, or use the version of pegsynth that wrote it"
        )


def _tables(file: Entry, key: str) -> list[Any]:
    tables = file.values.get(key, [])
    if not isinstance(tables, list):
        raise SchemaError(f"{key} must be tables headed [[{key}]], in double brackets")
    return tables


def _read_feature(number: int, raw: Any, files: PublicFiles) -> Feature:
    name = raw.get("name") if isinstance(raw, dict) else None
    where = f"feature {shown(name)}" if isinstance(name, str) else f"feature number {number}"
    if isinstance(raw, dict):
        refuse_by_data(where, raw)
    entry = Entry.at("features", where, raw)
    if not entry.text("name"):
        raise entry.error('it has no name; add name = "..", the name of the column')
    return Feature(
        name=entry.text("name"),
        kind=cast(Kind, entry.text("kind", "nominal")),
        categories=read_categories(entry, files),
        **(read_moments(entry) if is_dated(entry) else _read_bins(entry)),
        missing=entry.categories("missing"),
        not_applicable=entry.categories("not_applicable"),
        role=cast(Role, entry.text("role", "other")),
        dtype=entry.text("dtype"),
        heads=entry.texts("heads"),
        l=entry.number("l"),
        parent=entry.text("parent") or None,
        shares=entry.numbers("shares"),
        unknown=cast(Unknown, entry.text("unknown", "error")),
        drafted_from_data=entry.flag("drafted_from_data"),
        label=entry.text("label"),
        value_labels=read_value_labels(entry, files),
        inside=cast(Inside | None, entry.text("inside") or None),
        decimals=entry.whole_or_none("decimals"),
        format=entry.text("format"),
        resolution=entry.text("resolution"),
        weekday=entry.flag("weekday"),
        after=entry.text("after") or None,
        keep_missing_codes=entry.flag("keep_missing_codes"),
        recoding=read_recoding(entry, files),
        label_of=entry.text("label_of") or None,
    )


def _read_bins(entry: Entry) -> dict[str, Any]:
    return {**_private_edges(entry), "edges": _read_edges(entry)}


def _private_edges(entry: Entry) -> dict[str, Any]:
    """Read what goes with edges that a release measures."""
    if entry.values.get("role") in DROPPED:
        return {}
    private = entry.values.get("edges") == PRIVATE
    whole = isinstance(entry.values.get("bins"), int)
    if whole and not private:
        raise entry.error(
            'bins as a whole number goes with edges = "private"; list the edges, or write '
            "bins = { lowest = .., highest = .., count = .. }"
        )
    return {
        "private_edges": private,
        "lowest": entry.number("lowest"),
        "highest": entry.number("highest"),
        "bins": entry.whole_or_none("bins") if private else None,
    }


def _read_edges(entry: Entry) -> tuple[float, ...]:
    if entry.values.get("role") in DROPPED or entry.values.get("edges") == PRIVATE:
        return ()
    if isinstance(entry.values.get("edges"), str):
        raise entry.error('edges must be a list of numbers, or "private"')
    if "bins" not in entry.values:
        return entry.numbers("edges")
    if "edges" in entry.values:
        raise entry.error("give either edges or bins, not both")
    bins = Entry.at("bins", f"{entry.where}, bins", entry.values["bins"])
    lowest, highest = bins.number("lowest"), bins.number("highest")
    if lowest is None or highest is None or ("count" in bins.values) == ("width" in bins.values):
        raise bins.error("give lowest, highest and one of count and width")
    if lowest >= highest:
        raise bins.error("lowest must be less than highest")
    return _equal_width(bins, _exact(lowest), _exact(highest))


def _equal_width(bins: Entry, lowest: Fraction, highest: Fraction) -> tuple[float, ...]:
    width = bins.number("width")
    count = Fraction(bins.whole("count", 0))
    if width is not None:
        if width <= 0:
            raise bins.error("width must be greater than 0")
        count = (highest - lowest) / _exact(width)
        if count.denominator != 1:
            raise bins.error("width does not divide highest - lowest; change one of the three")
    if not 1 <= count <= MAX_BINS:
        raise bins.error(f"there must be from 1 to {MAX_BINS:,} bins; change count or width")
    step = (highest - lowest) / count
    # Division of whole numbers rounds once, as that of fractions does, and is much faster.
    whole = lowest.denominator * step.denominator
    first, more = lowest.numerator * step.denominator, step.numerator * lowest.denominator
    return tuple((first + index * more) / whole for index in range(int(count) + 1))


def _exact(value: float) -> Fraction:
    # Through the shortest decimal, so that steps of 0.1 give 0.3 and not 0.30000000000000004.
    return Fraction(repr(value))
