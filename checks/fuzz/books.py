"""Wild codebooks: DDI, Frictionless, CSVW, SDV, mbi, NIST, domains, lists, headers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

from checks.fuzz.corpus import RICH_SCHEMA
from checks.fuzz.mutations import damaged
from checks.fuzz.office import sas_bytes, statistics_bytes
from checks.fuzz.trees import NUMBERS, TEXTS, changed, json_text

_DOCUMENTS: tuple[Mapping[str, Any], ...] = (
    {"a": 3, "b": 2, "n": 100},
    {"a": {"description": "first", "values": {"x": "X", "0 .. 9": "years", "N": "none"}}},
    {"schema": {"a": {"kind": "categorical", "values": ["x", "y"]}, "n": {"min": 0, "max": 9}}},
    {"tables": {"t": {"columns": {"a": {"sdtype": "boolean"}, "u": {"sdtype": "id"}}}}},
    {
        "resources": [
            {
                "schema": {
                    "fields": [
                        {"name": "a", "constraints": {"enum": ["x", 1, None]}},
                        {"name": "n", "type": "number", "constraints": {"minimum": 0}},
                    ],
                    "missingValues": ["", "-9"],
                }
            }
        ]
    },
    {"tableSchema": {"columns": [{"titles": "a", "datatype": {"format": "^(x|y)$"}}]}},
    {"a": {"possible_values": ["x", 3]}, "n": {"min_value": 0, "type": "integer"}, "b": ["p"]},
)
_LIST = b"code;label\n01;eins\n02;zwei\n"


@cache
def _written(form: str) -> bytes:
    from pegsynth.schema.codebooks import write_codebook
    from pegsynth.schema.toml import loads

    return write_codebook(loads(RICH_SCHEMA), form).encode()


def changed_xml(document: bytes, source: random.Random) -> bytes:
    """Change elements of a document that stays well formed."""
    tree = ET.fromstring(document)
    for _ in range(source.choice((1, 1, 2, 5))):
        elements = list(tree.iter())
        one, other = source.choice(elements), source.choice(elements)
        kind = source.random()
        if kind < 0.3:
            one.text = _xml_text(source)
        elif kind < 0.5 and one.attrib:
            one.set(source.choice(sorted(one.attrib)), _xml_text(source))
        elif kind < 0.6:
            one.attrib.clear()
        elif kind < 0.7 and len(one):
            one.remove(source.choice(list(one)))
        elif kind < 0.8:
            one.tag = other.tag
        elif kind < 0.9:
            one.extend([*one] * source.choice((1, 2, 9)))
        elif one not in other.iter() and other not in one.iter():
            one.append(other)
    return ET.tostring(tree, encoding=source.choice(("utf-8", "utf-16", "us-ascii")))


def _xml_text(source: random.Random) -> str:
    found = source.choice((*TEXTS, *map(str, NUMBERS)))
    return re.sub("[^\t\n -\ud7ff\ue000-\ufffd]", "", found)


def codebook_file(source: random.Random) -> tuple[str, bytes]:
    """Return the name and the bytes of a codebook that something is wrong with."""
    kind = source.random()
    if kind < 0.08:
        return "b.xml", damaged(_written("ddi"), source)
    if kind < 0.25:
        return "b.xml", changed_xml(_written("ddi"), source)
    if kind < 0.45:
        return "b.csv", damaged(_LIST, source)
    if kind < 0.6:
        extension = source.choice(("sav", "zsav", "dta", "xpt", "sas7bdat"))
        if extension == "sas7bdat":
            return "b.sas7bdat", sas_bytes(source)
        return f"b.{extension}", damaged(statistics_bytes(source, extension), source)
    form = source.choice(("frictionless", "csvw", "sdv", None, None, None))
    document = json.loads(_written(form)) if form else source.choice(_DOCUMENTS)
    text = json_text(changed(document, source)).encode("utf-8", "surrogatepass")
    return "b.json", damaged(text, source) if source.random() < 0.3 else text
