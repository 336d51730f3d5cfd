"""Codebooks in JSON: Frictionless Table Schema, CSVW, SDV, mbi, NIST, and domains.

Each reader takes a parsed document and returns what it tells of every column, or None of one that
is of another form. Keys that are not known are passed over: these formats have many that say
nothing of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.codebooks.described import Described, Type, code_text, number_of, texts
from pegsynth.schema.dialect import Dialect

Document = Mapping[str, Any]
Columns = Iterator[Described] | None
Reader = Callable[[Document], Columns]

_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("string", "text", "str", "object", "categorical", "any"), "text"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "nonNegativeInteger"), "whole"),
    **dict.fromkeys((f"int{b}" for b in (8, 16, 32, 64)), "whole"),
    **dict.fromkeys((f"Int{b}" for b in (8, 16, 32, 64)), "whole"),
    **dict.fromkeys((f"uint{b}" for b in (8, 16, 32, 64)), "whole"),
    **dict.fromkeys(("number", "decimal", "double", "float", "float64", "numeric"), "number"),
    **dict.fromkeys(("Float", "Float64", "numerical", "continuous"), "number"),
    **dict.fromkeys(("boolean", "bool"), "bool"),
    "date": "date",
    **dict.fromkeys(("datetime", "dateTime", "timestamp"), "time"),
}
_NAMED_LOW = ("min", "minimum", "min_value", "lower", "lowest", "low")
_NAMED_HIGH = ("max", "maximum", "max_value", "upper", "highest", "high")
_NAMED_VALUES = ("values", "categories", "possible_values", "levels", "enum")
_SIMPLE = re.compile(r"[^\\^$.*+?()\[\]{}]+")


def _dicts(values: object) -> Iterator[dict[str, Any]]:
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, dict))


def _text(value: object) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = next(iter(value.values()), "")
        return _text(value)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _name(column: Document, key: str = "name") -> str:
    name = column.get(key)
    if not isinstance(name, str) or not name:
        raise SchemaError("a column of the codebook has no name")
    return name


def _first(document: Document, names: Iterable[str]) -> Any:
    return next((document[name] for name in names if document.get(name) is not None), None)


# Frictionless


def _frictionless(document: Document) -> Columns:
    """Read the fields of a Table Schema, or of the first resource of a package."""
    resources = list(_dicts(document.get("resources")))
    schema = resources[0].get("schema", {}) if resources else document.get("schema", document)
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    return _frictionless_fields(schema)


def _frictionless_fields(schema: Document) -> Iterator[Described]:
    keys = texts(schema.get("primaryKey"))
    for field in _dicts(schema["fields"]):
        limits = field.get("constraints")
        limits = limits if isinstance(limits, dict) else {}
        listed = field.get("categories", limits.get("enum"))
        missing = field.get("missingValues", schema.get("missingValues"))
        yield Described(
            _name(field),
            _TYPES.get(str(field.get("type", "")), ""),
            _text(field.get("title") or field.get("description")),
            (*_pairs(listed), *_labelled(missing)),
            texts(missing),
            number_of(limits.get("minimum")),
            number_of(limits.get("maximum")),
            ordered=bool(field.get("categoriesOrdered")),
            identifier=_name(field) in keys,
        )


def _pairs(listed: object) -> tuple[tuple[str, str], ...]:
    """Return codes and labels from a list of values, of pairs, or a mapping."""
    if isinstance(listed, dict):
        return tuple((code_text(code), _text(text)) for code, text in listed.items())
    if not isinstance(listed, list):
        return ()
    return tuple(
        (code_text(each.get("value")), _text(each.get("label")))
        if isinstance(each, dict)
        else (code_text(each), "")
        for each in listed
        if each is not None
    )


def _labelled(missing: object) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in _pairs(missing) if pair[1]) if isinstance(missing, list) else ()


# CSV on the Web


def _csvw(document: Document) -> Columns:
    """Read the columns of the first table."""
    tables = list(_dicts(document.get("tables")))
    schema = (tables[0] if tables else document).get("tableSchema", {})
    if not isinstance(schema, dict) or not isinstance(schema.get("columns"), list):
        return None
    return _csvw_columns(schema)


def _csvw_columns(schema: Document) -> Iterator[Described]:
    keys = texts(schema.get("primaryKey"))
    for column in _dicts(schema["columns"]):
        if column.get("virtual"):
            continue
        kind = column.get("datatype", schema.get("datatype", ""))
        kind = kind if isinstance(kind, dict) else {"base": kind}
        title = _text(column.get("titles"))
        name = column.get("name") if isinstance(column.get("name"), str) else title
        if not name:
            raise SchemaError("a column of the codebook has no name")
        yield Described(
            str(name),
            _TYPES.get(str(kind.get("base", "string")), ""),
            _text(column.get("dc:description") or column.get("dc:title"))
            or (title if title != name else ""),
            _csvw_codes(column, kind),
            texts(column.get("null", schema.get("null"))),
            number_of(_first(kind, ("minimum", "minInclusive"))),
            number_of(_first(kind, ("maximum", "maxInclusive"))),
            identifier=name in keys,
        )


def _csvw_codes(column: Document, kind: Document) -> tuple[tuple[str, str], ...]:
    """Return the values of a column: our own list, or a pattern of plain alternatives."""
    if listed := column.get("pegs:values"):
        return _pairs(listed)
    form = kind.get("format")
    if not isinstance(form, str) or "|" not in form:
        return ()
    parts = form.removeprefix("^").removesuffix("$").removeprefix("(").removesuffix(")").split("|")
    return tuple((part, "") for part in parts) if all(map(_SIMPLE.fullmatch, parts)) else ()


# SDV


def _sdv(document: Document) -> Columns:
    """Read the columns of the first table; SDV tells kinds and no values."""
    tables = document.get("tables")
    table = next(iter(tables.values())) if isinstance(tables, dict) and tables else document
    columns = table.get("columns") if isinstance(table, dict) else None
    if not isinstance(columns, dict) or not all(
        isinstance(each, dict) for each in columns.values()
    ):
        return None
    return _sdv_columns(table)


def _sdv_columns(table: Document) -> Iterator[Described]:
    keys = texts(table.get("primary_key"))
    for name, column in table["columns"].items():
        kind = str(column.get("sdtype", "unknown"))
        form = str(column.get("computer_representation", ""))
        base: Type = "number" if kind == "numerical" else _TYPES.get(kind, "")
        if kind == "datetime":
            base = "time"
        yield Described(
            str(name),
            "whole" if kind == "numerical" and form.lower().startswith(("int", "uint")) else base,
            codes=_pairs(column.get("pegs:values")),
            missing=texts(column.get("pegs:missing")),
            lowest=number_of(column.get("pegs:lowest")),
            highest=number_of(column.get("pegs:highest")),
            ordered=bool(column.get("pegs:ordered")),
            identifier=name in keys or kind == "id",
            role="quasi-identifier" if column.get("pii") is True else "other",
        )


# mbi, NIST and domains of other libraries


def _mbi(document: Document) -> Columns:
    """Read the attributes of a domain of mbi; their values are 0, 1, .. up to their number."""
    if not document or not all(type(size) is int for size in document.values()):
        return None
    return _attributes(document)


def _attributes(document: Document) -> Iterator[Described]:
    for name, size in document.items():
        if not 1 <= size <= 1 << 20:
            raise SchemaError(f"attribute {str(name)[:60]!r}: there must be at least one value")
        codes = tuple((str(code), "") for code in range(size))
        yield Described(str(name), "whole", codes=codes)


def _domain(document: Document) -> Columns:
    """Read columns that are described by name, with their values or limits, as by NIST."""
    columns = _described(document)
    return _domain_columns(columns) if columns else None


def _described(document: Document) -> dict[str, Any]:
    for key in ("schema", "domain", "columns", "attributes", "features"):
        inner = document.get(key)
        if isinstance(inner, dict) and inner:
            return _described(inner) or {}
        if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
            return {_name(each): each for each in inner}
    known = {
        *_NAMED_VALUES,
        *_NAMED_LOW,
        *_NAMED_HIGH,
        "description",
        "type",
        "kind",
        "size",
        "dtype",
    }
    columns = {str(name): each for name, each in document.items() if not str(name).startswith("_")}
    fits = columns and all(
        isinstance(each, list) or (isinstance(each, dict) and known & set(each))
        for each in columns.values()
    )
    return columns if fits else {}


def _domain_columns(columns: Document) -> Iterator[Described]:
    for name, column in columns.items():
        told = {"values": column} if isinstance(column, list) else column
        values = _first(told, _NAMED_VALUES)
        low, high = number_of(_first(told, _NAMED_LOW)), number_of(_first(told, _NAMED_HIGH))
        kind = str(_first(told, ("dtype", "type", "kind")) or "")
        codes, ranged = _domain_codes(values)
        size = told.get("size")
        if not codes and isinstance(size, int) and 1 <= size <= 1 << 20:
            codes = tuple((str(code), "") for code in range(size))
        if ranged and low is None:
            low, high = ranged
        yield Described(
            name,
            _domain_type(kind, codes, low, high),
            _text(told.get("description") or told.get("label")),
            () if ranged else codes,
            _domain_missing(told, codes),
            low,
            high,
            ordered=bool(told.get("ordered")),
        )


def _domain_codes(values: object) -> tuple[tuple[tuple[str, str], ...], tuple[float, float] | None]:
    """Return codes with labels, or the limits that one line such as ``0 .. 99`` gives."""
    codes = _pairs(values)
    for code, _ in codes:
        found = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(?:\.\.+|-|to)\s*(-?\d+(?:\.\d+)?)", code)
        if found and len(codes) <= 3 and float(found[1]) < float(found[2]):
            return codes, (float(found[1]), float(found[2]))
    return codes, None


def _domain_missing(told: Document, codes: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    listed = texts(_first(told, ("missing", "null_value", "missing_values", "na_values")))
    return (*listed, *(code for code, _ in codes if code == "N"))


def _domain_type(
    kind: str, codes: Sequence[tuple[str, str]], low: float | None, high: float | None
) -> Type:
    if kind in _TYPES and kind not in ("numerical", "numeric", "continuous", "categorical"):
        return _TYPES[kind]
    limits = (low, high)
    if codes and low is None:
        return "text"
    whole = kind == "discrete" or all(each is not None and each == int(each) for each in limits)
    return ("whole" if whole and kind != "continuous" else "number") if low is not None else ""


DOMAINS: tuple[Reader, ...] = (_mbi, _domain)
FORMS = (_frictionless, _csvw, _sdv, *DOMAINS)
"""Readers of documents in JSON, those of the most special forms first."""


def read_dialect(document: Document) -> Dialect:
    """Return the dialect that a package or CSVW metadata declares, as far as it is known here."""
    holders = [document, *_dicts(document.get("resources")), *_dicts(document.get("tables"))]
    for holder in holders:
        told = holder.get("dialect")
        told = told if isinstance(told, dict) else {}
        encoding = told.get("encoding", holder.get("encoding", ""))
        separator = told.get("delimiter", "")
        with suppress(SchemaError):
            plain = "" if str(encoding).lower() in ("utf-8", "utf8") else str(encoding)
            found = Dialect("" if separator == "," else str(separator), encoding=plain)
            if found:
                return found
    return Dialect()
