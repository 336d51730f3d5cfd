"""A schema as a codebook of another program: Frictionless, DDI, CSVW or SDV."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from pegsynth.errors import ParameterError
from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema
from pegsynth.schema.temporal import bound_text

_FRICTIONLESS = {"bool": "boolean", "double": "number", "float": "number", "date32": "date"}
_XML = {"bool": "boolean", "double": "double", "float": "double", "date32": "date"}


def write_codebook(schema: Schema, form: str) -> str:
    """Return a schema as the text of a codebook; of identifiers there is the name alone."""
    if form not in WRITTEN:
        raise ParameterError(f"--to is one of {', '.join(WRITTEN)}, not {form[:60]!r}")
    found = WRITTEN[form](schema)
    if isinstance(found, str):
        return found
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _frictionless(schema: Schema) -> dict[str, Any]:
    fields = [
        {"name": each.name, "type": "any"} if not each.modelled else _frictionless_field(each)
        for each in schema.columns
    ]
    return {"fields": fields, **_primary_key(schema)}


def _frictionless_field(feature: Feature) -> dict[str, Any]:
    field: dict[str, Any] = {"name": feature.name, "type": _type(feature, _FRICTIONLESS)}
    if feature.label:
        field["title"] = feature.label
    labels = dict(feature.value_labels)
    if feature.categories:
        codes = (*feature.categories, *feature.not_applicable)
        named = [{"value": code, "label": labels.get(code, code)} for code in codes]
        field["categories"] = named if labels else list(codes)
        field["categoriesOrdered"] = feature.kind == "ordinal"
        field["constraints"] = {"enum": list(codes)}
    if feature.format:
        field["format"] = feature.format
    if limits := public_limits(feature):
        field["constraints"] = {"minimum": limits[0], "maximum": limits[1]}
    if feature.missing:
        field["missingValues"] = [
            {"value": text, "label": labels[text]} if text in labels else text
            for text in feature.missing
        ]
    return field


def _csvw(schema: Schema) -> dict[str, Any]:
    columns = [
        {"name": each.name, "titles": each.name, **(_csvw_column(each) if each.modelled else {})}
        for each in schema.columns
    ]
    stated = {"delimiter": schema.dialect.separator, "encoding": schema.dialect.encoding}
    dialect = {key: value for key, value in stated.items() if value}
    return {
        "@context": ["http://www.w3.org/ns/csvw", {"pegs": "urn:pegsynth:"}],
        **({"dialect": dialect} if dialect else {}),
        "tableSchema": {"columns": columns, **_primary_key(schema)},
    }


def _csvw_column(feature: Feature) -> dict[str, Any]:
    datatype: Any = _type(feature, _XML)
    if limits := public_limits(feature):
        datatype = {"base": datatype, "minimum": limits[0], "maximum": limits[1]}
    told = {
        "datatype": datatype,
        "dc:description": feature.label,
        "null": list(feature.missing),
        "pegs:values": _values(feature) if feature.categories or feature.not_applicable else [],
    }
    return {key: value for key, value in told.items() if value}


def _sdv(schema: Schema) -> dict[str, Any]:
    columns = {
        each.name: _sdv_column(each) if each.modelled else {"sdtype": "id"}
        for each in schema.columns
    }
    return {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns}


def _sdv_column(feature: Feature) -> dict[str, Any]:
    missing = {"pegs:missing": list(feature.missing)} if feature.missing else {}
    if feature.kind in CALENDAR:
        form = {"datetime_format": feature.format} if feature.format else {}
        return {"sdtype": "datetime", **form, **missing}
    if feature.binned:
        whole = {"computer_representation": "Int64"} if feature.integer else {}
        return {"sdtype": "numerical", **whole, **_limits(feature), **missing}
    return {
        "sdtype": "boolean" if feature.dtype == "bool" else "categorical",
        "pegs:values": _values(feature),
        **({"pegs:ordered": True} if feature.kind == "ordinal" else {}),
        **missing,
    }


def _primary_key(schema: Schema) -> dict[str, Any]:
    dropped = [each.name for each in schema.columns if not each.modelled]
    return {"primaryKey": dropped} if dropped else {}


def _values(feature: Feature) -> list[dict[str, str]]:
    """Return all codes with their labels, missing ones where they have any."""
    labels = dict(feature.value_labels)
    missing = (text for text in feature.missing if text in labels)
    codes = (*feature.categories, *feature.not_applicable, *missing)
    return [{"value": code, "label": labels.get(code, "")} for code in codes]


def _limits(feature: Feature) -> dict[str, float]:
    """Return public limits; edges that are measured have none."""
    if not feature.edges:
        return {}
    lowest, highest = feature.public_bounds
    return {"pegs:lowest": lowest, "pegs:highest": highest}


def _type(feature: Feature, names: Mapping[str, str]) -> str:
    if feature.kind in TEMPORAL:
        return "dateTime" if feature.kind == "datetime" and names is _XML else feature.kind
    if feature.integer:
        return "integer"
    if feature.binned:
        return names.get(feature.dtype, names["double"])
    return names.get(feature.dtype, "string")


NAMESPACE = "ddi:codebook:2_5"
_KINDS = {"nominal": "nominal", "ordinal": "ordinal"}
_CATEGORIES = {"date": "date", "datetime": "time"}


def _ddi(schema: Schema) -> str:
    """Return a codebook with one variable for each feature."""
    root = ET.Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    study = ET.SubElement(root, "stdyDscr")
    title = ET.SubElement(ET.SubElement(ET.SubElement(study, "citation"), "titlStmt"), "titl")
    title.text = "Codebook"
    data = ET.SubElement(root, "dataDscr")
    for number, feature in enumerate(schema.features, start=1):
        _write_variable(data, feature, number)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _write_variable(data: ET.Element, feature: Feature, number: int) -> None:
    numeric = feature.binned
    variable = ET.SubElement(
        data,
        "var",
        {
            "ID": f"V{number}",
            "name": feature.name,
            "intrvl": "contin" if numeric else "discrete",
            "nature": _KINDS.get(feature.kind, "interval"),
            **({"dcml": "0"} if feature.integer else {}),
        },
    )
    if feature.label:
        ET.SubElement(variable, "labl").text = feature.label
    if ends := public_limits(feature):
        low, high = (each if isinstance(each, str) else f"{each:.17g}" for each in ends)
        ET.SubElement(ET.SubElement(variable, "valrng"), "range", {"min": low, "max": high})
    labels = dict(feature.value_labels)
    missing = [text for text in feature.missing if text]
    for code in (*feature.categories, *feature.not_applicable, *missing):
        category = ET.SubElement(variable, "catgry", {"missing": "Y"} if code in missing else {})
        ET.SubElement(category, "catValu").text = code
        if code in labels:
            ET.SubElement(category, "labl").text = labels[code]
    character = not numeric and feature.dtype in ("", "string", "bool", "dictionary")
    form = {"type": "character" if character else "numeric"}
    if feature.kind in TEMPORAL:
        form = {"type": "character", "category": _CATEGORIES.get(feature.kind, "other")}
    ET.SubElement(variable, "varFormat", form)


def public_limits(feature: Feature) -> tuple[float | str, float | str] | None:
    """Return where public bins begin and end, dates as texts; None where nothing is public."""
    if not feature.edges or (feature.kind in TEMPORAL and not feature.calendar):
        return None
    low, high = feature.public_bounds
    if not feature.calendar:
        return low, high
    return bound_text(feature, low), bound_text(feature, high)


WRITTEN: Mapping[str, Callable[[Schema], dict[str, Any] | str]] = {
    "frictionless": _frictionless,
    "ddi": _ddi,
    "csvw": _csvw,
    "sdv": _sdv,
}
"""Forms of codebooks that a schema can be written in."""
