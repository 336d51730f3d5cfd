"""A schema as a codebook of another program: Frictionless, DDI, CSVW or SDV."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pegsynth.errors import ParameterError
from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL
from pegsynth.schema.codebooks.ddi import public_limits, write_ddi
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

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
    dropped = [each.name for each in schema.columns if not each.modelled]
    return {"fields": fields, **({"primaryKey": dropped} if dropped else {})}


def _frictionless_field(feature: Feature) -> dict[str, Any]:
    field: dict[str, Any] = {"name": feature.name, "type": _type(feature, _FRICTIONLESS, "string")}
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
    columns = []
    for each in schema.columns:
        column: dict[str, Any] = {"name": each.name, "titles": each.name}
        if each.modelled:
            column |= _csvw_column(each)
        columns.append(column)
    dialect = {
        key: value
        for key, value in (
            ("delimiter", schema.dialect.separator),
            ("encoding", schema.dialect.encoding),
        )
        if value
    }
    dropped = [each.name for each in schema.columns if not each.modelled]
    return {
        "@context": ["http://www.w3.org/ns/csvw", {"pegs": "urn:pegsynth:"}],
        **({"dialect": dialect} if dialect else {}),
        "tableSchema": {"columns": columns, **({"primaryKey": dropped} if dropped else {})},
    }


def _csvw_column(feature: Feature) -> dict[str, Any]:
    labels = dict(feature.value_labels)
    column: dict[str, Any] = {"datatype": _type(feature, _XML, "string")}
    if feature.label:
        column["dc:description"] = feature.label
    if limits := public_limits(feature):
        column["datatype"] = {
            "base": column["datatype"],
            "minimum": limits[0],
            "maximum": limits[1],
        }
    if feature.missing:
        column["null"] = list(feature.missing)
    codes = (*feature.categories, *feature.not_applicable)
    if codes:
        listed = (*codes, *(text for text in feature.missing if text in labels))
        column["pegs:values"] = [{"value": c, "label": labels.get(c, "")} for c in listed]
    return column


def _sdv(schema: Schema) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for each in schema.columns:
        if not each.modelled:
            columns[each.name] = {"sdtype": "id"}
        elif each.kind in CALENDAR:
            form = {"datetime_format": each.format} if each.format else {}
            columns[each.name] = {"sdtype": "datetime", **form}
        elif each.binned:
            columns[each.name] = {
                "sdtype": "numerical",
                **({"computer_representation": "Int64"} if each.integer else {}),
                **_limits(each),
            }
        else:
            labels = dict(each.value_labels)
            codes = (*each.categories, *each.not_applicable)
            listed = (*codes, *(text for text in each.missing if text in labels))
            columns[each.name] = {
                "sdtype": "boolean" if each.dtype == "bool" else "categorical",
                "pegs:values": [{"value": c, "label": labels.get(c, "")} for c in listed],
                **({"pegs:ordered": True} if each.kind == "ordinal" else {}),
            }
        if each.missing and each.modelled:
            columns[each.name]["pegs:missing"] = list(each.missing)
    return {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns}


def _limits(feature: Feature) -> dict[str, float]:
    """Return public limits; edges that are measured have none."""
    if not feature.edges:
        return {}
    lowest, highest = feature.public_bounds
    return {"pegs:lowest": lowest, "pegs:highest": highest}


def _type(feature: Feature, names: Mapping[str, str], text: str) -> str:
    if feature.kind in TEMPORAL:
        return "dateTime" if feature.kind == "datetime" and names is _XML else feature.kind
    if feature.integer:
        return "integer"
    if feature.binned:
        return names.get(feature.dtype, names["double"])
    return names.get(feature.dtype, text)


WRITTEN: Mapping[str, Callable[[Schema], dict[str, Any] | str]] = {
    "frictionless": _frictionless,
    "ddi": write_ddi,
    "csvw": _csvw,
    "sdv": _sdv,
}
"""Forms of codebooks that a schema can be written in."""
