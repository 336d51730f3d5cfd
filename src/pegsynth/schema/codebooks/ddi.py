"""DDI Codebook 2.5: the XML in which archives describe surveys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.codebooks.described import Described, Type, number_of
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema
from pegsynth.schema.temporal import bound_text

NAMESPACE = "ddi:codebook:2_5"
_DECLARATION = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
_KINDS = {"nominal": "nominal", "ordinal": "ordinal"}
_CATEGORIES = {"date": "date", "datetime": "time"}
_TYPES: dict[str, Type] = {"date": "date", "time": "time"}


def read_ddi(content: bytes) -> Iterator[Described]:
    """Yield what every variable of a codebook is said to be."""
    if _DECLARATION.search(content):
        # Entities make small files large; codebooks need none.
        raise SchemaError("the XML declares a document type or entities; remove the declaration")
    try:
        root = ET.fromstring(content)
    except (ET.ParseError, ValueError, LookupError):
        raise SchemaError("the file is not valid XML; write it again") from None
    for variable in root.iter():
        if _tag(variable) == "var" and "name" in variable.attrib:
            yield _variable(variable)


def _variable(variable: ET.Element) -> Described:
    codes, missing = [], []
    limits: list[float | None] = [None, None]
    for part in variable:
        tag = _tag(part)
        if tag == "catgry":
            value = _child(part, "catValu")
            codes.append((value, _child(part, "labl")))
            if part.get("missing", "N").upper() == "Y":
                missing.append(value)
        elif tag == "invalrng":
            missing += [each.get("VALUE", "") for each in part if _tag(each) == "item"]
        elif tag == "valrng":
            for each in part:
                if _tag(each) == "range":
                    limits = [number_of(each.get("min")), number_of(each.get("max"))]
    form = next((each for each in variable if _tag(each) == "varFormat"), None)
    nature = variable.get("nature", "")
    continuous = variable.get("intrvl") == "contin" or nature in ("interval", "ratio")
    labelled = [pair for pair in codes if pair[0]]
    if continuous and limits[0] is not None:
        # Labels of some points of a scale are no list of its values.
        labelled = [pair for pair in labelled if pair[0] in missing]
    return Described(
        variable.get("name", ""),
        _type(form, variable),
        _child(variable, "labl"),
        tuple(labelled),
        tuple(text for text in missing if text),
        limits[0],
        limits[1],
        ordered=nature == "ordinal",
    )


def _type(form: ET.Element | None, variable: ET.Element) -> Type:
    if form is None:
        return ""
    if (category := form.get("category", "")) in _TYPES:
        return _TYPES[category]
    if form.get("type") == "character":
        return "text"
    return "whole" if variable.get("dcml", "") == "0" else "number"


def _tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _child(element: ET.Element, tag: str) -> str:
    found = next((each for each in element if _tag(each) == tag), None)
    return "" if found is None else " ".join("".join(found.itertext()).split())


def write_ddi(schema: Schema) -> str:
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
