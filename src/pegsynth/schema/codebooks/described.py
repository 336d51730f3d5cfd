"""What a codebook tells of one column, and the feature that follows from it; codebooks in JSON.

Frictionless Table Schema, CSVW, SDV, mbi, NIST, and domains are read here. Each form says where its
columns stand and what they are called; what is told of a column is then read by one table of
names, since the names do not contradict each other. Keys that are not known are passed over: these
formats have many that say nothing of values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pegsynth.errors import SchemaError
from pegsynth.schema.binning import round_edges, within_type
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.feature import Feature, Role, number_text
from pegsynth.schema.keys import PRIVATE

Type = Literal["", "text", "whole", "number", "bool", "date", "time"]

BINS = 20
MOST_LISTED_RANGE = 50
_DTYPES = {
    "": "",
    "text": "string",
    "whole": "int64",
    "number": "double",
    "bool": "bool",
    "date": "date32",
    "time": "timestamp[us]",
}


@dataclass(frozen=True)
class Described:
    """One column of a codebook.

    Parameters
    ----------
    codes
        Its values, as pairs of a code and a label (empty if there is none).
    missing
        Codes that mean that the value is not known.
    lowest, highest
        Limits of its numbers.
    ordered
        Whether the order of the codes means something.
    identifier
        Whether it names rows or people.
    """

    name: str
    type: Type = ""
    label: str = ""
    codes: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    ordered: bool = False
    identifier: bool = False
    role: Role = "other"
    dtype: str = ""

    @property
    def written(self) -> str:
        """The Arrow type of the column."""
        return self.dtype or _DTYPES[self.type]


def feature_of(told: Described) -> Feature:
    """Return the feature that a codebook describes; what it does not tell is left for review.

    Edges of numbers are measured by the release then, and categories are found by it.
    """
    if told.identifier:
        return Feature(told.name, role="identifier", notes=("an identifier, by the codebook",))
    missing = tuple(dict.fromkeys(("", *told.missing)))
    return Feature(
        told.name,
        label=told.label,
        missing=missing,
        dtype=told.written,
        role=told.role,
        value_labels=tuple((code, text) for code, text in told.codes if text),
        **_values(told, missing),
    )


def _values(told: Described, missing: Collection[str]) -> dict[str, Any]:
    """Return kind, and categories or edges; what is open has a note."""
    numbers = told.type in ("whole", "number")
    listed = tuple(dict.fromkeys(code for code, _ in told.codes if code not in missing))
    if told.type == "bool" and not listed:
        listed = ("false", "true")
    low, high = told.lowest, told.highest
    limits = low is not None and high is not None
    if listed and not (limits and numbers and len(listed) < 3):
        return {"kind": "ordinal" if told.ordered else "nominal", "categories": listed}
    if low is not None and high is not None and told.type in ("whole", "number", ""):
        whole = told.type == "whole"
        if whole and 0 <= high - low <= MOST_LISTED_RANGE:
            values = map(str, range(math.ceil(low), math.floor(high) + 1))
            return {
                "kind": "ordinal",
                "categories": tuple(each for each in values if each not in missing),
            }
        edges = within_type(round_edges(low, high, BINS, whole=whole), told.written)
        return {"kind": "numeric", "edges": edges}
    if numbers:
        note = (
            "OPEN: the codebook tells no limits, so that edges are measured; list edges or state "
            "lowest and highest if they are public knowledge"
        )
        return {"kind": "numeric", "edges": PRIVATE, "notes": (note,)}
    if told.type in ("date", "time"):
        note = "OPEN: edges of these dates are measured; state the format of texts"
        kind = "date" if told.type == "date" else "datetime"
        return {"kind": kind, "edges": PRIVATE, "notes": (note,)}
    note = (
        "OPEN: the codebook tells no values, so that categories are found; list those that are "
        "public knowledge, or make it an identifier, which is dropped"
    )
    return {"categories": PRIVATE, "notes": (note,)}


def code_text(value: object) -> str:
    """Return a code as the text that tables have for it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def number_of(value: Any) -> float | None:
    """Return a limit as a number, if it is one."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def texts(values: object) -> tuple[str, ...]:
    """Return a list of codes as texts; one alone counts as a list."""
    if values is None:
        return ()
    listed: Any = [values] if isinstance(values, str | int | float) else values
    return tuple(
        code_text(value.get("value", "") if isinstance(value, dict) else value) for value in listed
    )


Document = Mapping[str, Any]
Codes = tuple[tuple[str, str], ...]

_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("string", "text", "str", "object", "categorical", "any"), "text"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "nonNegativeInteger"), "whole"),
    **dict.fromkeys((f"{t}{b}" for t in ("int", "Int", "uint") for b in (8, 16, 32, 64)), "whole"),
    **dict.fromkeys(("number", "decimal", "double", "float", "float64", "numeric"), "number"),
    **dict.fromkeys(("Float", "Float64", "numerical", "continuous"), "number"),
    **dict.fromkeys(("boolean", "bool"), "bool"),
    "date": "date",
    **dict.fromkeys(("datetime", "dateTime", "timestamp"), "time"),
}
_VAGUE = ("numerical", "numeric", "continuous", "categorical")
"""Kinds of a domain that leave open whether codes are numbers."""
_NAMES = {
    "label": ("dc:description", "dc:title", "title", "description", "label"),
    "values": ("pegs:values", "categories", "enum", "values", "possible_values", "levels"),
    "missing": (
        *("missingValues", "null", "pegs:missing"),
        *("missing", "null_value", "missing_values", "na_values"),
    ),
    "low": (
        *("pegs:lowest", "min", "minimum", "minInclusive", "min_value"),
        *("lower", "lowest", "low"),
    ),
    "high": (
        *("pegs:highest", "max", "maximum", "maxInclusive", "max_value"),
        *("upper", "highest", "high"),
    ),
    "ordered": ("categoriesOrdered", "pegs:ordered", "ordered"),
    "type": ("dtype", "type", "kind"),
}
"""What is told of a column, and the keys under which any of the forms tells it."""
_SIMPLE = re.compile(r"[^\\^$.*+?()\[\]{}]+")
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:\.\.+|-|to)\s*(-?\d+(?:\.\d+)?)")
_MOST_CODES = 1 << 20


@dataclass(frozen=True)
class _Columns:
    """Columns of a document by name.

    Parameters
    ----------
    keys
        Those that name rows or people.
    free
        Whether a column may be described in any of the ways that domains have.
    """

    columns: Sequence[tuple[str, Document]]
    keys: tuple[str, ...] = ()
    free: bool = False


def read_json(document: Document) -> Sequence[Described] | None:
    """Return what a document tells of every column; None if it is of no known form."""
    # Those of the most special forms first.
    for columns_of in (_frictionless, _csvw, _sdv, _mbi, _domain):
        if (found := columns_of(document)) is not None:
            return [
                _described(name, told, name in found.keys, free=found.free)
                for name, told in found.columns
            ]
    return None


def _described(name: str, told: Document, key: bool, *, free: bool) -> Described:
    kind, missing = str(_first(told, "type") or ""), _first(told, "missing")
    low, high = number_of(_first(told, "low")), number_of(_first(told, "high"))
    codes = _pairs(_first(told, "values"))
    lost = texts(missing)
    size = told.get("size")
    if not codes and type(size) is int and 1 <= size <= _MOST_CODES:
        codes = tuple((str(code), "") for code in range(size))
    type_of = _TYPES.get(kind, "")
    if free:
        ranged = _ranged(codes)
        if ranged and low is None:
            low, high = ranged
        lost = (*lost, *(code for code, _ in codes if code == "N"))
        type_of = type_of if kind not in _VAGUE and type_of else _inferred(kind, codes, low, high)
        codes = () if ranged else codes
    elif isinstance(missing, list):
        codes = (*codes, *(pair for pair in _pairs(missing) if pair[1]))
    labels = (_text(told[each]) for each in _NAMES["label"] if each in told)
    return Described(
        name,
        type_of,
        next(filter(None, labels), ""),
        codes,
        lost,
        low,
        high,
        ordered=bool(_first(told, "ordered")),
        identifier=key or told.get("sdtype") == "id",
        role="quasi-identifier" if told.get("pii") is True else "other",
    )


def _first(told: Document, what: str) -> Any:
    return next((told[name] for name in _NAMES[what] if told.get(name) is not None), None)


def _ranged(codes: Codes) -> tuple[float, float] | None:
    """Return the limits that one line such as ``0 .. 99`` gives."""
    for code, _ in codes if len(codes) <= 3 else ():
        found = _RANGE.fullmatch(code)
        if found and float(found[1]) < float(found[2]):
            return float(found[1]), float(found[2])
    return None


def _inferred(kind: str, codes: Codes, low: float | None, high: float | None) -> Type:
    if low is None:
        return "text" if codes else ""
    whole = kind == "discrete" or all(
        each is not None and each == int(each) for each in (low, high)
    )
    return "whole" if whole and kind != "continuous" else "number"


def _pairs(listed: object) -> Codes:
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


def _name(column: Document, name: object = None) -> str:
    name = column.get("name") if name is None else name
    if not isinstance(name, str) or not name:
        raise SchemaError("a column of the codebook has no name")
    return name


# Where each form has its columns.


def _frictionless(document: Document) -> _Columns | None:
    """Find the fields of a Table Schema, or of the first resource of a package."""
    resources = list(_dicts(document.get("resources")))
    schema = resources[0].get("schema", {}) if resources else document.get("schema", document)
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    columns = []
    for each in _dicts(schema["fields"]):
        limits = each.get("constraints")
        said = {**(limits if isinstance(limits, dict) else {}), **each}
        said.setdefault("missingValues", schema.get("missingValues"))
        columns.append((_name(each), said))
    return _Columns(columns, texts(schema.get("primaryKey")))


def _csvw(document: Document) -> _Columns | None:
    """Find the columns of the first table of CSV on the Web."""
    tables = list(_dicts(document.get("tables")))
    schema = (tables[0] if tables else document).get("tableSchema", {})
    if not isinstance(schema, dict) or not isinstance(schema.get("columns"), list):
        return None
    columns = []
    for each in _dicts(schema["columns"]):
        if each.get("virtual"):
            continue
        kind = each.get("datatype", schema.get("datatype", ""))
        kind = kind if isinstance(kind, dict) else {"base": kind}
        title = _text(each.get("titles"))
        name = _name(each, each.get("name") if isinstance(each.get("name"), str) else title)
        said = {**kind, **each, "type": kind.get("base", "string"), "enum": _alternatives(kind)}
        said |= {
            "title": title if title != name else "",
            "null": each.get("null", schema.get("null")),
        }
        columns.append((name, said))
    return _Columns(columns, texts(schema.get("primaryKey")))


def _alternatives(kind: Document) -> list[str] | None:
    """Return the values of a pattern of plain alternatives."""
    form = kind.get("format")
    if not isinstance(form, str) or "|" not in form:
        return None
    parts = form.removeprefix("^").removesuffix("$").removeprefix("(").removesuffix(")").split("|")
    return parts if all(map(_SIMPLE.fullmatch, parts)) else None


def _sdv(document: Document) -> _Columns | None:
    """Find the columns of the first table; SDV tells kinds and no values."""
    tables = document.get("tables")
    table = next(iter(tables.values())) if isinstance(tables, dict) and tables else document
    columns = table.get("columns") if isinstance(table, dict) else None
    if not isinstance(columns, dict) or not all(
        isinstance(each, dict) for each in columns.values()
    ):
        return None
    found = []
    for name, each in columns.items():
        kind = str(each.get("sdtype", "unknown"))
        form = str(each.get("computer_representation", "")).lower()
        whole = kind == "numerical" and form.startswith(("int", "uint"))
        found.append((str(name), {**each, "type": "integer" if whole else kind}))
    return _Columns(found, texts(table.get("primary_key")))


def _mbi(document: Document) -> _Columns | None:
    """Find the attributes of a domain of mbi; their values are 0, 1, .. up to their number."""
    if not document or not all(type(size) is int for size in document.values()):
        return None
    for name, size in document.items():
        if not 1 <= size <= _MOST_CODES:
            raise SchemaError(f"attribute {str(name)[:60]!r}: there must be at least one value")
    return _Columns([(str(n), {"size": size, "type": "integer"}) for n, size in document.items()])


def _domain(document: Document) -> _Columns | None:
    """Find columns that are described by name, with their values or limits, as by NIST."""
    for key in ("schema", "domain", "columns", "attributes", "features"):
        inner = document.get(key)
        if isinstance(inner, dict) and inner:
            return _domain(inner)
        if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
            return _Columns([(_name(each), each) for each in inner], free=True)
    known = {"description", "size", *_NAMES["values"], *_NAMES["low"], *_NAMES["high"]}
    known |= {*_NAMES["type"]}
    columns = {str(name): each for name, each in document.items() if not str(name).startswith("_")}
    fits = columns and all(
        isinstance(each, list) or (isinstance(each, dict) and known & set(each))
        for each in columns.values()
    )
    listed = [
        (name, {"values": each} if isinstance(each, list) else each)
        for name, each in columns.items()
    ]
    return _Columns(listed, free=True) if fits else None


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
