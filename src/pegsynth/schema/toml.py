"""The schema as a file, ``schema.toml``.

In goes a path or the text of such a file, out comes a `Schema`, and the reverse. Reading
refuses unknown keys and wrong types with a `SchemaError` that says where and what to do;
writing is deterministic, and ``loads(dumps(schema)) == schema``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from pegsynth.errors import SchemaError
from pegsynth.schema.binning import MAX_BINS
from pegsynth.schema.entry import Entry, shown
from pegsynth.schema.feature import (
    PRIVATE,
    Feature,
    Inside,
    Kind,
    Role,
    Unknown,
    number_text,
)
from pegsynth.schema.rule_text import read_rules, rule_labels
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema

FORMAT = 1
MOST_BINS = 1 << 20

_FILE_KEYS = ("format", "reviewed", "table", "features", "rules")
_TABLE_KEYS = ("unit", "rows_per_unit")
_FEATURE_KEYS = (
    "name",
    "label",
    "kind",
    "role",
    "dtype",
    "categories",
    "edges",
    "bins",
    "lowest",
    "highest",
    "inside",
    "decimals",
    "missing",
    "not_applicable",
    "unknown",
    "heads",
    "l",
    "parent",
    "shares",
    "drafted_from_data",
)
_BIN_KEYS = ("lowest", "highest", "count", "width")

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_LINE_WIDTH = 96

_CONFIDENTIAL_HEADER = """\
# CONFIDENTIAL: drafted from data; not to be shared before a person has reviewed it.
#
# Check that everything below is public knowledge, and mend what is not:
#   - categories and their order: from a codebook, not because somebody has them;
#   - edges: round public figures; values beyond fall in the end bins;
#   - missing: the texts that mean "not known"; not_applicable: those that mean "cannot be";
#   - role: identifier (dropped; nothing is kept of it but its name), quasi-identifier (an
#     intruder may know it), sensitive, other;
#   - unit and rows_per_unit: the most rows one person may have, never the observed maximum.
# Then set reviewed to true: this declares all of it public. Leave drafted_from_data as it is.
# Comments on features are figures of the data: delete them before you share this file.
"""
_PUBLIC_HEADER = """\
# The public codebook of a table: its features, their categories in order, and rules.
"""


def load(path: str | Path) -> Schema:
    """Read a schema file.

    Parameters
    ----------
    path
        The file, usually called ``schema.toml``.

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
    return loads(text, source)


def loads(text: str, source: str = "schema") -> Schema:
    """Read a schema from the text of a schema file; `source` names it in messages."""
    try:
        return _read_schema(_parse(text))
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None


def dumps(schema: Schema, *, notes: bool = False) -> str:
    """Write a schema as the text of a schema file.

    Of identifiers there is nothing but name and role. Notes on a draft are confidential, so
    they are left out unless asked for.
    """
    blocks = [_head_text(schema), *_blocks(schema, notes)]
    text = "\n".join(blocks)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            "a name, category or label holds half of a surrogate pair, which no text file can "
            "hold; correct that text"
        ) from None
    return text


def save(schema: Schema, path: str | Path) -> None:
    """Write a schema file, whole or not at all.

    A draft that no person has reviewed has its notes as comments and is readable by its owner
    alone (mode 0600).

    Raises
    ------
    OutputError
        The file cannot be written; an earlier one is untouched.
    """
    from pegsynth.io.atomic import atomic_text

    confidential = _confidential(schema)
    atomic_text(path, dumps(schema, notes=confidential), mode=0o600 if confidential else None)


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SchemaError("lists or tables are nested too deeply; write them flat") from None
    except ValueError as error:
        # Besides its own error the parser lets through that of numbers with too many digits.
        raise SchemaError(f"not valid TOML: {error}; correct that line") from None


def _read_schema(document: dict[str, Any]) -> Schema:
    _check_format(document)
    file = Entry.of("the file", document, _FILE_KEYS)
    table = Entry.of("[table]", document.get("table", {}), _TABLE_KEYS)
    columns = tuple(_read_features(_tables(file, "features")))
    if not columns:
        raise SchemaError("no feature is described; add a [[features]] table for each column")
    schema = Schema(
        columns=columns,
        unit=table.text("unit") or None,
        rows_per_unit=table.whole("rows_per_unit", 1),
        reviewed=file.flag("reviewed"),
    )
    rules = read_rules(_tables(file, "rules"), schema.features)
    return Schema(columns, schema.unit, schema.rows_per_unit, rules, schema.reviewed)


def _read_features(tables: list[Any]) -> Iterator[Feature]:
    """Read every feature; a few lines must not stand for more bins than memory holds."""
    bins = 0
    for number, raw in enumerate(tables, start=1):
        feature = _read_feature(number, raw)
        bins += len(feature.edges) if "bins" in raw and not feature.private_edges else 0
        if bins > MOST_BINS:
            raise SchemaError(
                f"the features have more than {MOST_BINS:,} bins in all; use fewer, or list the "
                "edges"
            )
        yield feature


def _check_format(document: dict[str, Any]) -> None:
    # Before anything else: a newer format may well have keys that are unknown here.
    version = Entry("the file", document).whole("format", FORMAT)
    if version > FORMAT:
        raise SchemaError(
            f"the file is of format {version}, newer than this program reads ({FORMAT}); "
            "update pegsynth"
        )
    if version != FORMAT:
        raise SchemaError(f"there is no format {version}; write format = {FORMAT}")


def _tables(file: Entry, key: str) -> list[Any]:
    tables = file.values.get(key, [])
    if not isinstance(tables, list):
        raise SchemaError(f"{key} must be tables headed [[{key}]], in double brackets")
    return tables


def _read_feature(number: int, raw: Any) -> Feature:
    name = raw.get("name") if isinstance(raw, dict) else None
    where = f"feature {shown(name)}" if isinstance(name, str) else f"feature number {number}"
    entry = Entry.of(where, raw, _FEATURE_KEYS)
    if not entry.text("name"):
        raise entry.error('it has no name; add name = "..", the name of the column')
    return Feature(
        name=entry.text("name"),
        kind=cast(Kind, entry.text("kind", "nominal")),
        categories=entry.categories("categories"),
        **_private_edges(entry),
        edges=_read_edges(entry),
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
        inside=cast(Inside | None, entry.text("inside") or None),
        decimals=entry.whole_or_none("decimals"),
    )


def _private_edges(entry: Entry) -> dict[str, Any]:
    """Read what goes with edges that a release measures."""
    if entry.values.get("role") == "identifier":
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
    if entry.values.get("role") == "identifier" or entry.values.get("edges") == PRIVATE:
        return ()
    if isinstance(entry.values.get("edges"), str):
        raise entry.error('edges must be a list of numbers, or "private"')
    if "bins" not in entry.values:
        return entry.numbers("edges")
    if "edges" in entry.values:
        raise entry.error("give either edges or bins, not both")
    bins = Entry.of(f"{entry.where}, bins", entry.values["bins"], _BIN_KEYS)
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


def _confidential(schema: Schema) -> bool:
    return not schema.reviewed and any(column.drafted_from_data for column in schema.columns)


def _head_text(schema: Schema) -> str:
    header = _CONFIDENTIAL_HEADER if _confidential(schema) else _PUBLIC_HEADER
    return f"{header}\nformat = {FORMAT}\nreviewed = {_flag(schema.reviewed)}\n"


def _blocks(schema: Schema, notes: bool) -> Iterator[str]:
    if schema.unit or schema.rows_per_unit != 1:
        lines = [f"unit = {_text(schema.unit)}"] if schema.unit else []
        yield _block("[table]", [*lines, f"rows_per_unit = {schema.rows_per_unit}"])
    for column in schema.columns:
        comments = [f"# {' '.join(note.split())}" for note in column.notes if notes]
        yield _block("[[features]]", [*comments, *_feature_lines(column)])
    for rule in schema.rules:
        yield _block("[[rules]]", _rule_lines(rule, schema.features))


def _block(header: str, lines: Iterable[str]) -> str:
    return "\n".join((header, *lines, ""))


def _feature_lines(feature: Feature) -> Iterator[str]:
    yield f"name = {_text(feature.name)}"
    if feature.label:
        yield f"label = {_text(feature.label)}"
    if feature.role != "identifier":
        yield f"kind = {_text(feature.kind)}"
    yield f"role = {_text(feature.role)}"
    if feature.dtype:
        yield f"dtype = {_text(feature.dtype)}"
    yield from _value_lines(feature)
    if feature.unknown != "error":
        yield f"unknown = {_text(feature.unknown)}"
    if feature.heads:
        yield f"heads = {_list([_text(head) for head in feature.heads])}"
    if feature.l is not None:
        yield f"l = {number_text(feature.l)}"
    if feature.parent:
        yield f"parent = {_text(feature.parent)}"
    if feature.shares:
        yield f"shares = {_list([number_text(share) for share in feature.shares])}"
    if feature.drafted_from_data:
        yield "drafted_from_data = true"


def _value_lines(feature: Feature) -> Iterator[str]:
    if feature.categories:
        as_integers = feature.integer and all(map(_CANONICAL_INTEGER.fullmatch, feature.categories))
        items = feature.categories if as_integers else [_text(c) for c in feature.categories]
        yield f"categories = {_list(items)}"
    if feature.private_edges:
        yield f"edges = {_text(PRIVATE)}"
    if feature.edges:
        yield f"edges = {_list([number_text(edge) for edge in feature.edges])}"
    for key in ("lowest", "highest", "bins", "decimals"):
        if (value := getattr(feature, key)) is not None:
            yield f"{key} = {number_text(value)}"
    if feature.inside is not None:
        yield f"inside = {_text(feature.inside)}"
    for key in ("missing", "not_applicable"):
        if texts := getattr(feature, key):
            yield f"{key} = {_list([_text(text) for text in texts])}"


def _rule_lines(rule: Rule, features: Sequence[Feature]) -> Iterator[str]:
    if rule.label:
        yield f"label = {_text(rule.label)}"
    parts = (
        f"{_key(name)} = {_list([_text(label) for label in labels])}"
        for name, labels in rule_labels(rule, features).items()
    )
    yield f"forbid = {{ {', '.join(parts)} }}"


def _list(items: Sequence[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= _LINE_WIDTH - 16 else "[\n" + "\n".join(_filled(items)) + "\n]"


def _filled(items: Sequence[str]) -> Iterator[str]:
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > _LINE_WIDTH and line != "   ":
            yield line
            line = "   "
        line += f" {item},"
    yield line


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # A JSON string is a TOML string, but for the one control character JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _flag(value: bool) -> str:
    return "true" if value else "false"
