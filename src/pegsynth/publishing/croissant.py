"""``croissant.json``: the release in the words of Croissant 1.0, with its responsible-AI fields.

Fields that nobody stated are left out. ``mlcroissant`` reads the file without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pegsynth.io.csv_text import protect
from pegsynth.publishing.facts import Facts, sha256
from pegsynth.publishing.standard_words import described, limitations, maintained, protection
from pegsynth.schema import Feature
from pegsynth.schema.calendar_units import TEMPORAL

CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_PARQUET: Final = "application/x-parquet"
_IMPUTED: Final = "Completed tables: missing values were imputed from synthetic rows alone."


def croissant(facts: Facts, public: Path) -> dict[str, Any]:
    """Return the description of a folder whose tables are there."""
    about = facts.about
    creator = {"@type": "sc:Organization", "name": about.owner, "email": about.contact}
    content: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.0",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": facts.title,
        "description": described(facts),
        "license": about.licence,
        "url": about.url,
        "datePublished": facts.date,
        "version": "1.0.0",
        "creator": creator if about.owner else "",
        "keywords": list(about.keywords),
        "rai:dataUseCases": about.purpose,
        "rai:personalSensitiveInformation": protection(facts),
        "rai:dataLimitations": limitations(facts),
        "rai:dataManipulationProtocol": f"All rows were drawn by {facts.programs}"
        + (f", method {facts.method}." if facts.method else "."),
        "rai:dataPreprocessingProtocol": about.preprocessing,
        "rai:dataImputationProtocol": _IMPUTED if facts.versions else "",
        "rai:dataReleaseMaintenancePlan": maintained(facts),
        "distribution": [_file(name, facts, public) for name in facts.files()],
        "recordSet": [_records(name, facts) for name in facts.files()],
    }
    return {key: value for key, value in content.items() if value}


def _file(name: str, facts: Facts, public: Path) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": _PARQUET if facts.table_format == "parquet" else facts.media_type,
        "sha256": sha256(public / name),
        "contentSize": f"{(public / name).stat().st_size} B",
    }


def _records(table: str, facts: Facts) -> dict[str, Any]:
    stem = table.rpartition(".")[0]
    return {
        "@type": "cr:RecordSet",
        "@id": stem,
        "name": stem,
        "description": facts.mark,
        "field": [
            _field(facts, column, feature, f"{stem}/{number}", table)
            for number, (column, feature) in enumerate(facts.described(table), start=1)
        ],
    }


def _field(
    facts: Facts, column: str, feature: Feature | None, name: str, table: str
) -> dict[str, Any]:
    """Return one column; names of features may hold spaces, which an identifier may not."""
    written = protect(column) if facts.table_format == "csv" else column
    return {
        "@type": "cr:Field",
        "@id": name,
        "name": column,
        "dataType": _data_type(facts, column, feature),
        "source": {"fileObject": {"@id": table}, "extract": {"column": written}},
    }


def _data_type(facts: Facts, column: str, feature: Feature | None) -> str:
    """Return the type of a column; one that may hold texts beside numbers is text."""
    if column in facts.weight_columns:
        return "sc:Float"
    if feature is None:
        return "sc:Integer"
    if feature.kind in TEMPORAL or facts.decode == "labels" or feature.label_of is not None:
        return "sc:Text"
    plain = not (feature.not_applicable or feature.keep_missing_codes)
    if feature.kind == "numeric" and plain:
        return "sc:Integer" if feature.integer else "sc:Float"
    return "sc:Text"
